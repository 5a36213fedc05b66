package dev.trommel.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.io.IOException;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Map;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsMetrics;
import org.apache.kafka.streams.processor.TaskId;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The runtime deletes folders of tasks that are not closed in good order: which rows stay. */
class KeptFoldersTest {
    private static final Bytes KEY = Bytes.wrap("a".getBytes(StandardCharsets.UTF_8));

    @TempDir
    Path state;

    private final StreamsMetrics instance = metrics();
    private final TransactionNotes notes = new TransactionNotes();

    private static StreamsMetrics metrics() {
        return (StreamsMetrics) Proxy.newProxyInstance(KeptFoldersTest.class.getClassLoader(),
                new Class<?>[] {StreamsMetrics.class}, (proxy, method, arguments) -> null);
    }

    private TaskContext context(String guarantee, StreamsMetrics of) {
        return new TaskContext(state).with("processing.guarantee", guarantee).of(of);
    }

    private KeyValueBytes open(String name, TaskContext context) {
        KeyValueBytes store = new KeyValueBytes(name);
        store.init(context, store);
        store.committedOffset(Commits.CHANGELOG);
        return store;
    }

    private KeyValueBytes open() {
        return open("store", context("exactly_once_v2", instance));
    }

    private void put(KeyValueBytes store, String value) {
        store.put(KEY, value.getBytes(StandardCharsets.UTF_8));
    }

    private void commitTransaction(long offset) {
        notes.sent(Commits.CHANGELOG, offset);
        notes.committed();
    }

    /** As Kafka Streams closes a task that was fenced. */
    private void closeAndWipe(KeyValueBytes... stores) throws IOException {
        for (KeyValueBytes store : stores) {
            store.close();
        }
        LifecycleTest.delete(new TaskContext(state).folder());
    }

    private static void requireRow(KeyValueBytes store, String value, long offset) {
        assertEquals(offset, store.committedOffset(Commits.CHANGELOG));
        byte[] found = store.get(KEY);
        assertEquals(value, found == null ? null : new String(found, StandardCharsets.UTF_8));
        store.close();
    }

    @Test
    void aFencedTaskHasWhatItCommitted() throws IOException {
        KeyValueBytes store = open();
        put(store, "committed");
        commitTransaction(7);
        put(store, "of the aborted transaction");
        closeAndWipe(store);
        requireRow(open(), "committed", 7);
    }

    @Test
    void otherStoresOfTheInstanceSweepItNot() throws IOException {
        KeyValueBytes store = open();
        put(store, "committed");
        commitTransaction(7);
        closeAndWipe(store);
        open("other", new TaskContext(state, new TaskId(0, 2)).of(instance)).close();
        requireRow(open(), "committed", 7);
    }

    @Test
    void anotherInstanceBeginsAnew() throws IOException {
        KeyValueBytes store = open();
        put(store, "committed");
        commitTransaction(7);
        closeAndWipe(store);
        requireRow(open("store", context("exactly_once_v2", metrics())), null,
                StoreRows.OFFSET_UNKNOWN);
    }

    @Test
    void soDoesOneThatNamesItselfNot() throws IOException {
        KeyValueBytes store = open("store", context("exactly_once_v2", null));
        put(store, "committed");
        commitTransaction(7);
        closeAndWipe(store);
        requireRow(open("store", context("exactly_once_v2", null)), null,
                StoreRows.OFFSET_UNKNOWN);
    }

    @Test
    void underAtLeastOnceNobodyWipesAsRowsAreFine() throws IOException {
        KeyValueBytes store = open("store", context("at_least_once", instance));
        put(store, "committed");
        store.commit(Map.of(Commits.CHANGELOG, 7L));
        closeAndWipe(store);
        requireRow(open("store", context("at_least_once", instance)), null,
                StoreRows.OFFSET_UNKNOWN);
    }

    /** A commit that timed out: the runtime tells stores to commit, and wipes them then. */
    @Test
    void writesOfUnknownOutcomeAreNotKept() throws IOException {
        KeyValueBytes store = open();
        KeyValueBytes other = open("other", context("exactly_once_v2", instance));
        put(store, "committed");
        commitTransaction(7);
        put(store, "nobody knows");
        store.commit(Map.of(Commits.CHANGELOG, 8L));
        other.commit(Map.of(Commits.CHANGELOG, 8L));
        closeAndWipe(store, other);
        requireRow(open(), null, StoreRows.OFFSET_UNKNOWN);
    }

    @Test
    void aCorruptStateIsNotKept() throws IOException {
        KeyValueBytes store = open();
        put(store, "committed");
        commitTransaction(7);
        store.commit(Map.of());
        closeAndWipe(store);
        assertNull(KeptFolders.take(new TaskContext(state).folder().toAbsolutePath(), instance));
        requireRow(open(), null, StoreRows.OFFSET_UNKNOWN);
    }

    @Test
    void whoCommitsNothingMeanwhileIsNotKeptTwice() throws IOException {
        KeyValueBytes store = open();
        put(store, "committed");
        commitTransaction(7);
        closeAndWipe(store);
        closeAndWipe(open(), open("other", context("exactly_once_v2", instance)));
        requireRow(open(), null, StoreRows.OFFSET_UNKNOWN);
        store = open();
        put(store, "again");
        commitTransaction(8);
        closeAndWipe(store);
        requireRow(open(), "again", 8);
    }
}
