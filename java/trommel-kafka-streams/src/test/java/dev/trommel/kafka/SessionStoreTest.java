package dev.trommel.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Session stores: what overlaps a time, keys, retention, wherever rows are. */
class SessionStoreTest {
    private static final long RETENTION = 120_000;

    @TempDir
    Path state;

    private SessionBytes store;
    private TaskContext context;
    private Commits commits;

    private void open(Commits when) {
        commits = when;
        context = new TaskContext(state);
        store = new SessionBytes("store", RETENTION);
        store.init(context, store);
    }

    @AfterEach
    void close() {
        store.close();
    }

    private static Bytes key(String text) {
        return text == null ? null : Bytes.wrap(text.getBytes(StandardCharsets.UTF_8));
    }

    private static Windowed<Bytes> session(String key, long start, long end) {
        return new Windowed<>(key(key), new SessionWindow(start, end));
    }

    private void put(String key, long start, long end, String value) {
        store.put(session(key, start, end),
                value == null ? null : value.getBytes(StandardCharsets.UTF_8));
        commits.after(store);
    }

    private static String all(KeyValueIterator<Windowed<Bytes>, byte[]> rows) {
        List<String> texts = new ArrayList<>();
        try (rows) {
            while (rows.hasNext()) {
                Windowed<Bytes> peeked = rows.peekNextKey();
                KeyValue<Windowed<Bytes>, byte[]> row = rows.next();
                assertEquals(peeked, row.key);
                texts.add(new String(row.key.key().get(), StandardCharsets.UTF_8)
                        + row.key.window().start() + "-" + row.key.window().end() + "="
                        + new String(row.value, StandardCharsets.UTF_8));
            }
        }
        return String.join(" ", texts);
    }

    private void putSome() {
        put("a", 0, 0, "1");
        put("a", 100, 200, "2");
        put("b", 50, 150, "3");
        put("a", 500, 900, "4");
        put("aa", 10, 20, "5");
        put("c", 60_000, 60_100, "6");
    }

    @ParameterizedTest
    @EnumSource
    void oneSession(Commits when) {
        open(when);
        putSome();
        assertEquals("2", new String(store.fetchSession(key("a"), 100, 200)));
        assertNull(store.fetchSession(key("a"), 100, 201));
        assertNull(store.fetchSession(key("a"), 101, 200));
        store.remove(session("a", 100, 200));
        commits.after(store);
        assertNull(store.fetchSession(key("a"), 100, 200));
        put("a", 500, 900, null);
        assertEquals("a0-0=1", all(store.fetch(key("a"))));
    }

    @ParameterizedTest
    @EnumSource
    void sessionsThatOverlapATime(Commits when) {
        open(when);
        putSome();
        assertEquals("a100-200=2", all(store.findSessions(key("a"), 100, 300)));
        assertEquals("a100-200=2 a500-900=4", all(store.findSessions(key("a"), 200, 500)));
        assertEquals("a500-900=4 a100-200=2", all(store.backwardFindSessions(key("a"), 200, 500)));
        assertEquals("a100-200=2", all(store.findSessions(key("a"), 200, 499)));
        assertEquals("a500-900=4", all(store.findSessions(key("a"), 201, 500)));
        assertEquals("a0-0=1", all(store.findSessions(key("a"), 0, 0)));
        assertEquals("a0-0=1", all(store.findSessions(key("a"), -10, 0)));
        assertEquals("", all(store.findSessions(key("a"), 901, Long.MAX_VALUE)));
        assertEquals("", all(store.findSessions(key("x"), 0, Long.MAX_VALUE)));
    }

    @ParameterizedTest
    @EnumSource
    void sessionsOfKeys(Commits when) {
        open(when);
        putSome();
        assertEquals("a0-0=1 a100-200=2 a500-900=4", all(store.fetch(key("a"))));
        assertEquals("a500-900=4 a100-200=2 a0-0=1", all(store.backwardFetch(key("a"))));
        assertEquals("a0-0=1 a100-200=2 a500-900=4 aa10-20=5 b50-150=3",
                all(store.fetch(key("a"), key("b"))));
        assertEquals("b50-150=3 aa10-20=5", all(store.backwardFetch(key("aa"), key("b"))));
        assertEquals("b50-150=3 c60000-60100=6", all(store.fetch(key("b"), null)));
        assertEquals("aa10-20=5 a500-900=4 a100-200=2 a0-0=1",
                all(store.backwardFetch(null, key("aa"))));
        assertEquals("c60000-60100=6 b50-150=3 aa10-20=5 a500-900=4 a100-200=2 a0-0=1",
                all(store.backwardFetch(null, null)));
        assertEquals("a100-200=2 b50-150=3",
                all(store.findSessions(key("a"), key("b"), 100, 100)));
        assertEquals("", all(store.findSessions(key("b"), key("a"), 0, Long.MAX_VALUE)));
    }

    @ParameterizedTest
    @EnumSource
    void sessionsThatEndInATime(Commits when) {
        open(when);
        putSome();
        assertEquals("a100-200=2 b50-150=3", all(store.findSessions(150, 200)));
        assertEquals("a0-0=1 aa10-20=5", all(store.findSessions(0, 20)));
        assertEquals("c60000-60100=6", all(store.findSessions(901, 70_000)));
    }

    @ParameterizedTest
    @EnumSource
    void whatIsOlderThanTheRetentionIsHiddenAndGoes(Commits when) {
        open(when);
        put("a", 0, 5, "1");
        put("a", 3, 6, "2");
        put("b", 100, RETENTION + 5, "3");
        assertNull(store.fetchSession(key("a"), 0, 5));
        assertEquals("a3-6=2", all(store.fetch(key("a"))));
        assertEquals("a0-5=1 a3-6=2 b100-120005=3",
                all(store.findSessions(0, Long.MAX_VALUE)), "to be handed on as closed");
        put("a", 1, 5, "late");
        assertEquals("a3-6=2", all(store.fetch(key("a"))));
        put("c", 0, 10 * RETENTION, "4");
        assertEquals("c0-1200000=4", all(store.fetch(null, null)));
        store.commit(Map.of(Commits.CHANGELOG, 1_000L));
        assertEquals(20, store.rows().firstSegment());
    }

    @ParameterizedTest
    @EnumSource
    void emptyFindsAreOneSharedIterator(Commits when) {
        open(when);
        assertSame(StateIterator.noWindows(), store.fetch(key("a")));
        putSome();
        assertSame(StateIterator.noWindows(), store.findSessions(key("x"), 0, 1_000));
        assertSame(StateIterator.noWindows(), store.findSessions(key("b"), key("a"), 0, 1_000));
    }

    @ParameterizedTest
    @EnumSource
    void nullsAreRefused(Commits when) {
        open(when);
        assertThrows(NullPointerException.class, () -> store.put(null, new byte[1]));
        assertThrows(NullPointerException.class, () -> store.remove(null));
        assertThrows(NullPointerException.class, () -> store.fetch((Bytes) null));
        assertThrows(NullPointerException.class, () -> store.backwardFetch((Bytes) null));
        assertThrows(NullPointerException.class, () -> store.findSessions((Bytes) null, 1, 2));
        assertThrows(NullPointerException.class,
                () -> store.backwardFindSessions((Bytes) null, 1, 2));
        assertThrows(NullPointerException.class, () -> store.fetchSession(null, 1, 2));
    }

    @ParameterizedTest
    @EnumSource
    void aRestoreBringsWhatIsLive(Commits when) {
        open(when);
        restore("a", 5, 10, "1");
        restore("a", 5, 60_000, "2");
        restore("a", 5, 10, null);
        restore("b", 0, 20, "3");
        commits.after(store);
        assertEquals("b0-20=3 a5-60000=2", all(store.fetch(null, null)), "segment by segment");
    }

    private void restore(String key, long start, long end, String value) {
        byte[] bytes = key.getBytes(StandardCharsets.UTF_8);
        byte[] changelogKey = ByteBuffer.allocate(bytes.length + 16).put(bytes).putLong(end)
                .putLong(start).array();
        context.restore(changelogKey,
                value == null ? null : value.getBytes(StandardCharsets.UTF_8));
    }
}
