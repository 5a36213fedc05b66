package dev.trommel;

import static dev.trommel.Bytes.bytes;
import static dev.trommel.Bytes.key;
import static dev.trommel.Bytes.number;
import static dev.trommel.Bytes.text;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Many threads, closing amid calls, and the end of the process. */
@Timeout(120)
final class ThreadsTest {
    private static final int THREADS = 6;
    private static final int ADDED = 300;

    @TempDir Path folder;

    /** Work of several threads, whose exceptions are the test's. */
    private static void inThreads(List<Callable<Void>> work) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(work.size());
        try {
            for (Future<Void> done : threads.invokeAll(work)) {
                done.get();
            }
        } finally {
            threads.shutdown();
            assertTrue(threads.awaitTermination(60, TimeUnit.SECONDS));
        }
    }

    @Test
    void nothingIsLostBetweenThreads() throws Exception {
        try (Store store = Store.open(folder.resolve("store"))) {
            List<Callable<Void>> work = new ArrayList<>();
            for (int thread = 0; thread < THREADS; thread++) {
                int own = thread;
                work.add(
                        () -> {
                            for (int count = 0; count < ADDED; count++) {
                                store.fetchAdd(bytes("sum"), 1);
                                store.update(
                                        bytes("text"),
                                        old -> bytes(old == null ? "x" : text(old) + "x"));
                                store.run(
                                        transaction -> {
                                            byte[] old = transaction.getForUpdate(bytes("n"));
                                            int next = old == null ? 1 : number(old) + 1;
                                            transaction.put(bytes("n"), key(next));
                                            return null;
                                        });
                                store.put(key(own * ADDED + count), bytes("x"));
                            }
                            return null;
                        });
            }
            inThreads(work);
            assertEquals(THREADS * ADDED, store.fetchAdd(bytes("sum"), 0));
            assertEquals(THREADS * ADDED, store.get(bytes("text")).length);
            assertEquals(THREADS * ADDED, number(store.get(bytes("n"))));
            int rows = 0;
            for (Row row : store) {
                rows += row.key().length == Integer.BYTES && row.value().length == 1 ? 1 : 0;
            }
            assertEquals(THREADS * ADDED, rows);
        }
    }

    /** Whatever the calls of other threads are at, each gives what it should or this exception. */
    @Test
    void closingAmidCallsIsAnExceptionOfTheirs() throws Exception {
        for (int round = 0; round < 8; round++) {
            Store store = Store.open(folder.resolve("store" + round));
            Keyspace words = store.keyspace("words");
            for (int number = 0; number < 3000; number++) {
                store.put(key(number), bytes("value"));
            }
            Snapshot snapshot = store.snapshot();
            Transaction transaction = store.transaction();
            CountDownLatch begun = new CountDownLatch(THREADS + 1);
            List<Callable<Void>> work = new ArrayList<>();
            work.add(until(begun, () -> store.put(key(1), bytes("value"))));
            work.add(until(begun, () -> assertNotNull(store.get(key(2)))));
            work.add(until(begun, () -> store.range(null, null).forEachRemaining(row -> {})));
            work.add(until(begun, () -> assertNotNull(snapshot.get(key(3)))));
            work.add(until(begun, () -> transaction.put(key(4), bytes("value"))));
            work.add(until(begun, () -> words.fetchAdd(bytes("n"), 1)));
            work.add(until(begun, () -> assertNotNull(transaction.get(key(5)))));
            int turn = round % 3;
            work.add(
                    () -> {
                        begun.await();
                        Thread.sleep(2 + turn);
                        if (turn == 1) {
                            snapshot.close();
                            transaction.close();
                        }
                        store.close();
                        snapshot.close();
                        transaction.close();
                        return null;
                    });
            inThreads(work);
            try (Store again = Store.open(folder.resolve("store" + round))) {
                assertEquals("value", text(again.get(key(1))));
                assertTrue(again.verify().isSound());
            }
        }
    }

    private static Callable<Void> until(CountDownLatch begun, Runnable call) {
        return () -> {
            call.run();
            begun.countDown();
            try {
                while (true) {
                    call.run();
                }
            } catch (ClosedException closed) {
                return null;
            }
        };
    }

    @Test
    void rowsMayBeClosedByAnotherThread() throws Exception {
        try (Store store = Store.open(folder.resolve("store"))) {
            for (int number = 0; number < 20_000; number++) {
                store.put(key(number), bytes("value"));
            }
            for (int round = 0; round < 50; round++) {
                Rows rows = store.range(null, null);
                rows.next();
                List<Callable<Void>> work = new ArrayList<>();
                work.add(
                        () -> {
                            try {
                                rows.forEachRemaining(row -> {});
                            } catch (ClosedException closed) {
                                // It came amid.
                            }
                            return null;
                        });
                work.add(
                        () -> {
                            Thread.sleep(1);
                            rows.close();
                            return null;
                        });
                inThreads(work);
            }
        }
    }

    @Test
    void aTransactionInUseIsNotCommitted() throws Exception {
        try (Store store = Store.open(folder.resolve("store"))) {
            Transaction holder = store.transaction();
            holder.getForUpdate(bytes("k"));
            Transaction waiting = store.transaction();
            CountDownLatch begun = new CountDownLatch(1);
            AtomicInteger inUse = new AtomicInteger();
            AtomicBoolean isDone = new AtomicBoolean();
            List<Callable<Void>> work = new ArrayList<>();
            work.add(
                    () -> {
                        begun.countDown();
                        waiting.getForUpdate(bytes("k"));
                        isDone.set(true);
                        return null;
                    });
            work.add(
                    () -> {
                        begun.await();
                        Thread.sleep(100);
                        if (!isDone.get()) {
                            assertThrows(IllegalStateException.class, waiting::commit);
                            inUse.incrementAndGet();
                        }
                        holder.close();
                        return null;
                    });
            inThreads(work);
            assertEquals(1, inUse.get());
            waiting.put(bytes("k"), bytes("v"));
            waiting.commit();
            assertEquals("v", text(store.get(bytes("k"))));
        }
    }

    /** A process that ends amid calls, or forgets to close: what was acknowledged is there. */
    @Test
    void theEndOfTheProcessLosesNothing() throws Exception {
        for (String how : List.of("exit", "return", "halt")) {
            Path path = folder.resolve(how);
            List<String> command = Processes.java();
            command.addAll(List.of(Ending.class.getName(), path.toString(), how));
            ProcessBuilder builder = new ProcessBuilder(command);
            builder.redirectErrorStream(true);
            Process process = builder.start();
            int acknowledged = -1;
            List<String> other = new ArrayList<>();
            var input = process.getInputStream();
            var reader = new InputStreamReader(input, StandardCharsets.UTF_8);
            try (BufferedReader lines = new BufferedReader(reader)) {
                for (String line; (line = lines.readLine()) != null; ) {
                    if (line.startsWith("acknowledged ")) {
                        acknowledged = Integer.parseInt(line.substring(13));
                    } else {
                        other.add(line);
                    }
                }
            }
            assertEquals(0, process.waitFor(), how + ": " + other);
            assertTrue(acknowledged >= 1000, how + ": " + other);
            try (Store store = Store.open(path)) {
                for (int number = 0; number <= acknowledged; number++) {
                    assertNotNull(store.get(key(number)), how + ": lost " + number);
                }
                assertTrue(store.verify().isSound());
            }
        }
    }
}
