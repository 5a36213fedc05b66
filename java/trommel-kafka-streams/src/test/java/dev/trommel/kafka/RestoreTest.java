package dev.trommel.kafka;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * A restored store is as a map that took the same records: with deletions, keys that come again,
 * rows that expire, commits, reads, and openings in the midst of it. Record {@code n} of a
 * changelog is a function of the kind of store and n, so that a restore goes on anywhere.
 */
class RestoreTest {
    /** Some 60 MiB: several runs, and batches between them. */
    private static final int RECORDS = 50_000;
    private static final int KEYS = 6_000;
    private static final long RETENTION = 120_000;

    @TempDir
    Path state;

    private enum Kind {
        KEY_VALUES {
            @Override
            BytesStore make() {
                return new KeyValueBytes("store");
            }

            @Override
            byte[] key(byte[] key, long time) {
                return key;
            }

            @Override
            KeyValueIterator<?, byte[]> all(BytesStore store) {
                return ((KeyValueBytes) store).all();
            }

            @Override
            byte[] changelogKey(Object key) {
                return ((Bytes) key).get();
            }
        },
        WINDOWS {
            @Override
            BytesStore make() {
                return new WindowBytes(new WindowShape("store", Duration.ofMillis(RETENTION),
                        Duration.ofMillis(10), false));
            }

            @Override
            byte[] key(byte[] key, long time) {
                return ByteBuffer.allocate(key.length + 12).put(key).putLong(time).putInt(0)
                        .array();
            }

            @Override
            KeyValueIterator<?, byte[]> all(BytesStore store) {
                return ((WindowBytes) store).all();
            }

            @Override
            byte[] changelogKey(Object key) {
                Windowed<?> window = (Windowed<?>) key;
                return key(((Bytes) window.key()).get(), window.window().start());
            }
        },
        SESSIONS {
            @Override
            BytesStore make() {
                return new SessionBytes("store", RETENTION);
            }

            @Override
            byte[] key(byte[] key, long time) {
                return ByteBuffer.allocate(key.length + 16).put(key).putLong(time).putLong(time)
                        .array();
            }

            @Override
            KeyValueIterator<?, byte[]> all(BytesStore store) {
                return ((SessionBytes) store).findSessions((Bytes) null, null, 0, Long.MAX_VALUE);
            }

            @Override
            byte[] changelogKey(Object key) {
                Windowed<?> window = (Windowed<?>) key;
                return key(((Bytes) window.key()).get(), window.window().end());
            }
        };

        abstract BytesStore make();

        abstract byte[] key(byte[] key, long time);

        abstract KeyValueIterator<?, byte[]> all(BytesStore store);

        abstract byte[] changelogKey(Object key);

        BytesStore open(TaskContext context) {
            BytesStore store = make();
            store.init(context, store);
            return store;
        }

        /** Times go up; now and then one is late. */
        private static long time(int number, Random random) {
            return number * 10L + (random.nextInt(4) == 0 ? -random.nextInt(60_000) : 0);
        }

        KeyValue<byte[], byte[]> record(int number) {
            Random random = new Random(number * 31L + ordinal());
            int keys = this == KEY_VALUES ? KEYS : KEYS / 100;
            byte[] key = ByteBuffer.allocate(4).putInt(random.nextInt(keys)).array();
            byte[] value = random.nextInt(6) == 0 ? null : new byte[400 + random.nextInt(1_600)];
            if (value != null) {
                ByteBuffer.wrap(value).putInt(number);
            }
            long time = Math.max(0, time(number, random) / 1_000 * 1_000);
            return KeyValue.pair(key(key, time), value);
        }

        /** What is live when all records below a number were set. */
        TreeMap<byte[], byte[]> truth(int end) {
            TreeMap<byte[], byte[]> rows = new TreeMap<>(Arrays::compareUnsigned);
            long streamTime = 0;
            for (int number = 0; number < end; number++) {
                KeyValue<byte[], byte[]> record = record(number);
                rows.put(record.key, record.value == null ? new byte[0] : record.value);
                streamTime = Math.max(streamTime, timeOf(record.key));
            }
            long oldest = streamTime - RETENTION + 1;
            rows.values().removeIf(value -> value.length == 0);
            rows.keySet().removeIf(key -> timeOf(key) < oldest && this != KEY_VALUES);
            return rows;
        }

        private long timeOf(byte[] key) {
            return this == KEY_VALUES ? 0 : ByteBuffer.wrap(key).getLong(4);
        }

        void check(BytesStore store, int end) {
            TreeMap<byte[], byte[]> expected = truth(end);
            try (KeyValueIterator<?, byte[]> all = all(store)) {
                int rows = 0;
                while (all.hasNext()) {
                    KeyValue<?, byte[]> row = all.next();
                    assertArrayEquals(expected.get(changelogKey(row.key)), row.value);
                    rows++;
                }
                assertEquals(expected.size(), rows);
                assertTrue(rows > 500, "few rows show little: " + rows);
            }
        }
    }

    private static TaskContext context(Path state) {
        return new TaskContext(state).with("processing.guarantee", "exactly_once_v2");
    }

    /** Restores a piece as Kafka Streams does. Where the next one begins. */
    private static int restore(TaskContext context, Kind kind, int from, int count) {
        int end = Math.min(RECORDS, from + count);
        List<KeyValue<byte[], byte[]>> records = new ArrayList<>();
        for (int number = from; number < end; number++) {
            records.add(kind.record(number));
        }
        context.restore(records);
        return end;
    }

    private static int count(Random random) {
        return new int[] {1, 30, 1_000}[random.nextInt(3)];
    }

    /** The record that a store which was opened anew wants next. */
    private static int next(BytesStore store) {
        Long offset = store.committedOffset(Commits.CHANGELOG);
        return offset == null || offset == StoreRows.OFFSET_UNKNOWN ? 0
                : Math.toIntExact(offset + 1);
    }

    private static void commit(BytesStore store, int next) {
        store.commit(Map.of(Commits.CHANGELOG, next - 1L));
    }

    @ParameterizedTest
    @EnumSource
    void isAsAMapOfTheSameRecords(Kind kind) {
        Random random = new Random(kind.ordinal());
        TaskContext context = context(state);
        BytesStore store = kind.open(context);
        assertEquals(0, next(store));
        int next = 0;
        int committed = 0;
        int furthest = 0;
        while (next < RECORDS) {
            next = restore(context, kind, next, count(random));
            if (random.nextInt(3) == 0) {
                commit(store, next);
                committed = next;
            }
            furthest = Math.max(furthest, next);
            // Rows may be newer than the offset that it went on from.
            if (random.nextInt(60) == 0 && next > 10_000 && next == furthest) {
                kind.check(store, next);
            }
            if (random.nextInt(30) == 0) {
                store.close();
                context = context(state);
                store = kind.open(context);
                next = next(store);
                assertEquals(committed, next, "what was restored is written at the close");
            }
        }
        commit(store, next);
        kind.check(store, RECORDS);
        store.close();
        context = context(state);
        store = kind.open(context);
        assertEquals(RECORDS, next(store));
        kind.check(store, RECORDS);
        // An engine that was only read stays open for some seconds: its merges would go on while
        // JUnit deletes the folder. One that was written to closes with its last store.
        restore(context, kind, RECORDS - 1, 1);
        store.close();
    }

    /** Restores up to a record with commits on the way, and dies. */
    static final class Dies {
        private Dies() {}

        public static void main(String[] arguments) {
            TaskContext context = context(Path.of(arguments[0]));
            Kind kind = Kind.valueOf(arguments[1]);
            int end = Integer.parseInt(arguments[2]);
            Random random = new Random(end);
            BytesStore store = kind.open(context);
            System.out.println("BEGINS " + next(store));
            for (int next = next(store); next < end;) {
                next = restore(context, kind, next, Math.min(count(random), end - next));
                if (random.nextInt(4) == 0) {
                    commit(store, next);
                }
            }
            System.out.println("DIES");
            Runtime.getRuntime().halt(9);
        }
    }

    @ParameterizedTest
    @EnumSource
    void goesOnWhereADeadProcessWas(Kind kind) throws Exception {
        int before = 0;
        for (int end : new int[] {7_000, 26_000, 41_000}) {
            ChildProcess process = ChildProcess.start(state.resolve("output-" + end), 256,
                    Dies.class, state.toString(), kind.name(), String.valueOf(end));
            process.await("dead", 120, () -> !process.isAlive());
            assertTrue(process.said("DIES"), process.lastWords());
            assertTrue(process.last("BEGINS") >= before, process.lastWords());
            before = (int) process.last("BEGINS");
        }
        assertTrue(before > 7_000, "runs and their offsets outlive a crash");
        TaskContext context = context(state);
        BytesStore store = kind.open(context);
        for (int next = next(store); next < RECORDS;) {
            next = restore(context, kind, next, 1_000);
        }
        kind.check(store, RECORDS);
        store.close();
    }

    @Test
    void whatComesSlowlyIsWrittenWithItsCommit() {
        TaskContext context = context(state);
        KeyValueBytes store = (KeyValueBytes) Kind.KEY_VALUES.open(context);
        store.committedOffset(Commits.CHANGELOG);
        for (int next = 0; next < 100;) {
            next = restore(context, Kind.KEY_VALUES, next, 10);
            assertTrue(store.rows().hasRestored());
            commit(store, next);
            assertFalse(store.rows().hasRestored());
        }
        store.close();
    }

    @Test
    void whatWaitsIsWrittenWhenNothingComes() throws InterruptedException {
        TaskContext context = context(state);
        KeyValueBytes store = (KeyValueBytes) Kind.KEY_VALUES.open(context);
        store.committedOffset(Commits.CHANGELOG);
        int next = restore(context, Kind.KEY_VALUES, 0, 1_000);
        commit(store, next);
        assertTrue(store.rows().hasRestored(), "a commit of much waits");
        for (int round = 0; round < 600 && store.rows().hasRestored(); round++) {
            Thread.sleep(100);
        }
        assertFalse(store.rows().hasRestored());
        store.close();
    }

    @Test
    void writesOfTheTaskComeBehindWhatIsRestored() {
        TaskContext context = context(state);
        KeyValueBytes store = (KeyValueBytes) Kind.KEY_VALUES.open(context);
        store.committedOffset(Commits.CHANGELOG);
        int next = restore(context, Kind.KEY_VALUES, 0, 1_000);
        Bytes key = Bytes.wrap(Kind.KEY_VALUES.truth(next).firstKey());
        store.put(key, new byte[] {7});
        assertArrayEquals(new byte[] {7}, store.get(key));
        commit(store, next + 1);
        store.close();
        store = (KeyValueBytes) Kind.KEY_VALUES.open(context(state));
        assertEquals(next + 1, next(store));
        assertArrayEquals(new byte[] {7}, store.get(key));
        store.close();
        context = context(state);
        store = (KeyValueBytes) Kind.KEY_VALUES.open(context);
        store.delete(key);
        restore(context, Kind.KEY_VALUES, 0, 1);
        assertNull(store.get(key));
        store.close();
    }

    /** The same object: what the standby has goes on as the state of the task. */
    @Test
    void aStandbyThatIsPromotedGoesOn() {
        TaskContext context = context(state);
        KeyValueBytes store = (KeyValueBytes) Kind.KEY_VALUES.open(context);
        store.committedOffset(Commits.CHANGELOG);
        int next = restore(context, Kind.KEY_VALUES, 0, 1_000);
        commit(store, next);
        next = restore(context, Kind.KEY_VALUES, next, 7);
        TransactionNotes notes = new TransactionNotes();
        notes.sent(Commits.CHANGELOG, 5_000);
        notes.committed();
        commit(store, next);
        Bytes key = Bytes.wrap(new byte[] {1});
        Bytes other = Bytes.wrap(new byte[] {2});
        store.put(key, new byte[] {3});
        notes.sent(Commits.CHANGELOG, next);
        notes.committed();
        store.put(other, new byte[] {3});
        store.close();
        store = (KeyValueBytes) Kind.KEY_VALUES.open(context(state));
        assertEquals(next + 1, next(store), "the transaction of the task, not that of another");
        assertArrayEquals(new byte[] {3}, store.get(key));
        assertNull(store.get(other), "it was not committed");
        TreeMap<byte[], byte[]> restored = Kind.KEY_VALUES.truth(next);
        for (Map.Entry<byte[], byte[]> row : restored.entrySet()) {
            assertArrayEquals(row.getValue(), store.get(Bytes.wrap(row.getKey())));
        }
        store.close();
    }

    @Test
    void aGlobalStoreGoesOnAtItsOffset() {
        TaskContext context = new TaskContext(state, new TaskId(-1, -1));
        KeyValueBytes store = (KeyValueBytes) Kind.KEY_VALUES.open(context);
        assertNull(store.committedOffset(Commits.CHANGELOG));
        int next = restore(context, Kind.KEY_VALUES, 0, 2_000);
        commit(store, next);
        // From here on its thread sets rows as a task does.
        for (; next < 3_000; next++) {
            KeyValue<byte[], byte[]> record = Kind.KEY_VALUES.record(next);
            store.put(Bytes.wrap(record.key), record.value);
        }
        commit(store, next);
        store.put(Bytes.wrap(new byte[] {1}), new byte[] {1});
        store.close();
        context = new TaskContext(state, new TaskId(-1, -1));
        store = (KeyValueBytes) Kind.KEY_VALUES.open(context);
        assertEquals(3_000, next(store));
        restore(context, Kind.KEY_VALUES, next, 10);
        Kind.KEY_VALUES.check(store, 3_010);
        store.close();
    }

    /** However many stores restore at once, and however large rows are. */
    @Test
    void storesOfAnInstanceWaitWithSoMuchTogether() {
        List<TaskContext> contexts = new ArrayList<>();
        List<KeyValueBytes> stores = new ArrayList<>();
        for (int task = 0; task < 6; task++) {
            TaskContext context = new TaskContext(state, new TaskId(0, task));
            contexts.add(context);
            KeyValueBytes store = new KeyValueBytes("store");
            store.init(context, store);
            stores.add(store);
        }
        for (int next = 0; next < 20_000; next += 1_000) {
            for (TaskContext context : contexts) {
                restore(context, Kind.KEY_VALUES, next, 1_000);
            }
            int waiting = stores.stream().mapToInt(store -> store.rows().restoredBytes()).sum();
            assertTrue(waiting < 26 << 20, waiting + " bytes wait");
        }
        for (KeyValueBytes store : stores) {
            Kind.KEY_VALUES.check(store, 20_000);
            store.close();
        }
    }
}
