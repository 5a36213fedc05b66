package dev.trommel.kafka;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.function.Function;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.state.HeadersBytesStore;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.TimestampedBytesStore;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Key-value stores, wherever their rows are. */
class KeyValueStoreTest {
    @TempDir
    Path state;

    private KeyValueBytes store;
    private Commits commits;

    private void open(Commits when) {
        open(when, KeyValueBytes::new);
    }

    private void open(Commits when, Function<String, KeyValueBytes> make) {
        commits = when;
        store = make.apply("store");
        store.init(new TaskContext(state), store);
    }

    @AfterEach
    void close() {
        store.close();
    }

    private static Bytes key(String text) {
        return Bytes.wrap(text.getBytes(StandardCharsets.UTF_8));
    }

    private static byte[] value(String text) {
        return text == null ? null : text.getBytes(StandardCharsets.UTF_8);
    }

    private static String text(byte[] value) {
        return value == null ? null : new String(value, StandardCharsets.UTF_8);
    }

    private void put(String key, String value) {
        store.put(key(key), value(value));
        commits.after(store);
    }

    private String get(String key) {
        return text(store.get(key(key)));
    }

    private static String all(KeyValueIterator<Bytes, byte[]> rows) {
        List<String> texts = new ArrayList<>();
        try (rows) {
            while (rows.hasNext()) {
                Bytes peeked = rows.peekNextKey();
                KeyValue<Bytes, byte[]> row = rows.next();
                assertEquals(peeked, row.key);
                texts.add(text(row.key.get()) + "=" + text(row.value));
            }
            assertThrows(NoSuchElementException.class, rows::next);
            assertThrows(NoSuchElementException.class, rows::peekNextKey);
        }
        return String.join(" ", texts);
    }

    @ParameterizedTest
    @EnumSource
    void whatWasPutLastIsThere(Commits when) {
        open(when);
        assertNull(get("a"));
        put("a", "1");
        put("b", "2");
        put("a", "3");
        assertEquals("3", get("a"));
        assertEquals("2", get("b"));
        put("a", null);
        assertNull(get("a"));
        put("a", "");
        assertEquals("", get("a"), "an empty value is a value");
        assertEquals("a= b=2", all(store.all()));
    }

    @ParameterizedTest
    @EnumSource
    void deleteGivesWhatWasThere(Commits when) {
        open(when);
        put("a", "1");
        assertEquals("1", text(store.delete(key("a"))));
        commits.after(store);
        assertNull(store.delete(key("a")));
        assertNull(get("a"));
    }

    @ParameterizedTest
    @EnumSource
    void putIfAbsentKeepsWhatIsThere(Commits when) {
        open(when);
        assertNull(store.putIfAbsent(key("a"), value("1")));
        commits.after(store);
        assertEquals("1", text(store.putIfAbsent(key("a"), value("2"))));
        commits.after(store);
        assertEquals("1", get("a"));
        put("a", null);
        assertNull(store.putIfAbsent(key("a"), value("3")));
        assertEquals("3", get("a"));
    }

    @ParameterizedTest
    @EnumSource
    void putAllPutsAndDeletes(Commits when) {
        open(when);
        put("gone", "0");
        store.putAll(List.of(KeyValue.pair(key("a"), value("1")),
                KeyValue.pair(key("b"), value("2")), KeyValue.pair(key("gone"), null)));
        commits.after(store);
        assertEquals("a=1 b=2", all(store.all()));
    }

    @ParameterizedTest
    @EnumSource
    void rangesIncludeBothEnds(Commits when) {
        open(when);
        for (String key : List.of("a", "b", "ba", "c", "d")) {
            put(key, "v" + key);
        }
        assertEquals("b=vb ba=vba c=vc", all(store.range(key("b"), key("c"))));
        assertEquals("c=vc ba=vba b=vb", all(store.reverseRange(key("b"), key("c"))));
        assertEquals("a=va b=vb", all(store.range(null, key("b"))));
        assertEquals("d=vd c=vc", all(store.reverseRange(key("bz"), null)));
        assertEquals("a=va b=vb ba=vba c=vc d=vd", all(store.range(null, null)));
        assertEquals("d=vd c=vc ba=vba b=vb a=va", all(store.reverseAll()));
        assertEquals("", all(store.range(key("bb"), key("bz"))));
        assertEquals("b=vb", all(store.range(key("b"), key("b"))));
    }

    @ParameterizedTest
    @EnumSource
    void deletedRowsAreInNoRange(Commits when) {
        open(when);
        for (int number = 0; number < 10; number++) {
            put("k" + number, "v");
        }
        for (int number = 1; number < 10; number += 2) {
            put("k" + number, null);
        }
        assertEquals("k2=v k4=v k6=v", all(store.range(key("k1"), key("k7"))));
        assertEquals("k6=v k4=v k2=v", all(store.reverseRange(key("k1"), key("k7"))));
        assertEquals("", all(store.range(key("k3"), key("k3"))));
    }

    @ParameterizedTest
    @EnumSource
    void anEmptyRangeIsOneSharedIterator(Commits when) {
        open(when);
        put("a", "1");
        assertSame(store.range(key("x"), key("y")), store.range(key("m"), key("n")));
        assertSame(StateIterator.noKeys(), store.range(key("z"), key("b")), "wrong way round");
        assertSame(StateIterator.noKeys(), store.reverseRange(key("z"), key("b")));
    }

    @ParameterizedTest
    @EnumSource
    void prefixesFindTheirKeysAlone(Commits when) {
        open(when);
        for (String key : List.of("ab", "abc", "abz", "ac", "b")) {
            put(key, "1");
        }
        assertEquals("ab=1 abc=1 abz=1", all(store.prefixScan("ab", new StringSerializer())));
        assertEquals("", all(store.prefixScan("x", new StringSerializer())));
        store.put(Bytes.wrap(new byte[] {-1, -1}), value("last"));
        commits.after(store);
        KeyValueIterator<Bytes, byte[]> last =
                store.prefixScan(new byte[] {-1}, (topic, bytes) -> bytes);
        assertEquals("last", text(last.next().value));
        assertFalse(last.hasNext());
    }

    @ParameterizedTest
    @EnumSource
    void keysAreBytesWithoutSign(Commits when) {
        open(when);
        for (int number : new int[] {0, 1, 127, 128, 255}) {
            store.put(Bytes.wrap(new byte[] {(byte) number}), new byte[] {(byte) number});
            commits.after(store);
        }
        List<Integer> numbers = new ArrayList<>();
        store.all().forEachRemaining(row -> numbers.add(row.key.get()[0] & 0xFF));
        assertEquals(List.of(0, 1, 127, 128, 255), numbers);
    }

    @ParameterizedTest
    @EnumSource
    void nullKeysAreRefusedByName(Commits when) {
        open(when);
        assertThrows(NullPointerException.class, () -> store.put(null, value("1")));
        assertThrows(NullPointerException.class, () -> store.get(null));
        assertThrows(NullPointerException.class, () -> store.delete(null));
        assertThrows(NullPointerException.class, () -> store.putIfAbsent(null, value("1")));
        assertThrows(NullPointerException.class,
                () -> store.prefixScan(null, new StringSerializer()));
        assertThrows(NullPointerException.class, () -> store.prefixScan("a", null));
    }

    @ParameterizedTest
    @EnumSource
    void anIteratorShowsNothingOfACommitInBetween(Commits when) {
        open(when);
        put("a", "1");
        put("b", "2");
        KeyValueIterator<Bytes, byte[]> rows = store.all();
        assertEquals("1", text(rows.next().value));
        store.commit(java.util.Map.of(Commits.CHANGELOG, 100L));
        assertEquals("2", text(rows.next().value), "a row that was committed meanwhile");
        assertFalse(rows.hasNext());
        rows.close();
    }

    @ParameterizedTest
    @EnumSource
    void aLoopOverRowsMayPutOthersAheadOfItself(Commits when) {
        open(when);
        for (int number = 501; number <= 505; number++) {
            put(Integer.toString(number), "v");
        }
        assertEquals("501 502 503 504 505", visited(store.all(), 100));
        assertEquals("605 604 603 602 601 505 504 503 502 501", visited(store.reverseAll(), -200));
    }

    /** Which keys a loop visits that puts a row so far from each. */
    private String visited(KeyValueIterator<Bytes, byte[]> rows, int distance) {
        List<String> keys = new ArrayList<>();
        try (rows) {
            while (rows.hasNext() && keys.size() < 20) {
                String key = text(rows.next().key.get());
                keys.add(key);
                put(Integer.toString(Integer.parseInt(key) + distance), "v");
            }
        }
        return String.join(" ", keys);
    }

    @ParameterizedTest
    @EnumSource
    void closedOnesSaySo(Commits when) {
        open(when);
        put("a", "1");
        KeyValueIterator<Bytes, byte[]> closed = store.all();
        closed.close();
        assertThrows(InvalidStateStoreException.class, closed::hasNext);
        KeyValueIterator<Bytes, byte[]> open = store.all();
        store.close();
        assertThrows(InvalidStateStoreException.class, open::next);
        assertThrows(InvalidStateStoreException.class, () -> store.get(key("a")));
        assertThrows(InvalidStateStoreException.class, () -> store.put(key("a"), value("1")));
        assertFalse(store.isOpen());
        store.close();
    }

    @ParameterizedTest
    @EnumSource
    void countsAreAbout(Commits when) {
        open(when);
        for (int number = 0; number < 100; number++) {
            put("key" + number, "value");
        }
        long count = store.approximateNumEntries();
        assertTrue(count >= 50 && count <= 200, "100 rows, and it says " + count);
    }

    @ParameterizedTest
    @EnumSource
    void formatsAreMarked(Commits when) {
        open(when, KeyValueBytes.Timestamped::new);
        assertTrue(store instanceof TimestampedBytesStore);
        put("a", "12345678payload");
        assertArrayEquals(value("12345678payload"), store.get(key("a")));
        store.close();
        open(when, KeyValueBytes.WithHeaders::new);
        assertTrue(store instanceof HeadersBytesStore);
        assertFalse(store instanceof TimestampedBytesStore);
    }

    @ParameterizedTest
    @EnumSource
    void manyRowsComeInOrder(Commits when) {
        open(when == Commits.ALWAYS ? Commits.SOMETIMES : when);
        for (int number = 0; number < 3_000; number++) {
            put(String.format("%05d", (number * 7_919) % 3_000), "v" + number);
        }
        int expected = 0;
        try (KeyValueIterator<Bytes, byte[]> rows = store.all()) {
            while (rows.hasNext()) {
                assertEquals(String.format("%05d", expected++), text(rows.next().key.get()));
            }
        }
        assertEquals(3_000, expected);
    }
}
