package dev.trommel;

import static dev.trommel.Bytes.bytes;
import static dev.trommel.Bytes.key;
import static dev.trommel.Bytes.text;
import static dev.trommel.Bytes.texts;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Batches and transactions. */
final class BatchTest {
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
    void batchesWriteAllOfIt() {
        store.put(bytes("gone"), bytes("x"));
        for (int number = 0; number < 10; number++) {
            store.put(key(number), bytes("x"));
        }
        WriteBatch batch =
                new WriteBatch()
                        .put(bytes("a"), bytes("1"))
                        .put(bytes("a"), bytes("2"))
                        .delete(bytes("gone"))
                        .deleteRange(key(0), key(10))
                        .put(bytes("t"), bytes("3"), Duration.ofHours(1))
                        .put(bytes("u"), bytes("4"), Duration.ofSeconds(Long.MAX_VALUE));
        assertEquals(6, batch.size());
        assertTrue(batch.sizeBytes() > 60 && !batch.isEmpty());
        store.writeSynced(batch);
        assertTrue(batch.isEmpty() && batch.size() == 0);
        assertEquals(List.of("a=2", "t=3", "u=4"), texts(store.iterator()));
    }

    @Test
    void batchesAreLoadedInAnyOrder() {
        Keyspace words = store.keyspace("words");
        words.put(key(5), bytes("old"));
        words.put(key(7), bytes("stays"));
        WriteBatch batch = new WriteBatch();
        for (int number = 9_999; number >= 0; number--) {
            if (number != 7) {
                batch.put(words, key(number * 31 % 10_000), bytes("first"));
            }
        }
        batch.put(words, key(3), bytes("last")).delete(words, key(5)).delete(words, key(4));
        batch.put(words, key(4), bytes("again"));
        assertEquals(9_998, words.ingestBatch(batch));
        assertTrue(batch.isEmpty() && batch.size() == 0);
        assertNull(words.get(key(5)));
        assertEquals("last", text(words.get(key(3))));
        assertEquals("again", text(words.get(key(4))));
        assertEquals("first", text(words.get(key(9_999))));
        assertEquals(9_998, texts(words.iterator()).size());
        assertNull(store.firstRow());
        assertEquals(0, words.ingestBatch(batch));
        assertEquals(1, store.ingestBatch(batch.put(key(1), bytes("default"))));
        store.close();
        store = Store.open(folder.resolve("store"));
        assertNull(store.keyspace("words").get(key(5)));
        assertEquals("last", text(store.keyspace("words").get(key(3))));
        assertEquals("default", text(store.get(key(1))));
    }

    @Test
    void theDefaultKeyspaceMayBeNamedOrNot() {
        WriteBatch batch = new WriteBatch().put(store, key(1), bytes("named"));
        assertEquals(1, store.ingestBatch(batch));
        batch.put(key(2), bytes("not")).put(store, key(3), bytes("named"));
        batch.put(key(4), bytes("not")).delete(store, key(1));
        assertEquals(3, store.ingestBatch(batch));
        assertNull(store.get(key(1)));
        assertEquals(3, texts(store.iterator()).size());
        Keyspace words = store.keyspace("words");
        batch.put(words, key(1), bytes("word")).put(key(5), bytes("not"));
        batch.put(store, key(6), bytes("named")).put(words, key(2), bytes("word"));
        store.write(batch);
        assertEquals(2, texts(words.iterator()).size());
        assertEquals(5, texts(store.iterator()).size());
    }

    @Test
    void otherBatchesAreNotLoaded() {
        Keyspace one = store.keyspace("one");
        Keyspace two = store.keyspace("two");
        List<WriteBatch> wrong =
                List.of(
                        new WriteBatch().put(two, key(1), bytes("x")),
                        new WriteBatch().put(key(1), bytes("x")),
                        new WriteBatch().put(key(1), bytes("x")).put(one, key(1), bytes("x")),
                        new WriteBatch().put(one, key(1), bytes("x")).put(two, key(1), bytes("x")),
                        new WriteBatch().put(one, key(1), bytes("x")).put(key(1), bytes("x")),
                        new WriteBatch().put(one, key(1), bytes("x")).merge(one, key(2), key(1)),
                        new WriteBatch().deleteRange(one, key(1), key(2)),
                        new WriteBatch().onlyIf(one, key(1), null).put(one, key(1), bytes("x")));
        for (WriteBatch batch : wrong) {
            int bytes = batch.sizeBytes();
            assertThrows(IllegalArgumentException.class, () -> one.ingestBatch(batch));
            assertEquals(bytes, batch.sizeBytes());
        }
        assertThrows(NullPointerException.class, () -> one.ingestBatch(null));
        WriteBatch ofOne = new WriteBatch().put(one, key(1), bytes("x"));
        assertThrows(IllegalArgumentException.class, () -> store.ingestBatch(ofOne));
        try (Store other = Store.open(folder.resolve("other"))) {
            WriteBatch ofOther = new WriteBatch().put(other, key(1), bytes("x"));
            assertThrows(IllegalArgumentException.class, () -> store.ingestBatch(ofOther));
            assertThrows(IllegalArgumentException.class, () -> store.write(ofOther));
        }
        for (Writable each : List.of(one, two, store)) {
            assertNull(each.firstRow());
        }
    }

    @Test
    void batchesGoOverKeyspaces() {
        Keyspace one = store.keyspace("one");
        Keyspace two = store.keyspace("two");
        WriteBatch batch = new WriteBatch();
        batch.put(bytes("k"), bytes("default"));
        batch.put(one, bytes("k"), bytes("one"));
        batch.put(one, bytes("l"), bytes("one"));
        batch.put(bytes("l"), bytes("default again"));
        batch.put(two, bytes("k"), bytes("two"));
        batch.delete(one, bytes("l"));
        batch.put(store, bytes("m"), bytes("default by name"));
        batch.deleteRange(two, bytes("x"), bytes("y"));
        batch.put(two, bytes("t"), bytes("two"), Duration.ofHours(1));
        store.write(batch);
        assertEquals(List.of("k=one"), texts(one.iterator()));
        assertEquals(List.of("k=two", "t=two"), texts(two.iterator()));
        assertEquals(
                List.of("k=default", "l=default again", "m=default by name"),
                texts(store.iterator()));
    }

    @Test
    void batchesAreRefusedAsAWhole() {
        try (Store other = Store.open(folder.resolve("other"))) {
            Keyspace foreign = other.keyspace("foreign");
            WriteBatch batch = new WriteBatch().put(bytes("k"), bytes("v"));
            batch.put(foreign, bytes("k"), bytes("v"));
            assertThrows(IllegalArgumentException.class, () -> store.write(batch));
            assertThrows(
                    IllegalArgumentException.class,
                    () -> batch.put(store.keyspace("own"), bytes("k"), bytes("v")));
            assertEquals(2, batch.size(), "it is as it was");
            other.write(batch);
        }
        WriteBatch inverted = new WriteBatch().put(bytes("k"), bytes("v"));
        inverted.deleteRange(bytes("b"), bytes("a"));
        assertThrows(InvertedRangeException.class, () -> store.write(inverted));
        assertEquals(2, inverted.size());
        Keyspace dropped = store.keyspace("dropped");
        store.dropKeyspace("dropped");
        WriteBatch late = new WriteBatch().put(bytes("k"), bytes("v"));
        late.put(dropped, bytes("k"), bytes("v"));
        assertThrows(KeyspaceDroppedException.class, () -> store.write(late));
        assertNull(store.firstRow());
    }

    @Test
    void conditionsHold() {
        Keyspace names = store.keyspace("names");
        WriteBatch batch = new WriteBatch();
        batch.onlyIf(names, bytes("ann"), null).put(names, bytes("ann"), bytes("7"));
        store.write(batch);
        batch.onlyIf(names, bytes("ann"), null).put(names, bytes("ann"), bytes("8"));
        ConflictException conflict =
                assertThrows(ConflictException.class, () -> store.write(batch));
        assertEquals(25, conflict.code());
        assertEquals("ann", text(conflict.key()));
        batch.clear();
        batch.onlyIf(names, bytes("ann"), bytes("7")).put(names, bytes("ann"), bytes("8"));
        store.write(batch);
        assertEquals("8", text(names.get(bytes("ann"))));
        store.write(new WriteBatch().onlyIf(bytes("x"), null).put(bytes("x"), bytes("1")));
        assertEquals("1", text(store.get(bytes("x"))));
    }

    @Test
    void largeBatchesGrow() {
        WriteBatch batch = new WriteBatch();
        for (int number = 0; number < 50_000; number++) {
            batch.put(key(number), new byte[200]);
        }
        store.write(batch);
        assertEquals(50_000, texts(store.iterator()).size());
    }

    @Test
    void transactionsReadWhatTheyWrite() {
        Keyspace words = store.keyspace("words");
        store.put(bytes("a"), bytes("1"));
        store.put(bytes("c"), bytes("3"));
        try (Transaction transaction = store.transaction()) {
            transaction.put(bytes("b"), bytes("2"));
            transaction.put(Bytes.direct("d"), Bytes.direct("4"));
            transaction.delete(bytes("c"));
            transaction.put(bytes("e"), bytes("5"), Duration.ofHours(1));
            transaction.deleteRange(bytes("x"), bytes("y"));
            TransactionIn there = transaction.of(words);
            there.put(bytes("w"), bytes("word"));
            assertEquals(List.of("a=1", "b=2", "d=4", "e=5"), texts(transaction.iterator()));
            assertEquals(
                    List.of("e=5", "d=4", "b=2", "a=1"),
                    texts(transaction.rangeReverse(null, null)));
            assertTrue(transaction.mayContainRange(bytes("b"), bytes("c")));
            assertTrue(!transaction.mayContainRange(bytes("c"), bytes("d")));
            assertEquals(2, transaction.approximateCount(null, null).most());
            assertEquals("word", text(there.get(bytes("w"))));
            assertEquals("2", text(transaction.getMany(List.of(bytes("b"))).get(0)));
            assertNull(store.get(bytes("b")), "nobody else sees it");
            long last = transaction.commitSynced();
            assertEquals(store.sequence(), last);
            assertThrows(ClosedException.class, () -> there.get(bytes("w")));
            assertThrows(ClosedException.class, () -> transaction.put(bytes("z"), bytes("z")));
            assertThrows(ClosedException.class, transaction::commit);
        }
        assertEquals("2", text(store.get(bytes("b"))));
        assertEquals("word", text(words.get(bytes("w"))));
        assertNull(store.get(bytes("c")));
    }

    @Test
    void transactionsThatAreClosedWriteNothing() {
        Transaction transaction = store.transaction();
        transaction.put(bytes("k"), bytes("v"));
        transaction.close();
        transaction.close();
        assertNull(store.get(bytes("k")));
    }

    @Test
    void transactionsGoBackToSavepoints() {
        try (Transaction transaction = store.transaction()) {
            transaction.put(bytes("a"), bytes("1"));
            Transaction.Savepoint savepoint = transaction.savepoint();
            transaction.put(bytes("b"), bytes("2"));
            transaction.rollBackTo(savepoint);
            try (Transaction other = store.transaction()) {
                assertThrows(
                        IllegalArgumentException.class, () -> other.rollBackTo(savepoint));
            }
            transaction.commit();
        }
        assertEquals(List.of("a=1"), texts(store.iterator()));
    }

    @Test
    void conflictsAreTold() {
        store.put(bytes("k"), bytes("0"));
        try (Transaction one = store.transaction();
                Transaction weak = store.transaction(Isolation.SNAPSHOT)) {
            one.get(bytes("k"));
            weak.get(bytes("k"));
            store.put(bytes("k"), bytes("other"));
            one.put(bytes("l"), bytes("1"));
            weak.put(bytes("m"), bytes("1"));
            ConflictException conflict = assertThrows(ConflictException.class, one::commit);
            assertEquals("k", text(conflict.key()));
            weak.commit();
        }
        assertNull(store.get(bytes("l")));
        assertEquals("1", text(store.get(bytes("m"))));
    }

    @Test
    void lockedKeysAreWaitedFor() {
        try (Store impatient =
                        Store.open(
                                folder.resolve("impatient"),
                                new Options().set("lock_timeout", Duration.ofMillis(50)));
                Transaction holder = impatient.transaction()) {
            assertNull(holder.getForUpdate(bytes("k")));
            LockTimeoutException late =
                    assertThrows(
                            LockTimeoutException.class,
                            () -> impatient.put(bytes("k"), bytes("v")));
            assertEquals("k", text(late.key()));
            holder.put(bytes("k"), bytes("mine"));
            holder.commit();
            impatient.put(bytes("k"), bytes("v"));
        }
    }

    @Test
    void workIsRunUntilItCommits() {
        store.put(bytes("n"), bytes("0"));
        int[] runs = {0};
        String given =
                store.run(
                        transaction -> {
                            String old = text(transaction.get(bytes("n")));
                            if (runs[0]++ < 5) {
                                store.put(bytes("n"), bytes("other" + runs[0]));
                            }
                            transaction.put(bytes("n"), bytes(old + "!"));
                            return old;
                        });
        assertEquals("other5", given);
        assertEquals("other5!", text(store.get(bytes("n"))));
        assertThrows(
                IllegalStateException.class,
                () ->
                        store.run(
                                transaction -> {
                                    transaction.put(bytes("n"), bytes("never"));
                                    throw new IllegalStateException("own");
                                }));
        assertEquals("other5!", text(store.get(bytes("n"))));
    }

    @Test
    void foreignKeyspacesAreRefused() {
        try (Store other = Store.open(folder.resolve("other"));
                Snapshot snapshot = store.snapshot();
                Transaction transaction = store.transaction()) {
            Keyspace foreign = other.keyspace("foreign");
            assertThrows(IllegalArgumentException.class, () -> snapshot.of(foreign));
            assertThrows(IllegalArgumentException.class, () -> transaction.of(foreign));
            assertThrows(IllegalArgumentException.class, () -> snapshot.of(other));
        }
    }
}
