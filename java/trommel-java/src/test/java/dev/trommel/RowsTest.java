package dev.trommel;

import static dev.trommel.Bytes.bytes;
import static dev.trommel.Bytes.key;
import static dev.trommel.Bytes.number;
import static dev.trommel.Bytes.texts;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.ref.WeakReference;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.NoSuchElementException;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Rows that take several crossings. */
final class RowsTest {
    private static final int COUNT = 100_000;
    @TempDir static Path folder;
    private static Store store;

    @BeforeAll
    static void fill() {
        store = Store.open(folder.resolve("store"));
        WriteBatch batch = new WriteBatch();
        for (int number = 0; number < COUNT; number++) {
            batch.put(key(number), bytes("value of " + number));
            if (batch.size() == 1000) {
                store.write(batch);
            }
        }
    }

    @AfterAll
    static void close() {
        store.close();
    }

    @Test
    void allRowsComeOnceInTheirOrder() {
        try (Snapshot snapshot = store.snapshot(); Transaction transaction = store.transaction()) {
            for (Readable readable : new Readable[] {store, snapshot, transaction}) {
                int expected = 0;
                for (Row row : readable) {
                    assertEquals(new Row(key(expected), bytes("value of " + expected)), row);
                    expected++;
                }
                assertEquals(COUNT, expected);
            }
        }
    }

    @Test
    void allRowsComeOnceFromTheEnd() {
        try (Transaction transaction = store.transaction()) {
            for (Readable readable : new Readable[] {store, transaction}) {
                int expected = COUNT;
                Rows rows = readable.rangeReverse(null, null);
                while (rows.hasNext()) {
                    assertEquals(--expected, number(rows.next().key()));
                }
                assertEquals(0, expected);
            }
        }
    }

    @Test
    void aFewRowsAndNoMore() {
        Rows rows = store.range(key(10), null);
        for (int number = 10; number < 13; number++) {
            assertEquals(number, number(rows.next().key()));
        }
        rows.close();
        rows.close();
        assertThrows(ClosedException.class, rows::hasNext);
        assertThrows(ClosedException.class, rows::next);
    }

    @Test
    void shortRangesOfEachLength() {
        for (int length = 0; length < 70; length++) {
            assertEquals(length, texts(store.range(key(500), key(500 + length))).size());
            assertEquals(length, texts(store.rangeReverse(key(500), key(500 + length))).size());
        }
    }

    @Test
    void behindTheLastRowIsNone() {
        Rows rows = store.range(key(1), key(2));
        rows.next();
        assertFalse(rows.hasNext());
        assertThrows(NoSuchElementException.class, rows::next);
        assertFalse(rows.hasNext(), "it stays so");
        rows.close();
    }

    @Test
    void rowsSeeTheMomentWhenTheyWereAskedFor() throws Exception {
        try (Store other = Store.open(folder.resolve("moment"))) {
            for (int number = 0; number < 5000; number++) {
                other.put(key(number), bytes("x"));
            }
            Rows rows = other.range(null, null);
            rows.next();
            other.deleteRange(key(0), key(5000));
            other.compact();
            int count = 1;
            for (; rows.hasNext(); rows.next()) {
                count++;
            }
            assertEquals(5000, count);
        }
    }

    @Test
    void rowsLongerThanAPiece() {
        Keyspace large = store.keyspace("large");
        for (int number = 0; number < 5; number++) {
            large.put(key(number), new byte[700_000 + number]);
        }
        int number = 0;
        for (Row row : large) {
            assertEquals(700_000 + number++, row.value().length);
        }
        assertEquals(5, number);
    }

    @Test
    void rowsForWhichMemoryWasMissingComeLater() throws Exception {
        List<String> command = Processes.java();
        command.addAll(List.of(Hoarding.class.getName(), folder.resolve("hoarding").toString()));
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        byte[] output = process.getInputStream().readAllBytes();
        assertEquals(0, process.waitFor(), new String(output, StandardCharsets.UTF_8));
    }

    @Test
    void forgottenRowsAreFreed() throws Exception {
        Path path = folder.resolve("forgotten");
        Store other = Store.open(path);
        for (int number = 0; number < 1000; number++) {
            other.put(key(number), bytes("x"));
        }
        WeakReference<Rows> forgotten = begin(other);
        for (int tries = 0; tries < 200 && forgotten.get() != null; tries++) {
            System.gc();
            Thread.sleep(10);
        }
        assertTrue(forgotten.get() == null, "nothing keeps them");
        // A store whose last object is gone closes: then the folder can be opened.
        other = null;
        Store again = null;
        for (int tries = 0; tries < 500 && again == null; tries++) {
            System.gc();
            Thread.sleep(10);
            try {
                again = Store.open(path);
            } catch (LockedException notYet) {
                // Once more.
            }
        }
        assertEquals(1000, texts(again.iterator()).size());
        again.close();
    }

    private static WeakReference<Rows> begin(Store store) {
        Rows rows = store.range(null, null);
        rows.next();
        return new WeakReference<>(rows);
    }

    @Test
    void rowsKeepTheirStoreOpen() throws Exception {
        Path path = folder.resolve("kept");
        Rows rows = rowsOfAForgottenStore(path);
        for (int tries = 0; tries < 10; tries++) {
            System.gc();
            Thread.sleep(10);
        }
        int count = 0;
        for (; rows.hasNext(); rows.next()) {
            count++;
        }
        assertEquals(1000, count);
    }

    private static Rows rowsOfAForgottenStore(Path path) {
        Store store = Store.open(path);
        for (int number = 0; number < 1000; number++) {
            store.put(key(number), bytes("x"));
        }
        return store.snapshot().range(null, null);
    }
}
