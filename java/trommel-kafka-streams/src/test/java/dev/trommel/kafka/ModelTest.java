package dev.trommel.kafka;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
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
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Stores beside maps that are too plain to be wrong, with random calls: puts, reads, commits,
 * closing without a commit, wiped folders. A history is told by its seed.
 */
class ModelTest {
    private static final int STEPS = 1_500;
    private static final long RETENTION = 120_000;

    @TempDir
    Path state;

    /** Rows of a store by their keys in the changelog, and what was committed of them. */
    private static final class Model {
        TreeMap<byte[], byte[]> rows = new TreeMap<>(Arrays::compareUnsigned);
        TreeMap<byte[], byte[]> committed = new TreeMap<>(Arrays::compareUnsigned);
        long time = -1;
        long committedTime = -1;
        long offset;
        Long committedOffset;
        /** An offset of a store that never had a row is not taken. */
        boolean applied;

        void set(byte[] key, byte[] value) {
            if (value == null) {
                rows.remove(key);
            } else {
                rows.put(key, value);
            }
        }

        void commit() {
            committed = new TreeMap<>(rows);
            committedTime = time;
            committedOffset = offset;
        }

        void crash() {
            rows = new TreeMap<>(committed);
            time = committedTime;
            offset = committedOffset == null ? 0 : committedOffset;
            applied = committedOffset != null;
        }

        void wipe() {
            committed.clear();
            committedTime = -1;
            committedOffset = null;
            crash();
        }

        boolean isLive(long at) {
            return at >= 0 && at > time - RETENTION;
        }
    }

    private interface Opening {
        BytesStore open(TaskContext context);
    }

    /** A commit, a crash or a wiped folder now and then. The store that is open afterwards. */
    private BytesStore event(BytesStore store, Model model, Random random, Opening opening)
            throws IOException {
        model.offset++;
        int what = random.nextInt(100);
        if (what < 10) {
            store.commit(Map.of(Commits.CHANGELOG, model.offset));
            if (model.applied) {
                model.commit();
            }
        }
        if (what < 98) {
            return store;
        }
        store.close();
        if (what == 99 && random.nextInt(3) == 0) {
            LifecycleTest.delete(new TaskContext(state).folder());
            model.wipe();
        }
        model.crash();
        BytesStore reopened = opening.open(new TaskContext(state));
        if (model.committedOffset != null) {
            assertEquals(model.committedOffset, reopened.committedOffset(Commits.CHANGELOG));
        }
        return reopened;
    }

    /** Short keys of few bytes, so that many are alike and begin with each other. */
    private static byte[] key(Random random) {
        byte[] key = new byte[1 + random.nextInt(3)];
        for (int at = 0; at < key.length; at++) {
            key[at] = new byte[] {0, 1, 'a', (byte) 0xFF}[random.nextInt(4)];
        }
        return key;
    }

    private static byte[] value(Random random) {
        byte[] value = random.nextInt(5) == 0 ? null : new byte[random.nextInt(20)];
        if (value != null) {
            random.nextBytes(value);
        }
        return value;
    }

    private static Bytes keyOrNull(Random random) {
        return random.nextInt(6) == 0 ? null : Bytes.wrap(key(random));
    }

    private static boolean isWithin(byte[] key, Bytes from, Bytes to) {
        return (from == null || Arrays.compareUnsigned(key, from.get()) >= 0)
                && (to == null || Arrays.compareUnsigned(key, to.get()) <= 0);
    }

    private static void assertSame(
            List<KeyValue<byte[], byte[]>> expected, KeyValueIterator<?, byte[]> found,
            Keys keys, boolean reverse) {
        List<KeyValue<byte[], byte[]>> ordered = new ArrayList<>(expected);
        if (reverse) {
            java.util.Collections.reverse(ordered);
        }
        try (found) {
            for (KeyValue<byte[], byte[]> row : ordered) {
                KeyValue<?, byte[]> next = found.next();
                assertArrayEquals(row.key, keys.bytes(next.key));
                assertArrayEquals(row.value, next.value);
            }
            assertEquals(false, found.hasNext());
        }
    }

    private interface Keys {
        byte[] bytes(Object key);
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6})
    void keyValues(long seed) throws IOException {
        Random random = new Random(seed);
        Model model = new Model();
        Opening opening = context -> {
            KeyValueBytes opened = new KeyValueBytes("store");
            opened.init(context, opened);
            return opened;
        };
        KeyValueBytes store = (KeyValueBytes) opening.open(new TaskContext(state));
        Keys keys = key -> ((Bytes) key).get();
        for (int step = 0; step < STEPS; step++) {
            byte[] key = key(random);
            if (random.nextBoolean()) {
                byte[] value = value(random);
                model.applied = true;
                store.put(Bytes.wrap(key), value);
                model.set(key, value);
            }
            assertArrayEquals(model.rows.get(key), store.get(Bytes.wrap(key)));
            Bytes from = keyOrNull(random);
            Bytes to = keyOrNull(random);
            boolean reverse = random.nextBoolean();
            List<KeyValue<byte[], byte[]>> expected = new ArrayList<>();
            model.rows.forEach((at, value) -> {
                if (isWithin(at, from, to)) {
                    expected.add(KeyValue.pair(at, value));
                }
            });
            assertSame(expected, reverse ? store.reverseRange(from, to) : store.range(from, to),
                    keys, reverse);
            store = (KeyValueBytes) event(store, model, random, opening);
        }
        store.close();
    }

    private static byte[] windowKey(byte[] key, long start) {
        return ByteBuffer.allocate(key.length + 12).put(key).putLong(start).putInt(0).array();
    }

    private static byte[] keyOfWindow(byte[] changelogKey) {
        return Arrays.copyOf(changelogKey, changelogKey.length - 12);
    }

    private static long startOfWindow(byte[] changelogKey) {
        return ByteBuffer.wrap(changelogKey).getLong(changelogKey.length - 12);
    }

    private static long time(Random random, long now) {
        return Math.max(0, now + random.nextInt(50_000) - 40_000);
    }

    /** In the order of stores: segment by segment. */
    private interface Segment {
        long of(byte[] changelogKey);
    }

    private static List<KeyValue<byte[], byte[]>> inOrder(
            List<KeyValue<byte[], byte[]>> rows, Segment segment) {
        rows.sort((one, two) -> {
            int order = Long.compare(segment.of(one.key), segment.of(two.key));
            return order != 0 ? order : Arrays.compareUnsigned(one.key, two.key);
        });
        return rows;
    }

    @ParameterizedTest
    @ValueSource(longs = {11, 12, 13, 14, 15, 16})
    void windows(long seed) throws IOException {
        Random random = new Random(seed);
        Model model = new Model();
        Opening opening = context -> {
            WindowBytes opened = new WindowBytes(new WindowShape("store",
                    Duration.ofMillis(RETENTION), Duration.ofMillis(10), false));
            opened.init(context, opened);
            return opened;
        };
        WindowBytes store = (WindowBytes) opening.open(new TaskContext(state));
        for (int step = 0; step < STEPS; step++) {
            byte[] key = key(random);
            long start = time(random, model.time);
            if (random.nextBoolean()) {
                byte[] value = value(random);
                model.applied = true;
                store.put(Bytes.wrap(key), value, start);
                model.time = Math.max(model.time, start);
                if (model.isLive(start)) {
                    model.set(windowKey(key, start), value);
                }
            }
            checkWindows(store, model, random, key, start);
            store = (WindowBytes) event(store, model, random, opening);
        }
        store.close();
    }

    private static void checkWindows(
            WindowBytes store, Model model, Random random, byte[] key, long start) {
        byte[] expectedOne = model.isLive(start) ? model.rows.get(windowKey(key, start)) : null;
        assertArrayEquals(expectedOne, store.fetch(Bytes.wrap(key), start));
        long from = time(random, model.time - random.nextInt(200_000));
        long to = random.nextInt(5) == 0 ? Long.MAX_VALUE : from + random.nextInt(150_000);
        boolean one = random.nextBoolean();
        boolean reverse = random.nextBoolean();
        Bytes keyFrom = one ? Bytes.wrap(key) : keyOrNull(random);
        Bytes keyTo = one ? keyFrom : keyOrNull(random);
        List<KeyValue<byte[], byte[]>> expected = new ArrayList<>();
        model.rows.forEach((at, value) -> {
            long time = startOfWindow(at);
            if (isWithin(keyOfWindow(at), keyFrom, keyTo) && time >= from && time <= to
                    && model.isLive(time)) {
                expected.add(KeyValue.pair(at, value));
            }
        });
        inOrder(expected, at -> startOfWindow(at) / 60_000);
        KeyValueIterator<?, byte[]> found;
        Keys keys = found1 -> {
            Windowed<?> window = (Windowed<?>) found1;
            return windowKey(((Bytes) window.key()).get(), window.window().start());
        };
        if (one) {
            found = reverse ? store.backwardFetch(keyFrom, from, to)
                    : store.fetch(keyFrom, from, to);
            keys = time -> windowKey(key, (Long) time);
        } else {
            found = reverse ? store.backwardFetch(keyFrom, keyTo, from, to)
                    : store.fetch(keyFrom, keyTo, from, to);
        }
        assertSame(expected, found, keys, reverse);
    }

    private static byte[] sessionKey(byte[] key, long start, long end) {
        return ByteBuffer.allocate(key.length + 16).put(key).putLong(end).putLong(start).array();
    }

    private static long endOfSession(byte[] changelogKey) {
        return ByteBuffer.wrap(changelogKey).getLong(changelogKey.length - 16);
    }

    private static long startOfSession(byte[] changelogKey) {
        return ByteBuffer.wrap(changelogKey).getLong(changelogKey.length - 8);
    }

    @ParameterizedTest
    @ValueSource(longs = {21, 22, 23, 24, 25, 26})
    void sessions(long seed) throws IOException {
        Random random = new Random(seed);
        Model model = new Model();
        Opening opening = context -> {
            SessionBytes opened = new SessionBytes("store", RETENTION);
            opened.init(context, opened);
            return opened;
        };
        SessionBytes store = (SessionBytes) opening.open(new TaskContext(state));
        for (int step = 0; step < STEPS; step++) {
            byte[] key = key(random);
            long end = time(random, model.time);
            long start = Math.max(0, end - random.nextInt(3) * 1_000);
            if (random.nextBoolean()) {
                byte[] value = value(random);
                model.applied = true;
                store.put(new Windowed<>(Bytes.wrap(key), new SessionWindow(start, end)), value);
                model.time = Math.max(model.time, end);
                if (model.isLive(end)) {
                    model.set(sessionKey(key, start, end), value);
                }
            }
            checkSessions(store, model, random, key);
            store = (SessionBytes) event(store, model, random, opening);
        }
        store.close();
    }

    private static void checkSessions(
            SessionBytes store, Model model, Random random, byte[] key) {
        long earliestEnd = time(random, model.time - random.nextInt(200_000));
        long latestStart = random.nextInt(5) == 0 ? Long.MAX_VALUE
                : earliestEnd + random.nextInt(50_000);
        boolean one = random.nextBoolean();
        boolean reverse = random.nextBoolean();
        Bytes keyFrom = one ? Bytes.wrap(key) : keyOrNull(random);
        Bytes keyTo = one ? keyFrom : keyOrNull(random);
        List<KeyValue<byte[], byte[]>> expected = new ArrayList<>();
        model.rows.forEach((at, value) -> {
            byte[] itsKey = Arrays.copyOf(at, at.length - 16);
            if (isWithin(itsKey, keyFrom, keyTo) && endOfSession(at) >= earliestEnd
                    && startOfSession(at) <= latestStart && model.isLive(endOfSession(at))) {
                expected.add(KeyValue.pair(at, value));
            }
        });
        inOrder(expected, at -> endOfSession(at) / 60_000);
        KeyValueIterator<Windowed<Bytes>, byte[]> found;
        if (one) {
            found = reverse ? store.backwardFindSessions(keyFrom, earliestEnd, latestStart)
                    : store.findSessions(keyFrom, earliestEnd, latestStart);
        } else {
            found = reverse
                    ? store.backwardFindSessions(keyFrom, keyTo, earliestEnd, latestStart)
                    : store.findSessions(keyFrom, keyTo, earliestEnd, latestStart);
        }
        assertSame(expected, found, session -> {
            Windowed<?> window = (Windowed<?>) session;
            return sessionKey(((Bytes) window.key()).get(), window.window().start(),
                    window.window().end());
        }, reverse);
    }
}
