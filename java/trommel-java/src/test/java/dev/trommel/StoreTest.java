package dev.trommel;

import static dev.trommel.Bytes.bytes;
import static dev.trommel.Bytes.direct;
import static dev.trommel.Bytes.key;
import static dev.trommel.Bytes.text;
import static dev.trommel.Bytes.texts;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;

/** What a store and its key spaces do, method by method. */
final class StoreTest {
    /** A byte of the first block of a table. */
    private static final int DAMAGED_BYTE = 100;

    @TempDir Path folder;
    private Store store;

    @BeforeEach
    void open() {
        store = Store.open(folder.resolve("store"));
    }

    @AfterEach
    void close() {
        store.close();
    }

    @Test
    void keysHaveTheValuesThatWerePut() {
        assertNull(store.get(bytes("a")));
        store.put(bytes("a"), bytes("1"));
        store.put(bytes(""), bytes(""));
        assertEquals("1", text(store.get(bytes("a"))));
        assertEquals("", text(store.get(bytes(""))));
        assertTrue(store.containsKey(bytes("a")));
        store.delete(bytes("a"));
        store.delete(bytes("never there"));
        assertNull(store.get(bytes("a")));
        assertFalse(store.containsKey(bytes("a")));
    }

    @Test
    void longKeysAndValuesGoOverAsTheyAre() {
        for (int length : new int[] {255, 256, 257, 5000, 65_536}) {
            byte[] key = new byte[length];
            byte[] value = new byte[3 * length];
            Arrays.fill(key, (byte) length);
            Arrays.fill(value, (byte) (length + 1));
            store.put(key, value);
            assertArrayEquals(value, store.get(key));
        }
    }

    @Test
    void buffersCountFromPositionToLimit() {
        ByteBuffer key = ByteBuffer.allocateDirect(10).put(bytes("xxkeyxx")).position(2).limit(5);
        ByteBuffer value = ByteBuffer.allocateDirect(10).put(bytes("-value-")).position(1).limit(6);
        store.put(key, value);
        assertEquals(List.of(2, 5, 1, 6), places(key, value));
        assertEquals("value", text(store.get(bytes("key"))));
        store.put(ByteBuffer.wrap(bytes("xheap"), 1, 4), ByteBuffer.wrap(bytes("heap")));
        store.put(direct("mixed"), ByteBuffer.wrap(bytes("m")).asReadOnlyBuffer());
        assertEquals("heap", text(store.get(bytes("heap"))));
        assertEquals("m", text(store.get(bytes("mixed"))));
        store.put(ByteBuffer.allocateDirect(0), ByteBuffer.allocateDirect(0));
        assertEquals("", text(store.get(new byte[0])));
    }

    @Test
    void valuesGoIntoBuffersThatHaveRoom() {
        store.put(bytes("key"), bytes("value"));
        for (ByteBuffer key : List.of(direct("key"), ByteBuffer.wrap(bytes("key")))) {
            for (boolean isDirect : new boolean[] {true, false}) {
                ByteBuffer into = isDirect ? ByteBuffer.allocateDirect(9) : ByteBuffer.allocate(9);
                into.put(bytes("12")).limit(7);
                assertEquals(5, store.get(key, into));
                assertEquals("12value", text(Arguments.bytes(into.flip())));
                into.clear().position(5);
                assertEquals(5, store.get(bytes("key"), into), "the length, though no room");
                assertEquals(5, into.position());
                assertEquals("alue", text(Arguments.bytes(into.position(3).limit(7))));
                assertEquals(-1, store.get(direct("other"), into));
                assertEquals(-1, store.get(bytes("other"), into));
                assertEquals(3, into.position());
                assertEquals(0, key.position());
            }
        }
        ByteBuffer readOnly = ByteBuffer.allocateDirect(9).asReadOnlyBuffer();
        assertThrows(IllegalArgumentException.class, () -> store.get(bytes("key"), readOnly));
    }

    @Test
    void buffersOfAClosedArenaAreRefused() throws Exception {
        store.put(bytes("key"), bytes("value"));
        AutoCloseable arena = arena("ofConfined");
        ByteBuffer closed = buffer(arena).put(bytes("key")).flip();
        assertEquals(5, store.get(closed, ByteBuffer.allocateDirect(9)), "it is open yet");
        arena.close();
        refusesToTouch(closed, IllegalStateException.class);
        assertEquals("value", text(store.get(bytes("key"))), "nothing was written");
    }

    @Test
    void buffersOfAnotherThreadsArenaAreRefused() throws Exception {
        Class<?> wrongThread = wrongThread();
        ByteBuffer[] made = new ByteBuffer[1];
        CountDownLatch isMade = new CountDownLatch(1);
        CountDownLatch isTried = new CountDownLatch(1);
        FutureTask<Void> owner =
                new FutureTask<>(
                        () -> {
                            AutoCloseable arena = arena("ofConfined");
                            made[0] = buffer(arena).put(bytes("key")).flip();
                            isMade.countDown();
                            isTried.await();
                            arena.close();
                            return null;
                        });
        new Thread(owner).start();
        isMade.await();
        try {
            refusesToTouch(made[0], wrongThread);
        } finally {
            isTried.countDown();
        }
        owner.get();
    }

    @Test
    void buffersOfASharedArenaAreTaken() throws Exception {
        AutoCloseable arena = arena("ofShared");
        store.put(buffer(arena).put(bytes("key")).flip(), direct("value"));
        assertEquals(5, store.get(bytes("key"), buffer(arena)));
        arena.close();
    }

    private void refusesToTouch(ByteBuffer buffer, Class<?> thrown) {
        List<Executable> calls =
                List.of(
                        () -> store.get(bytes("key"), buffer),
                        () -> store.get(direct("key"), buffer),
                        () -> store.get(buffer, ByteBuffer.allocateDirect(9)),
                        () -> store.get(buffer, ByteBuffer.allocate(9)),
                        () -> store.put(buffer, direct("value")),
                        () -> store.put(direct("key"), buffer),
                        () -> store.put(ByteBuffer.wrap(bytes("key")), buffer));
        for (int place = 0; place < calls.size(); place++) {
            RuntimeException refused =
                    assertThrows(RuntimeException.class, calls.get(place), "call " + place);
            assertSame(thrown, refused.getClass(), "call " + place);
        }
    }

    /** An arena, which newer machines have than the one that this is compiled for. */
    private static AutoCloseable arena(String kind) throws ReflectiveOperationException {
        assumeTrue(Runtime.version().feature() >= 22, "there are no arenas");
        Class<?> arena = Class.forName("java.lang.foreign.Arena");
        return (AutoCloseable) arena.getMethod(kind).invoke(null);
    }

    private static Class<?> wrongThread() throws ReflectiveOperationException {
        assumeTrue(Runtime.version().feature() >= 22, "there are no arenas");
        return Class.forName("java.lang.WrongThreadException");
    }

    private static ByteBuffer buffer(AutoCloseable arena) throws ReflectiveOperationException {
        Class<?> allocator = Class.forName("java.lang.foreign.SegmentAllocator");
        Object segment = allocator.getMethod("allocate", long.class).invoke(arena, 4096);
        Class<?> segments = Class.forName("java.lang.foreign.MemorySegment");
        return (ByteBuffer) segments.getMethod("asByteBuffer").invoke(segment);
    }

    private static List<Integer> places(ByteBuffer one, ByteBuffer other) {
        return List.of(one.position(), one.limit(), other.position(), other.limit());
    }

    @Test
    void manyKeysAreReadAtOnce() {
        List<byte[]> keys = new ArrayList<>();
        for (int number = 0; number < 2000; number++) {
            keys.add(key(number));
            if (number % 2 == 0) {
                store.put(key(number), key(-number));
            }
        }
        List<byte[]> values = store.getMany(keys);
        assertEquals(2000, values.size());
        for (int number = 0; number < 2000; number++) {
            assertArrayEquals(number % 2 == 0 ? key(-number) : null, values.get(number));
        }
        assertEquals(List.of(), store.getMany(List.of()));
    }

    @Test
    void rangesEndBeforeTheirEnd() {
        for (String key : List.of("a", "b", "ba", "c")) {
            store.put(bytes(key), bytes(key + key));
        }
        assertEquals(List.of("b=bb", "ba=baba"), texts(store.range(bytes("b"), bytes("c"))));
        assertEquals(List.of("ba=baba", "b=bb"), texts(store.rangeReverse(bytes("b"), bytes("c"))));
        assertEquals(List.of("b=bb", "ba=baba"), texts(store.prefix(bytes("b"))));
        assertEquals(4, texts(store.range(null, null)).size());
        assertEquals(4, texts(store.prefix(bytes(""))).size());
        assertEquals(List.of("c=cc"), texts(store.rangeOrNull(bytes("bb"), null, false)));
        assertEquals(List.of(), texts(store.range(bytes("c"), bytes("b"))));
        assertNull(store.rangeOrNull(bytes("d"), bytes("e"), true));
        assertNull(store.rangeOrNull(bytes("c"), bytes("b"), false));
        assertEquals("a", text(store.firstRow().key()));
        assertEquals(new Row(bytes("c"), bytes("cc")), store.lastRow());
        int rows = 0;
        for (Row row : store) {
            rows += row.key().length;
        }
        assertEquals(5, rows);
    }

    @Test
    void boundsMayBeOtherwise() {
        for (String key : List.of("a", "b", "c")) {
            store.put(bytes(key), bytes(""));
        }
        assertEquals(List.of("a=", "b="), range(Bounds.closed(bytes("a"), bytes("b"))));
        assertEquals(List.of("b="), range(Bounds.between(bytes("a"), bytes("c"))));
        assertEquals(List.of("b=", "c="), range(Bounds.greaterThan(bytes("a"))));
        assertEquals(List.of("b=", "c="), range(Bounds.atLeast(bytes("b"))));
        assertEquals(List.of("a=", "b="), range(Bounds.atMost(bytes("b"))));
        assertEquals(List.of("a="), range(Bounds.lessThan(bytes("b"))));
        assertEquals(List.of("a=", "b=", "c="), range(Bounds.all()));
        assertEquals(List.of("a="), range(Bounds.of(null, bytes("b"))));
        assertEquals(List.of("b="), range(Bounds.prefix(bytes("b"))));
        assertEquals(List.of("c=", "b="), texts(store.rangeReverse(Bounds.atLeast(bytes("b")))));
        byte[] highest = {(byte) 0xff, (byte) 0xff};
        store.put(highest, bytes("x"));
        assertEquals(1, range(Bounds.prefix(highest)).size());
        assertArrayEquals(new byte[] {2}, Bounds.prefixEnd(new byte[] {1, (byte) 0xff}));
    }

    private List<String> range(Bounds bounds) {
        assertEquals(!texts(store.range(bounds)).isEmpty(), store.mayContainRange(bounds));
        return texts(store.range(bounds));
    }

    @Test
    void emptyStoresHaveNoRows() {
        assertNull(store.firstRow());
        assertNull(store.lastRow());
        assertFalse(store.iterator().hasNext());
        assertFalse(store.mayContainRange(bytes("a"), bytes("b")));
        assertEquals(new Count(0, 0, 0), store.approximateCount(Bounds.all()));
    }

    @Test
    void countsHaveTheirBounds() {
        for (int number = 0; number < 1000; number++) {
            store.put(key(number), bytes("x"));
        }
        store.compact();
        Count count = store.approximateCount(key(0), key(500));
        assertTrue(count.least() <= 500 && 500 <= count.most(), count.toString());
        assertTrue(count.least() <= count.estimate() && count.estimate() <= count.most());
    }

    @Test
    void lifetimesEnd() throws InterruptedException {
        store.put(bytes("short"), bytes("x"), Duration.ofMillis(1));
        store.put(bytes("long"), bytes("x"), Duration.ofSeconds(Long.MAX_VALUE));
        Thread.sleep(20);
        assertNull(store.get(bytes("short")));
        assertEquals("x", text(store.get(bytes("long"))));
        Duration negative = Duration.ofNanos(-1);
        assertThrows(
                IllegalArgumentException.class, () -> store.put(bytes("k"), bytes("v"), negative));
    }

    @Test
    void rangesAreDeletedAtOnce() {
        for (int number = 0; number < 100; number++) {
            store.put(key(number), bytes("x"));
        }
        store.deleteRange(key(10), key(90));
        store.deleteRange(key(5), key(5));
        assertEquals(20, texts(store.iterator()).size());
        assertThrows(InvertedRangeException.class, () -> store.deleteRange(key(2), key(1)));
    }

    @Test
    void singleKeysAreReadAndWrittenInOneStep() {
        assertNull(store.putIfAbsent(bytes("k"), bytes("1")));
        assertEquals("1", text(store.putIfAbsent(bytes("k"), bytes("2"))));
        assertFalse(store.compareAndSwap(bytes("k"), bytes("2"), bytes("3")));
        assertFalse(store.compareAndSwap(bytes("k"), null, bytes("3")));
        assertTrue(store.compareAndSwap(bytes("k"), bytes("1"), bytes("3")));
        assertTrue(store.compareAndSwap(bytes("k"), bytes("3"), null));
        assertTrue(store.compareAndSwap(bytes("k"), null, bytes("4")));
        assertEquals("4", text(store.update(bytes("k"), old -> bytes(text(old) + "+"))));
        assertEquals("4+", text(store.update(bytes("k"), old -> old)));
        assertEquals("4+", text(store.update(bytes("k"), old -> null)));
        assertNull(store.update(bytes("k"), old -> old));
        assertNull(store.update(bytes("k"), old -> bytes("new")));
        assertEquals("new", text(store.get(bytes("k"))));
        assertEquals(0, store.fetchAdd(bytes("n"), 5));
        assertEquals(5, store.fetchAdd(bytes("n"), -7));
        assertEquals(-2, store.fetchAdd(bytes("n"), 0));
        NoCounterException none =
                assertThrows(NoCounterException.class, () -> store.fetchAdd(bytes("k"), 1));
        assertEquals("k", text(none.key()));
    }

    @Test
    void updatesSeeWhatOthersWroteBetween() {
        store.put(bytes("k"), bytes("0"));
        int[] calls = {0};
        store.update(
                bytes("k"),
                old -> {
                    if (calls[0]++ == 0) {
                        store.put(bytes("k"), bytes("other"));
                    }
                    return bytes(text(old) + "!");
                });
        assertEquals("other!", text(store.get(bytes("k"))));
        assertEquals(2, calls[0]);
    }

    @Test
    void operandsAreMerged() {
        assertThrows(NoMergeOperatorException.class, () -> store.merge(bytes("k"), bytes("1")));
        Options concat = new Options().set("merge_operator", "concat:, ");
        Keyspace words = store.keyspace("words", concat);
        words.put(bytes("fruit"), bytes("apple"));
        words.merge(bytes("fruit"), bytes("pear"));
        assertEquals("apple, pear", text(words.get(bytes("fruit"))));
        try (Transaction transaction = store.transaction()) {
            transaction.of(words).merge(bytes("fruit"), bytes("fig"));
            transaction.commit();
        }
        store.write(new WriteBatch().merge(words, bytes("fruit"), bytes("nut")));
        assertEquals("apple, pear, fig, nut", text(words.get(bytes("fruit"))));
    }

    @Test
    void sortedRowsAreLoaded() {
        int count = 20_000;
        var rows =
                IntStream.range(0, count)
                        .mapToObj(number -> new Row(key(number), bytes("value of " + number)))
                        .iterator();
        assertEquals(count, store.ingest(rows));
        assertEquals("value of 777", text(store.get(key(777))));
        assertEquals(count, texts(store.iterator()).size());
        assertEquals(0, store.ingest(List.<Row>of().iterator()));
        var unsorted = List.of(new Row(key(2), bytes("")), new Row(key(1), bytes(""))).iterator();
        Keyspace other = store.keyspace("other");
        assertThrows(UnsortedException.class, () -> other.ingest(unsorted));
        assertNull(other.firstRow());
    }

    @Test
    void whatAnIteratorThrowsIsThrownAndNothingIsLoaded() {
        var failing =
                IntStream.range(0, 50_000)
                        .mapToObj(
                                number -> {
                                    if (number == 40_000) {
                                        throw new IllegalStateException("own");
                                    }
                                    return new Row(key(number), bytes("x"));
                                })
                        .iterator();
        var thrown = assertThrows(IllegalStateException.class, () -> store.ingest(failing));
        assertEquals("own", thrown.getMessage());
        assertNull(store.firstRow());
        store.put(bytes("on"), bytes("it goes"));
        var withNull = Arrays.asList(new Row(key(1), bytes("")), null).iterator();
        assertThrows(NullPointerException.class, () -> store.ingest(withNull));
    }

    @Test
    void keyspacesAreTreesOfTheirOwn() {
        Keyspace words = store.keyspace("words");
        words.put(bytes("k"), bytes("word"));
        store.put(bytes("k"), bytes("store"));
        assertEquals("word", text(words.get(bytes("k"))));
        assertEquals("store", text(store.defaultKeyspace().get(bytes("k"))));
        assertEquals(List.of("default", "words"), store.keyspaces());
        assertEquals("word", text(store.openKeyspace("words").get(bytes("k"))));
        assertEquals(List.of("words", "default"), List.of(words.name(), store.name()));
        assertSame(store, words.store());
        store.renameKeyspace("words", "terms");
        assertEquals("terms", words.name());
        assertThrows(NoKeyspaceException.class, () -> store.openKeyspace("words"));
        store.keyspace("more");
        assertThrows(
                KeyspaceExistsException.class, () -> store.renameKeyspace("more", "terms"));
        words.flush();
        words.compact();
        store.dropKeyspace("terms");
        assertThrows(KeyspaceDroppedException.class, () -> words.get(bytes("k")));
        assertThrows(KeyspaceDroppedException.class, words::sequence);
        assertThrows(NoKeyspaceException.class, () -> store.dropKeyspace("terms"));
        assertThrows(OptionException.class, () -> store.dropKeyspace("default"));
    }

    @Test
    void snapshotsStayAsTheyAre() {
        Keyspace words = store.keyspace("words");
        store.put(bytes("k"), bytes("old"));
        words.put(bytes("k"), bytes("old word"));
        Snapshot before = store.snapshot();
        Snapshot wordsBefore = before.of(words);
        store.put(bytes("k"), bytes("new"));
        words.delete(bytes("k"));
        store.compact();
        assertEquals("old", text(before.get(bytes("k"))));
        assertEquals("old word", text(wordsBefore.get(bytes("k"))));
        assertEquals(List.of("k=old"), texts(before.iterator()));
        assertArrayEquals(bytes("old"), before.getMany(List.of(bytes("k"))).get(0));
        assertTrue(before.mayContainRange(bytes("k"), null));
        assertTrue(before.approximateCount(null, null).most() >= 1);
        assertEquals(before.sequence(), wordsBefore.sequence());
        assertNotEquals(before.sequence(), store.sequence());
        before.close();
        before.close();
        assertThrows(ClosedException.class, () -> before.get(bytes("k")));
        assertThrows(ClosedException.class, () -> before.of(words));
        assertEquals("old word", text(wordsBefore.get(bytes("k"))), "it is closed by itself");
        wordsBefore.close();
    }

    @Test
    void whatWasWrittenIsThereWhenItIsOpenedAgain() {
        store.put(bytes("k"), bytes("v"));
        store.sync();
        store.flush();
        store.settle();
        store.close();
        store.close();
        store = Store.open(folder.resolve("store"));
        assertEquals("v", text(store.get(bytes("k"))));
        assertEquals(folder.resolve("store"), store.path());
    }

    @Test
    void checkpointsAreStores() {
        store.put(bytes("k"), bytes("v"));
        Path copy = folder.resolve("copy");
        store.checkpoint(copy);
        store.put(bytes("k"), bytes("later"));
        try (Store other = Store.open(copy)) {
            assertEquals("v", text(other.get(bytes("k"))));
        }
        assertThrows(NotEmptyException.class, () -> store.checkpoint(copy));
    }

    @Test
    void damageIsFound() throws Exception {
        for (int number = 0; number < 1000; number++) {
            store.put(key(number), bytes("value " + number));
        }
        store.flush();
        VerifyReport sound = store.verify();
        assertTrue(sound.isSound() && sound.entries() >= 1000 && sound.tables() >= 1);
        Path table = reopenWithDamage();
        VerifyReport damaged = store.verify();
        assertFalse(damaged.isSound());
        assertTrue(damaged.damage().toString().contains(table.getFileName().toString()));
        CorruptException corrupt =
                assertThrows(CorruptException.class, () -> texts(store.iterator()));
        assertEquals(2, corrupt.code());
        assertTrue(corrupt.getMessage().contains(table.getFileName().toString()));
    }

    @Test
    void snapshotsAndTransactionsBeginWhateverOneKeyHas() throws Exception {
        store.put(bytes(""), bytes("value"));
        for (int number = 0; number < 1000; number++) {
            store.put(key(number), bytes("value " + number));
        }
        store.flush();
        reopenWithDamage();
        assertThrows(CorruptException.class, () -> store.get(bytes("")));
        store.put(bytes("k"), bytes("v"));
        try (Snapshot snapshot = store.snapshot(); Transaction transaction = store.transaction()) {
            assertEquals("v", text(snapshot.get(bytes("k"))));
            assertEquals("v", text(transaction.get(bytes("k"))));
        }
    }

    /** Changes a byte of the first block of a table, which it gives. */
    private Path reopenWithDamage() throws IOException {
        store.close();
        Path table;
        try (var files = Files.walk(folder.resolve("store"))) {
            table =
                    files.filter(file -> file.toString().endsWith(".table"))
                            .findFirst()
                            .orElseThrow();
        }
        byte[] bytes = Files.readAllBytes(table);
        bytes[DAMAGED_BYTE] ^= 1;
        Files.write(table, bytes);
        store = Store.open(folder.resolve("store"));
        return table;
    }

    @Test
    void statisticsHaveNames() {
        store.put(bytes("k"), bytes("v"));
        store.get(bytes("k"));
        store.flush();
        Map<String, Object> stats = store.stats();
        assertTrue(stats.size() > 20, stats.toString());
        assertTrue(stats.containsKey("failure") && stats.get("failure") == null);
        assertTrue(stats.values().stream().anyMatch(Long.class::isInstance));
        assertTrue(stats.values().stream().anyMatch(Double.class::isInstance));
        assertTrue(stats.values().stream().anyMatch(Map.class::isInstance));
        assertThrows(UnsupportedOperationException.class, () -> stats.put("k", 1));
    }
}
