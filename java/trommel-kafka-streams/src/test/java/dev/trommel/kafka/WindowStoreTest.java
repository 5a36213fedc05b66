package dev.trommel.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.WindowStoreIterator;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Window stores: times, segments, retention, duplicates, wherever rows are. */
class WindowStoreTest {
    private static final long MINUTE = 60_000;
    private static final long RETENTION = 2 * MINUTE;
    private static final long SIZE = 3;

    @TempDir
    Path state;

    private WindowBytes store;
    private TaskContext context;
    private Commits commits;

    private void open(Commits when) {
        open(when, false);
    }

    private void open(Commits when, boolean duplicates) {
        commits = when;
        context = new TaskContext(state);
        store = new WindowBytes(new WindowShape("store", Duration.ofMillis(RETENTION),
                Duration.ofMillis(SIZE), duplicates));
        store.init(context, store);
    }

    @AfterEach
    void close() {
        store.close();
    }

    private static Bytes key(String text) {
        return text == null ? null : Bytes.wrap(text.getBytes(StandardCharsets.UTF_8));
    }

    private static String text(byte[] value) {
        return value == null ? null : new String(value, StandardCharsets.UTF_8);
    }

    private void put(String key, String value, long time) {
        byte[] bytes = value == null ? null : value.getBytes(StandardCharsets.UTF_8);
        store.put(key(key), bytes, time);
        commits.after(store);
    }

    private static String times(WindowStoreIterator<byte[]> rows) {
        List<String> texts = new ArrayList<>();
        try (rows) {
            while (rows.hasNext()) {
                long peeked = rows.peekNextKey();
                KeyValue<Long, byte[]> row = rows.next();
                assertEquals(peeked, row.key);
                texts.add(row.key + "=" + text(row.value));
            }
        }
        return String.join(" ", texts);
    }

    private static String windows(KeyValueIterator<Windowed<Bytes>, byte[]> rows) {
        List<String> texts = new ArrayList<>();
        try (rows) {
            while (rows.hasNext()) {
                assertEquals(rows.peekNextKey(), rows.peekNextKey());
                KeyValue<Windowed<Bytes>, byte[]> row = rows.next();
                assertEquals(row.key.window().start() + SIZE, row.key.window().end());
                texts.add(text(row.key.key().get()) + "@" + row.key.window().start() + "="
                        + text(row.value));
            }
        }
        return String.join(" ", texts);
    }

    private void putFourKeysAtTimes() {
        put("a", "1", 10);
        put("b", "2", 10);
        put("a", "3", 12);
        put("c", "4", 15);
        put("a", "5", MINUTE + 1);
        put("b", "6", MINUTE + 1);
    }

    @ParameterizedTest
    @EnumSource
    void oneWindowOfAKey(Commits when) {
        open(when);
        putFourKeysAtTimes();
        assertEquals("3", text(store.fetch(key("a"), 12)));
        assertNull(store.fetch(key("a"), 11));
        assertNull(store.fetch(key("x"), 12));
        assertNull(store.fetch(key("a"), MINUTE + 2), "later than all");
        put("a", "7", 12);
        assertEquals("7", text(store.fetch(key("a"), 12)));
        put("a", null, 12);
        assertNull(store.fetch(key("a"), 12));
    }

    @ParameterizedTest
    @EnumSource
    void windowsOfAKeyWithBothEnds(Commits when) {
        open(when);
        putFourKeysAtTimes();
        assertEquals("10=1 12=3 60001=5", times(store.fetch(key("a"), 0, 2 * MINUTE)));
        assertEquals("60001=5 12=3 10=1", times(store.backwardFetch(key("a"), 0, 2 * MINUTE)));
        assertEquals("10=1 12=3", times(store.fetch(key("a"), 10, 12)));
        assertEquals("12=3", times(store.fetch(key("a"), 11, MINUTE)));
        assertEquals("60001=5", times(store.backwardFetch(key("a"), 13, Long.MAX_VALUE)));
        assertEquals("", times(store.fetch(key("a"), 13, MINUTE)));
        assertEquals("", times(store.fetch(key("a"), 12, 10)));
        assertEquals("10=1", times(store.fetch(key("a"), -5, 10)));
        assertEquals("", times(store.fetch(key("a"), -5, -1)));
    }

    @ParameterizedTest
    @EnumSource
    void windowsOfARangeOfKeys(Commits when) {
        open(when);
        putFourKeysAtTimes();
        assertEquals("a@10=1 a@12=3 b@10=2 a@60001=5 b@60001=6",
                windows(store.fetch(key("a"), key("b"), 0, 2 * MINUTE)));
        assertEquals("b@60001=6 a@60001=5 b@10=2 a@12=3 a@10=1",
                windows(store.backwardFetch(key("a"), key("b"), 0, 2 * MINUTE)));
        assertEquals("b@10=2 c@15=4", windows(store.fetch(key("b"), null, 0, MINUTE)));
        assertEquals("a@10=1 b@10=2", windows(store.fetch(null, key("b"), 0, 11)));
        assertEquals("c@15=4 b@10=2 a@12=3 a@10=1",
                windows(store.backwardFetch(null, null, 0, MINUTE)));
        assertEquals("", windows(store.fetch(key("b"), key("a"), 0, MINUTE)));
    }

    @ParameterizedTest
    @EnumSource
    void allWindowsAndThoseOfATime(Commits when) {
        open(when);
        putFourKeysAtTimes();
        String all = "a@10=1 a@12=3 b@10=2 c@15=4 a@60001=5 b@60001=6";
        assertEquals(all, windows(store.all()));
        assertEquals(all, windows(store.fetchAll(0, Long.MAX_VALUE)));
        assertEquals("b@60001=6 a@60001=5 c@15=4 b@10=2 a@12=3 a@10=1",
                windows(store.backwardAll()));
        assertEquals("a@12=3 c@15=4 a@60001=5 b@60001=6",
                windows(store.fetchAll(11, MINUTE + 1)));
        assertEquals("c@15=4 a@12=3", windows(store.backwardFetchAll(11, MINUTE)));
        assertEquals("", windows(store.fetchAll(16, MINUTE)));
    }

    @ParameterizedTest
    @EnumSource
    void aLoopOverWindowsMayPutOthersAheadOfItself(Commits when) {
        open(when);
        put("a", "1", 10);
        put("b", "2", 11);
        put("c", "3", 11);
        List<String> keys = new ArrayList<>();
        try (KeyValueIterator<Windowed<Bytes>, byte[]> rows = store.all()) {
            while (rows.hasNext() && keys.size() < 20) {
                String key = text(rows.next().key.key().get());
                keys.add(key);
                put("x" + key, "4", 11);
            }
        }
        assertEquals(List.of("a", "b", "c"), keys);
    }

    @ParameterizedTest
    @EnumSource
    void whatIsOlderThanTheRetentionIsHidden(Commits when) {
        open(when);
        put("a", "1", 0);
        put("a", "2", 1);
        assertEquals("0=1 1=2", times(store.fetch(key("a"), 0, MINUTE)));
        put("b", "3", RETENTION);
        assertNull(store.fetch(key("a"), 0), "stream time - retention is too old");
        assertEquals("2", text(store.fetch(key("a"), 1)), "a millisecond later is not");
        assertEquals("1=2", times(store.fetch(key("a"), 0, MINUTE)));
        assertEquals("a@1=2 b@120000=3", windows(store.all()));
        assertEquals("b@120000=3 a@1=2", windows(store.backwardAll()));
        assertEquals("a@1=2", windows(store.fetch(null, key("a"), 0, RETENTION)));
        put("a", "late", 0);
        assertNull(store.fetch(key("a"), 0), "it came too late");
        put("a", "in time", 1);
        assertEquals("in time", text(store.fetch(key("a"), 1)));
    }

    @ParameterizedTest
    @EnumSource
    void segmentsGoAsTimeGoesOn(Commits when) {
        open(when);
        for (int minute = 0; minute < 10; minute++) {
            put("a", "v" + minute, minute * MINUTE);
            put("b", "v" + minute, minute * MINUTE + 1);
        }
        assertEquals("a@480000=v8 b@480001=v8 a@540000=v9 b@540001=v9", windows(store.all()));
        store.commit(Map.of(Commits.CHANGELOG, 1_000L));
        assertEquals(7, store.rows().firstSegment(), "earlier segments have no rows any more");
        put("c", "far", 100 * MINUTE);
        store.commit(Map.of(Commits.CHANGELOG, 1_001L));
        assertEquals("c@6000000=far", windows(store.all()));
        assertEquals(100, store.rows().firstSegment());
    }

    @ParameterizedTest
    @EnumSource
    void duplicatesAreKept(Commits when) {
        open(when, true);
        put("a", "1", 10);
        put("a", "2", 10);
        put("a", null, 10);
        put("a", "3", 11);
        put("ab", "4", 10);
        assertEquals("10=1 10=2 11=3", times(store.fetch(key("a"), 0, MINUTE)));
        assertEquals("11=3 10=2 10=1", times(store.backwardFetch(key("a"), 0, MINUTE)));
        assertEquals("a@10=1 a@10=2 a@11=3 ab@10=4", windows(store.all()));
        store.commit(Map.of(Commits.CHANGELOG, 9L));
        store.close();
        open(when, true);
        put("a", "5", 10);
        assertEquals("10=1 10=2 10=5 11=3", times(store.fetch(key("a"), 0, MINUTE)),
                "numbers go on after opening");
    }

    @ParameterizedTest
    @EnumSource
    void keysThatBeginWithOthersAreApart(Commits when) {
        open(when);
        List<byte[]> keys = List.of(new byte[] {0}, new byte[] {0, 0}, new byte[] {0, 0, 1},
                new byte[] {0, 0, 0, 0, 0, 0, 0, 0, 0}, new byte[] {0, 1}, new byte[] {1},
                new byte[] {-1}, new byte[] {-1, 0}, new byte[] {-1, -1});
        for (byte[] key : keys) {
            for (long time : new long[] {0, 1, 256, MINUTE}) {
                store.put(Bytes.wrap(key), ByteBuffer.allocate(9).putLong(time)
                        .put((byte) key.length).array(), time);
                commits.after(store);
            }
        }
        for (byte[] key : keys) {
            List<Long> found = new ArrayList<>();
            store.fetch(Bytes.wrap(key), 0, MINUTE).forEachRemaining(row -> {
                assertEquals(key.length, row.value[8]);
                found.add(row.key);
            });
            assertEquals(List.of(0L, 1L, 256L, MINUTE), found);
        }
        for (int from = 0; from < keys.size(); from++) {
            for (int to = from; to < keys.size(); to++) {
                int rows = 0;
                var range = store.fetch(Bytes.wrap(keys.get(from)), Bytes.wrap(keys.get(to)), 0,
                        MINUTE);
                for (; range.hasNext(); range.next()) {
                    rows++;
                }
                assertEquals(countBetween(keys, from, to) * 4, rows, from + " to " + to);
            }
        }
    }

    private static int countBetween(List<byte[]> keys, int from, int to) {
        return (int) keys.stream().map(Bytes::wrap)
                .filter(key -> key.compareTo(Bytes.wrap(keys.get(from))) >= 0)
                .filter(key -> key.compareTo(Bytes.wrap(keys.get(to))) <= 0).count();
    }

    @ParameterizedTest
    @EnumSource
    void emptyFetchesAreOneSharedIterator(Commits when) {
        open(when);
        assertSame(StateIterator.noTimes(), store.fetch(key("a"), 0, MINUTE), "no rows at all");
        assertSame(StateIterator.noWindows(), store.all());
        putFourKeysAtTimes();
        assertSame(StateIterator.noTimes(), store.fetch(key("x"), 0, 2 * MINUTE));
        assertSame(StateIterator.noTimes(), store.fetch(key("a"), 13, MINUTE));
        assertSame(StateIterator.noWindows(), store.fetch(key("x"), key("z"), 0, MINUTE));
        assertSame(StateIterator.noWindows(), store.fetch(key("b"), key("a"), 0, MINUTE));
    }

    @ParameterizedTest
    @EnumSource
    void nullKeysAreRefused(Commits when) {
        open(when);
        assertThrows(NullPointerException.class, () -> store.put(null, new byte[1], 1));
        assertThrows(NullPointerException.class, () -> store.fetch(null, 1));
        assertThrows(NullPointerException.class, () -> store.fetch(null, 1, 2));
        assertThrows(NullPointerException.class, () -> store.backwardFetch(null, 1, 2));
    }

    @ParameterizedTest
    @EnumSource
    void aRestoreBringsWhatIsLive(Commits when) {
        open(when, true);
        restore("a", 10, 1, "1");
        restore("a", 10, 2, "2");
        restore("a", MINUTE, 7, "3");
        restore("a", 10, 1, null);
        commits.after(store);
        assertEquals("10=2 60000=3", times(store.fetch(key("a"), 0, MINUTE)));
        put("a", "4", MINUTE);
        assertEquals("10=2 60000=3 60000=4", times(store.fetch(key("a"), 0, MINUTE)),
                "numbers go on after the restore");
        restore("b", 10 * MINUTE, 1, "5");
        restore("b", 10, 1, "expired");
        assertEquals("b@600000=5", windows(store.all()));
    }

    private void restore(String key, long time, int number, String value) {
        byte[] bytes = key.getBytes(StandardCharsets.UTF_8);
        byte[] changelogKey = ByteBuffer.allocate(bytes.length + 12).put(bytes).putLong(time)
                .putInt(number).array();
        context.restore(changelogKey,
                value == null ? null : value.getBytes(StandardCharsets.UTF_8));
    }

    @ParameterizedTest
    @EnumSource
    void streamTimeIsCommitted(Commits when) {
        open(when);
        put("a", "1", 10);
        put("b", "2", RETENTION + 20);
        store.commit(Map.of(Commits.CHANGELOG, 5L));
        store.close();
        open(when);
        assertNull(store.fetch(key("a"), 10), "it is hidden after opening, too");
        assertEquals("b@120020=2", windows(store.all()));
    }

    @ParameterizedTest
    @EnumSource
    void aCorruptStateHasNoStreamTimeEither(Commits when) {
        open(when);
        store.committedOffset(Commits.CHANGELOG);
        put("a", "1", RETENTION * 10);
        store.commit(Map.of());
        put("a", "2", 10);
        assertEquals("10=2", times(store.fetch(key("a"), 0, MINUTE)));
        store.commit(Map.of(Commits.CHANGELOG, 5L));
        store.close();
        open(when);
        assertEquals("a@10=2", windows(store.all()));
    }

    @ParameterizedTest
    @EnumSource
    void windowsAtTheEndOfTime(Commits when) {
        open(when);
        put("a", "1", Long.MAX_VALUE - 1);
        put("a", "2", Long.MAX_VALUE - SIZE);
        List<Long> ends = new ArrayList<>();
        store.all().forEachRemaining(row -> ends.add(row.key.window().end()));
        assertEquals(List.of(Long.MAX_VALUE, Long.MAX_VALUE), ends);
        assertEquals("9223372036854775804=2 9223372036854775806=1",
                times(store.fetch(key("a"), 0, Long.MAX_VALUE)));
    }
}
