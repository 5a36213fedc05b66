package dev.trommel;

import static dev.trommel.Bytes.bytes;
import static dev.trommel.Bytes.key;
import static dev.trommel.Bytes.text;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;

/** What goes wrong, and what it is told as. */
final class ErrorsTest {
    private static final int CODES = 32;

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
    void eachCodeHasOneClass() {
        for (int code = 1; code <= CODES; code++) {
            Throwable made = Failures.of(code, bytes("text"), bytes("k"), 0);
            TrommelException exception = (TrommelException) made;
            assertEquals(code, exception.code());
            assertEquals("text", exception.getMessage());
            assertEquals("k", text(exception.key()));
            Throwable other = Failures.of(code % CODES + 1, bytes(""), null, 0);
            boolean areGeneral = made.getClass() == TrommelException.class;
            assertTrue(areGeneral || made.getClass() != other.getClass(), "code " + code);
        }
        assertSame(ConflictException.class, Failures.of(25, bytes(""), null, 0).getClass());
        assertNull(Failures.closed("x").key());
    }

    @Test
    void errorsOfOpeningNameThePath() throws Exception {
        Path here = folder.resolve("store");
        names(LockedException.class, 8, here, () -> Store.open(here));
        Path others = Files.createDirectory(folder.resolve("others"));
        Files.writeString(others.resolve("file"), "text");
        names(NotAStoreException.class, 4, others, () -> Store.open(others));
        Path none = folder.resolve("none");
        Options existing = new Options().set("create_if_missing", false);
        names(MissingException.class, 6, none, () -> Store.open(none, existing));
        Path beneathFile = others.resolve("file").resolve("store");
        names(DiskException.class, 1, others, () -> Store.open(beneathFile));
        assertThrows(IllegalArgumentException.class, () -> Store.open(Path.of("")));
        assertThrows(NullPointerException.class, () -> Store.open(null));
        assertThrows(NullPointerException.class, () -> Store.open(here, null));
    }

    private static void names(
            Class<? extends TrommelException> kind, int code, Path path, Executable call) {
        TrommelException thrown = assertThrows(kind, call);
        assertEquals(code, thrown.code());
        assertTrue(thrown.getMessage().contains(path.toString()), thrown.getMessage());
    }

    @Test
    void pathsOfOtherFileSystemsAreRefused() throws Exception {
        Path zip = folder.resolve("a.zip");
        try (var system = FileSystems.newFileSystem(zip, java.util.Map.of("create", "true"))) {
            Path inside = system.getPath("/store");
            assertThrows(IllegalArgumentException.class, () -> Store.open(inside));
            assertThrows(IllegalArgumentException.class, () -> store.checkpoint(inside));
        }
    }

    @Test
    void nullsAreToldByName() {
        WriteBatch batch = new WriteBatch();
        byte[] some = bytes("some");
        isNamed("key", () -> store.get((byte[]) null));
        isNamed("key", () -> store.get((ByteBuffer) null, ByteBuffer.allocate(1)));
        isNamed("value", () -> store.get(some, null));
        isNamed("key", () -> store.containsKey(null));
        isNamed("keys", () -> store.getMany(null));
        isNamed("keys: the one at 1 is null", () -> store.getMany(Arrays.asList(some, null)));
        isNamed("bounds", () -> store.range(null));
        isNamed("prefix", () -> store.prefix(null));
        isNamed("key", () -> store.put(null, some));
        isNamed("value", () -> store.put(some, null));
        isNamed("ttl", () -> store.put(some, some, null));
        isNamed("key", () -> store.delete(null));
        isNamed("from", () -> store.deleteRange(null, some));
        isNamed("to", () -> store.deleteRange(some, null));
        isNamed("operand", () -> store.merge(some, null));
        isNamed("value", () -> store.putIfAbsent(some, null));
        isNamed("key", () -> store.compareAndSwap(null, some, some));
        isNamed("key", () -> store.fetchAdd(null, 1));
        isNamed("change", () -> store.update(some, null));
        isNamed("rows", () -> store.ingest(null));
        isNamed("batch", () -> store.ingestBatch(null));
        isNamed("name", () -> store.keyspace(null));
        isNamed("name", () -> store.openKeyspace(null));
        isNamed("name", () -> store.dropKeyspace(null));
        isNamed("to", () -> store.renameKeyspace("a", null));
        isNamed("isolation", () -> store.transaction(null));
        isNamed("work", () -> store.run(null));
        isNamed("batch", () -> store.write(null));
        isNamed("path", () -> store.checkpoint(null));
        isNamed("key", () -> batch.put(null, some));
        isNamed("value", () -> batch.put(some, (byte[]) null));
        isNamed("key", () -> batch.onlyIf(null, some));
        isNamed("key", () -> new Row(null, some));
        isNamed("value", () -> new Row(some, null));
        isNamed("from", () -> Bounds.closed(null, some));
        isNamed("to", () -> Bounds.lessThan(null));
        isNamed("sortedKeys", () -> RangeFilter.build((byte[][]) null, 12));
        isNamed("bytes", () -> RangeFilter.fromBytes(null));
        assertTrue(batch.isEmpty(), "what was refused is not in it");
    }

    private static void isNamed(String name, Executable call) {
        assertEquals(name, assertThrows(NullPointerException.class, call).getMessage());
    }

    @Test
    void longKeysAreRefusedByWhatWritesThem() {
        byte[] tooLong = new byte[65_537];
        KeyTooLongException thrown =
                assertThrows(KeyTooLongException.class, () -> store.put(tooLong, bytes("v")));
        assertEquals(11, thrown.code());
        assertThrows(
                KeyTooLongException.class,
                () -> store.write(new WriteBatch().put(tooLong, bytes("v"))));
        assertThrows(KeyTooLongException.class, () -> store.deleteRange(bytes("a"), longOf('b')));
        assertNull(store.get(tooLong));
        assertNull(store.rangeOrNull(tooLong, null, false));
    }

    private static byte[] longOf(char letter) {
        byte[] bytes = new byte[70_000];
        Arrays.fill(bytes, (byte) letter);
        return bytes;
    }

    @Test
    void panicsAreExceptionsAndTheMachineLives() {
        PanickedException panicked = assertThrows(PanickedException.class, Native::panic);
        assertTrue(panicked.getMessage().contains("forced by a test"), panicked.getMessage());
        store.put(bytes("on"), bytes("it goes"));
        assertEquals("it goes", text(store.get(bytes("on"))));
    }

    @Test
    void malformedBytesOfABatchAreRefused() {
        byte[] wrong = {9, 0, 0, 0, 0, 0, 0, 0, 0};
        TrommelException thrown =
                assertThrows(
                        TrommelException.class,
                        () -> Native.write(store.handle, wrong, wrong.length, null, false));
        assertEquals(20, thrown.code());
    }

    @Test
    void handlesOfOtherKindsAreRefused() {
        try (Snapshot snapshot = store.snapshot()) {
            assertThrows(
                    IllegalArgumentException.class,
                    () -> Native.put(snapshot.handle, key(1), 4, key(1), 4));
            assertThrows(IllegalArgumentException.class, () -> Native.commit(store.handle, false));
            assertThrows(IllegalArgumentException.class, () -> Native.get(0, key(1), 4));
            assertThrows(IllegalArgumentException.class, () -> Native.get(store.handle, null, 0));
            assertThrows(
                    IndexOutOfBoundsException.class, () -> Native.get(store.handle, key(1), 5));
            assertThrows(
                    IllegalArgumentException.class, () -> Native.get(store.handle, key(1), -1));
        }
    }

    @Test
    void whatIsClosedSaysSo() {
        Keyspace words = store.keyspace("words");
        Snapshot snapshot = store.snapshot();
        Transaction transaction = store.transaction();
        for (int number = 0; number < 1000; number++) {
            store.put(key(number), bytes("x"));
        }
        Rows rows = store.range(null, null);
        rows.next();
        Transaction.Savepoint savepoint = transaction.savepoint();
        WriteBatch batch = new WriteBatch().put(bytes("k"), bytes("v"));
        store.close();
        List<Executable> calls =
                List.of(
                        () -> store.get(bytes("k")),
                        () -> store.put(bytes("k"), bytes("v")),
                        () -> store.containsKey(bytes("k")),
                        () -> store.getMany(List.of(bytes("k"))),
                        () -> store.range(null, null),
                        () -> store.rangeOrNull(bytes("a"), bytes("b"), false),
                        () -> store.mayContainRange(null, null),
                        () -> store.approximateCount(null, null),
                        store::sequence,
                        () -> store.delete(bytes("k")),
                        () -> store.fetchAdd(bytes("k"), 1),
                        () -> store.ingest(List.of(new Row(key(1), key(1))).iterator()),
                        () -> store.keyspace("new"),
                        () -> store.openKeyspace("words"),
                        store::keyspaces,
                        store::snapshot,
                        store::transaction,
                        () -> store.write(batch),
                        store::sync,
                        store::flush,
                        store::settle,
                        store::compact,
                        store::verify,
                        store::stats,
                        () -> store.checkpoint(folder.resolve("copy")),
                        () -> words.get(bytes("k")),
                        () -> words.put(bytes("k"), bytes("v")),
                        words::flush,
                        words::sequence,
                        () -> snapshot.get(bytes("k")),
                        () -> snapshot.range(null, null),
                        snapshot::sequence,
                        () -> transaction.get(bytes("k")),
                        () -> transaction.getForUpdate(bytes("k")),
                        transaction::sequence,
                        () -> rows.forEachRemaining(row -> {}));
        for (int place = 0; place < calls.size(); place++) {
            ClosedException closed =
                    assertThrows(ClosedException.class, calls.get(place), "call " + place);
            assertEquals(9, closed.code());
        }
        assertEquals(1, batch.size(), "it is as it was");
        transaction.rollBackTo(savepoint);
        transaction.put(bytes("k"), bytes("v"));
        assertThrows(ClosedException.class, transaction::commit);
        snapshot.close();
        rows.close();
    }
}
