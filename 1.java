import dev.trommel.*;
import java.nio.file.Path;
import java.time.Duration;

class Accounts {
    static int number(byte[] value) {
        return value == null ? 0 : Integer.parseInt(new String(value));
    }

    public static void main(String[] arguments) {
        byte[] ann = "ann".getBytes();
        byte[] bob = "bob".getBytes();
        try (Store store = Store.open(Path.of("accounts"))) {
            store.put(ann, "70".getBytes());
            store.run(
                    transaction -> { // runs again if others were faster
                        int money = number(transaction.get(ann));
                        transaction.put(ann, Integer.toString(money - 20).getBytes());
                        transaction.put(bob, "20".getBytes());
                        return money;
                    });
            assert number(store.get(ann)) == 50 && number(store.get(bob)) == 20;

            Keyspace events = store.keyspace("events"); // a tree of its own
            events.put("2026-01-01".getBytes(), "rain".getBytes(), Duration.ofDays(30));
            store.write(new WriteBatch().put(events, bob, bob).delete(bob)); // over both

            try (Snapshot before = store.snapshot()) {
                store.delete(ann);
                assert number(before.get(ann)) == 50;
            }
            assert store.fetchAdd("visits".getBytes(), 1) == 0;
        }
    }
}
