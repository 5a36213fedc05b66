package dev.trommel.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import dev.trommel.Store;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.query.Position;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Opening, commits, crashes: what is there afterwards, and at which offset. */
class LifecycleTest {
    private static final TopicPartition CHANGELOG = Commits.CHANGELOG;

    @TempDir
    Path state;

    private static Bytes key(String text) {
        return Bytes.wrap(text.getBytes(StandardCharsets.UTF_8));
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static String get(KeyValueBytes store, String key) {
        byte[] value = store.get(key(key));
        return value == null ? null : new String(value, StandardCharsets.UTF_8);
    }

    private KeyValueBytes open(TaskContext context, String name) {
        KeyValueBytes store = new KeyValueBytes(name);
        store.init(context, store);
        return store;
    }

    private KeyValueBytes open() {
        return open(new TaskContext(state), "store");
    }

    private KeyValueBytes openExactlyOnce() {
        return open(new TaskContext(state).with("processing.guarantee", "exactly_once_v2")
                .with(TrommelConfig.BUFFER_BYTES, "2000"), "store");
    }

    static void delete(Path folder) throws IOException {
        try (Stream<Path> all = Files.walk(folder)) {
            for (Path path : all.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(path);
            }
        }
    }

    @Test
    void rowsAndOffsetOfACommitAreThereAfterwards() {
        KeyValueBytes store = open();
        assertEquals(StoreRows.OFFSET_UNKNOWN, store.committedOffset(CHANGELOG));
        store.put(key("a"), bytes("1"));
        store.commit(Map.of(CHANGELOG, 41L));
        store.put(key("a"), bytes("2"));
        store.put(key("b"), bytes("2"));
        store.close();
        store = open();
        assertEquals(41L, store.committedOffset(CHANGELOG));
        assertEquals("1", get(store, "a"));
        assertNull(get(store, "b"), "it was not committed");
        assertEquals(0, store.approximateNumUncommittedBytes());
        store.close();
    }

    @Test
    void openingTwiceAtStartChangesNothing() {
        KeyValueBytes store = open();
        store.put(key("a"), bytes("1"));
        store.commit(Map.of(CHANGELOG, 5L));
        store.close();
        for (int times = 0; times < 3; times++) {
            store = open();
            assertEquals(5L, store.committedOffset(CHANGELOG));
            store.commit(Map.of(CHANGELOG, 5L));
            store.close();
        }
        store.init(new TaskContext(state), store);
        assertEquals("1", get(store, "a"), "the same object once more");
        store.close();
    }

    /** Opening takes long with many rows, and the runtime opens each store of each task. */
    @Test
    void whoOnlyReadsOffsetsLeavesTheEngineOpenForAWhile() throws IOException {
        KeyValueBytes store = open();
        Path application = new TaskContext(state).folder().getParent();
        store.put(key("a"), bytes("1"));
        store.commit(Map.of(CHANGELOG, 5L));
        store.close();
        assertFalse(SharedEngine.isOpen(application), "it was written to");
        for (int times = 0; times < 2; times++) {
            store = open();
            assertEquals(5L, store.committedOffset(CHANGELOG));
            store.close();
            assertTrue(SharedEngine.isOpen(application), "it was not");
        }
        delete(application.resolve(SharedEngine.FOLDER));
        store = open();
        assertEquals(StoreRows.OFFSET_UNKNOWN, store.committedOffset(CHANGELOG));
        store.put(key("a"), bytes("2"));
        store.commit(Map.of(CHANGELOG, 6L));
        store.close();
        assertFalse(SharedEngine.isOpen(application));
        store = open();
        assertEquals(6L, store.committedOffset(CHANGELOG));
        store.close();
    }

    @Test
    void aWipedFolderWipesItsRows() throws IOException {
        TaskContext context = new TaskContext(state);
        KeyValueBytes store = open();
        KeyValueBytes other = open(new TaskContext(state, new TaskId(0, 2)), "store");
        for (KeyValueBytes each : new KeyValueBytes[] {store, other}) {
            each.put(key("a"), bytes("1"));
            each.commit(Map.of(CHANGELOG, 5L));
        }
        store.close();
        delete(context.folder());
        store = open();
        assertNull(get(store, "a"));
        assertEquals(StoreRows.OFFSET_UNKNOWN, store.committedOffset(CHANGELOG));
        assertEquals("1", get(other, "a"), "another task keeps its rows");
        store.close();
        other.close();
    }

    @Test
    void aDamagedGenerationIsAnotherOne() throws IOException {
        KeyValueBytes store = open();
        store.put(key("a"), bytes("1"));
        store.commit(Map.of(CHANGELOG, 5L));
        store.close();
        Path file = new TaskContext(state).folder().resolve(Generation.FILE);
        for (String damaged : new String[] {"", "zz", "0123"}) {
            Files.writeString(file, damaged);
            store = open();
            assertNull(get(store, "a"));
            store.close();
            assertNotEquals(damaged, Files.readString(file));
        }
    }

    @Test
    void keySpacesOfGoneTasksGoWithTheNextOpening() throws IOException {
        KeyValueBytes store = open();
        store.put(key("a"), bytes("1"));
        store.commit(Map.of(CHANGELOG, 5L));
        store.close();
        delete(new TaskContext(state).folder());
        TaskContext two = new TaskContext(state, new TaskId(0, 2));
        KeyValueBytes other = open(two, "store");
        assertEquals(java.util.Set.of("default", "0_2/store"),
                new java.util.HashSet<>(other.engine().keyspaces()));
        other.close();
    }

    @Test
    void storesOfAnInstanceShareOneEngine() {
        KeyValueBytes one = open();
        KeyValueBytes two = open(new TaskContext(state, new TaskId(1, 0)), "other");
        assertSame(one.engine(), two.engine());
        one.put(key("a"), bytes("1"));
        assertNull(get(two, "a"));
        one.close();
        two.put(key("a"), bytes("2"));
        two.commit(Map.of(new TopicPartition("app-other-changelog", 0), 1L));
        two.close();
        two = open(new TaskContext(state, new TaskId(1, 0)), "other");
        assertEquals("2", get(two, "a"));
        two.close();
    }

    @Test
    void rowsWithoutAnOffsetHaveNone() {
        KeyValueBytes store = open();
        store.put(key("a"), bytes("1"));
        store.commit(Map.of());
        assertNull(store.committedOffset(CHANGELOG), "a store without changelog commits so");
        store.close();
        store = open();
        assertEquals("1", get(store, "a"));
        assertNull(store.committedOffset(CHANGELOG));
        store.close();
    }

    @Test
    void aCorruptStateBeginsAnew() {
        KeyValueBytes store = open();
        store.committedOffset(CHANGELOG);
        store.put(key("a"), bytes("1"));
        store.commit(Map.of(CHANGELOG, 5L));
        store.put(key("b"), bytes("1"));
        store.commit(Map.of());
        assertNull(get(store, "a"));
        assertNull(get(store, "b"));
        store.put(key("c"), bytes("1"));
        store.commit(Map.of(CHANGELOG, 9L));
        store.commit(Map.of());
        store.close();
        store = open();
        assertEquals(StoreRows.OFFSET_UNKNOWN, store.committedOffset(CHANGELOG));
        assertNull(get(store, "c"));
        store.close();
    }

    @Test
    void anEmptyStoreTakesNoOffsetOfAnotherKindOfStore() {
        KeyValueBytes store = open();
        store.commit(Map.of(CHANGELOG, 1_000L));
        store.close();
        store = open();
        assertEquals(StoreRows.OFFSET_UNKNOWN, store.committedOffset(CHANGELOG));
        store.close();
    }

    @Test
    void whatIsRestoredIsThereWithTheCommit() {
        TaskContext context = new TaskContext(state);
        KeyValueBytes store = open(context, "store");
        context.restore(bytes("a"), bytes("1"));
        context.restore(bytes("b"), bytes("2"));
        context.restore(bytes("a"), null);
        assertNull(get(store, "a"));
        assertEquals("2", get(store, "b"));
        store.commit(Map.of(CHANGELOG, 2L));
        store.close();
        store = open();
        assertEquals(2L, store.committedOffset(CHANGELOG));
        assertEquals("2", get(store, "b"));
        store.close();
    }

    @Test
    void tooMuchForTheBufferHasNoOffsetUnderExactlyOnce() {
        KeyValueBytes store = openExactlyOnce();
        store.put(key("a"), bytes("1"));
        store.commit(Map.of(CHANGELOG, 5L));
        for (int number = 0; number < 100; number++) {
            store.put(key("key" + number), bytes("value"));
        }
        assertTrue(store.approximateNumUncommittedBytes() < 3_000, "it has been written");
        assertEquals("value", get(store, "key3"));
        store.close();
        store = openExactlyOnce();
        assertEquals(StoreRows.OFFSET_UNKNOWN, store.committedOffset(CHANGELOG));
        assertNull(get(store, "key3"), "it is no committed state");
        store.put(key("a"), bytes("1"));
        store.commit(Map.of(CHANGELOG, 200L));
        store.close();
        store = openExactlyOnce();
        assertEquals(200L, store.committedOffset(CHANGELOG), "now it is");
        store.close();
    }

    @Test
    void tooMuchForTheBufferKeepsTheOlderOffsetUnderAtLeastOnce() {
        TaskContext context = new TaskContext(state).with(TrommelConfig.BUFFER_BYTES, 2_000L);
        KeyValueBytes store = open(context, "store");
        store.put(key("a"), bytes("1"));
        store.commit(Map.of(CHANGELOG, 5L));
        for (int number = 0; number < 100; number++) {
            store.put(key("key" + number), bytes("value"));
        }
        store.close();
        store = open();
        assertEquals(5L, store.committedOffset(CHANGELOG));
        assertEquals("value", get(store, "key3"));
        store.close();
    }

    @Test
    void thePositionIsCommittedToo() {
        TaskContext context = new TaskContext(state);
        KeyValueBytes store = open(context, "store");
        context.at("input", 1, 77);
        store.put(key("a"), bytes("1"));
        context.at("input-ä", 3, 78);
        store.put(key("a"), bytes("1"));
        store.commit(Map.of(CHANGELOG, 5L));
        context.at("input", 1, 100);
        store.put(key("a"), bytes("1"));
        store.close();
        store = open();
        assertEquals(Position.emptyPosition().withComponent("input", 1, 77)
                .withComponent("input-ä", 3, 78), store.getPosition());
        store.close();
    }

    @Test
    void globalStoresKnowNoUnknownOffset() {
        TaskContext context = new TaskContext(state, new TaskId(-1, -1));
        KeyValueBytes store = open(context, "global");
        assertNull(store.committedOffset(CHANGELOG));
        store.put(key("a"), bytes("1"));
        store.commit(Map.of(CHANGELOG, StoreRows.OFFSET_UNKNOWN));
        assertNull(store.committedOffset(CHANGELOG));
        store.close();
    }

    @Test
    void namesOfStoresMayHaveAnySign() {
        KeyValueBytes store = open(new TaskContext(state), "a/b%c");
        store.put(key("a"), bytes("1"));
        store.commit(Map.of(CHANGELOG, 5L));
        store.close();
        store = open(new TaskContext(state), "a/b%c");
        assertEquals("1", get(store, "a"));
        store.close();
        store = open(new TaskContext(state), "a");
        assertNull(get(store, "a"));
        store.close();
    }

    @Test
    void wrongConfigurationIsNamed() {
        for (Map.Entry<String, String> wrong : Map.of(TrommelConfig.BUFFER_BYTES, "many",
                TrommelConfig.LOG, "maybe", TrommelConfig.OPTIONS, "sync",
                TrommelConfig.KEYSPACE_OPTIONS, "no_such_option=1").entrySet()) {
            TaskContext context = new TaskContext(state).with(wrong.getKey(), wrong.getValue());
            RuntimeException refused =
                    assertThrows(RuntimeException.class, () -> open(context, "store"));
            assertTrue(refused.getMessage().contains(wrong.getKey()), refused.getMessage());
        }
        open().close();
    }

    @Test
    void aFileInPlaceOfTheFolderIsNamed() throws IOException {
        Path application = state.resolve(TaskContext.APPLICATION);
        Files.createDirectories(application);
        Files.writeString(application.resolve(SharedEngine.FOLDER), "a file");
        RuntimeException refused = assertThrows(RuntimeException.class, this::open);
        String where = application.toRealPath().resolve(SharedEngine.FOLDER).toString();
        assertTrue(refused.getMessage().contains(where), refused.getMessage());
        Files.delete(application.resolve(SharedEngine.FOLDER));
        open().close();
    }

    @Test
    void anEngineThatIsOpenElsewhereIsNamed() throws IOException {
        Path application = state.resolve(TaskContext.APPLICATION);
        Path folder = Files.createDirectories(application).toRealPath()
                .resolve(SharedEngine.FOLDER);
        Store elsewhere = Store.open(folder);
        RuntimeException refused = assertThrows(ProcessorStateException.class, this::open);
        assertTrue(refused.getMessage().contains(folder.toString()), refused.getMessage());
        assertTrue(refused.getMessage().contains("state.dir"), refused.getMessage());
        elsewhere.close();
        open().close();
    }

    @Test
    void aFolderThatNobodyMayWriteToIsNamed() throws IOException {
        Path application = Files.createDirectories(state.resolve(TaskContext.APPLICATION));
        Path folder = new TaskContext(state).stateDir().toPath();
        assertTrue(folder.toFile().setWritable(false));
        assumeFalse(Files.isWritable(folder), "this user may write everywhere");
        RuntimeException refused = assertThrows(ProcessorStateException.class, this::open);
        assertTrue(refused.getMessage().contains(Generation.FILE), refused.getMessage());
        assertTrue(folder.toFile().setWritable(true));
        assertTrue(Files.isDirectory(application));
        open().close();
    }

    @Test
    void aDamagedEngineIsToldAndCanBeDeleted() throws IOException {
        KeyValueBytes store = open();
        store.put(key("a"), bytes("1"));
        store.commit(Map.of(CHANGELOG, 5L));
        store.close();
        Path folder = state.resolve(TaskContext.APPLICATION).resolve(SharedEngine.FOLDER);
        try (Stream<Path> files = Files.list(folder)) {
            for (Path file : files.filter(Files::isRegularFile).toList()) {
                Files.write(file, new byte[] {1, 2, 3});
            }
        }
        RuntimeException refused = assertThrows(ProcessorStateException.class, this::open);
        assertTrue(refused.getMessage().contains("delete the folder"), refused.getMessage());
        delete(folder);
        store = open();
        assertEquals(StoreRows.OFFSET_UNKNOWN, store.committedOffset(CHANGELOG));
        assertNull(get(store, "a"));
        store.close();
    }

    @Test
    void readersOfOtherThreadsMissNothingDuringCommits() throws InterruptedException {
        KeyValueBytes store = open();
        for (int number = 0; number < 100; number++) {
            store.put(key(String.format("%03d", number)), bytes("0"));
        }
        store.commit(Map.of(CHANGELOG, 0L));
        java.util.concurrent.atomic.AtomicReference<Throwable> problem =
                new java.util.concurrent.atomic.AtomicReference<>();
        Thread reader = new Thread(() -> readAllUntilInterrupted(store));
        reader.setUncaughtExceptionHandler((thread, thrown) -> problem.set(thrown));
        reader.start();
        for (long round = 1; round < 300; round++) {
            for (int number = 0; number < 100; number += 3) {
                store.put(key(String.format("%03d", number)), bytes(Long.toString(round)));
            }
            store.commit(Map.of(CHANGELOG, round));
        }
        reader.interrupt();
        reader.join();
        assertNull(problem.get());
        store.close();
        assertFalse(store.isOpen());
    }

    private static void readAllUntilInterrupted(KeyValueBytes store) {
        long seen = 0;
        while (!Thread.currentThread().isInterrupted()) {
            int count = 0;
            try (var rows = store.all()) {
                while (rows.hasNext()) {
                    rows.next();
                    count++;
                }
            }
            assertEquals(100, count);
            long now = Long.parseLong(get(store, "000"));
            assertTrue(now >= seen, "an older value came back: " + now + " after " + seen);
            seen = now;
        }
    }
}
