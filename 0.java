import dev.trommel.*;
import java.nio.file.Path;

class Words {
    public static void main(String[] arguments) {
        Options options = new Options().set("write_buffer_bytes", "16MiB");
        try (Store store = Store.open(Path.of("words"), options)) {
            store.put("zug".getBytes(), "47.17 N".getBytes());
            store.write(
                    new WriteBatch() // all of it or nothing
                            .put("bern".getBytes(), "46.95 N".getBytes())
                            .put("chur".getBytes(), "46.85 N".getBytes()));
            assert new String(store.get("zug".getBytes())).equals("47.17 N");
            assert store.get("basel".getBytes()) == null;
            for (Row row : store) {
                System.out.println(new String(row.key()) + ": " + new String(row.value()));
            }
            // Of an empty range, which most short ones are, no object is made.
            assert store.rangeOrNull("d".getBytes(), "e".getBytes(), false) == null;
        }
    }
}
