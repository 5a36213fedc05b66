package dev.trommel;

import static dev.trommel.Bytes.bytes;
import static dev.trommel.Bytes.key;

import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicInteger;

/** A program that ends while its threads are in calls of the store, which it never closes. */
final class Ending {
    private Ending() {}

    public static void main(String[] arguments) throws Exception {
        Store store = Store.open(Path.of(arguments[0]));
        AtomicInteger acknowledged = new AtomicInteger(-1);
        daemon(
                () -> {
                    for (int number = 0; ; number++) {
                        store.put(key(number), bytes("value"));
                        acknowledged.set(number);
                    }
                });
        daemon(
                () -> {
                    while (true) {
                        store.range(null, null).forEachRemaining(row -> {});
                    }
                });
        daemon(
                () -> {
                    while (true) {
                        store.flush();
                    }
                });
        while (acknowledged.get() < 1000) {
            Thread.sleep(1);
        }
        Thread.sleep(20);
        System.out.println("acknowledged " + acknowledged.get());
        switch (arguments[1]) {
            case "exit" -> System.exit(0);
            case "halt" -> Runtime.getRuntime().halt(0);
            default -> System.out.flush();
        }
    }

    private static void daemon(Runnable work) {
        Thread thread = new Thread(work);
        thread.setDaemon(true);
        thread.start();
    }
}
