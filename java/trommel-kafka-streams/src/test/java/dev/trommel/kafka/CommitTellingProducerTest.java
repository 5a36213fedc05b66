package dev.trommel.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.MockConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.MockProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.processor.TaskId;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Which stores a producer tells of which offsets, and when. */
class CommitTellingProducerTest {
    private static final TopicPartition CHANGELOG = Commits.CHANGELOG;

    @TempDir
    Path state;

    private MockProducer<byte[], byte[]> inner;
    private CommitTellingProducer producer;
    private KeyValueBytes store;

    @BeforeEach
    void open() {
        inner = new MockProducer<>(partitions(), true, null, new ByteArraySerializer(),
                new ByteArraySerializer());
        producer = new CommitTellingProducer(inner);
        producer.initTransactions();
        store = openStore(new TaskContext(state), CHANGELOG);
    }

    private static Cluster partitions() {
        List<PartitionInfo> partitions = new ArrayList<>();
        for (int number = 0; number < 3; number++) {
            partitions.add(new PartitionInfo(CHANGELOG.topic(), number, null, null, null));
        }
        return new Cluster("cluster", List.of(), partitions, Set.of(), Set.of());
    }

    private static KeyValueBytes openStore(TaskContext context, TopicPartition changelog) {
        KeyValueBytes store = new KeyValueBytes("store");
        context.with("processing.guarantee", "exactly_once_v2");
        store.init(context, store);
        store.committedOffset(changelog);
        return store;
    }

    @AfterEach
    void close() {
        store.close();
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private void put(KeyValueBytes to, TopicPartition changelog, String key, String value) {
        to.put(Bytes.wrap(bytes(key)), bytes(value));
        producer.send(new ProducerRecord<>(changelog.topic(), changelog.partition(), bytes(key),
                bytes(value)));
    }

    private static String get(KeyValueBytes from, String key) {
        byte[] value = from.get(Bytes.wrap(bytes(key)));
        return value == null ? null : new String(value, StandardCharsets.UTF_8);
    }

    private void reopen() {
        store.close();
        store = openStore(new TaskContext(state), CHANGELOG);
    }

    @Test
    void aCommitIsTold() {
        producer.beginTransaction();
        put(store, CHANGELOG, "a", "1");
        put(store, CHANGELOG, "b", "2");
        assertTrue(store.approximateNumUncommittedBytes() > 0);
        producer.commitTransaction();
        assertEquals(0, store.approximateNumUncommittedBytes());
        reopen();
        assertEquals(1L, store.committedOffset(CHANGELOG));
        assertEquals("1", get(store, "a"));
        assertEquals("2", get(store, "b"));
    }

    @Test
    void anAbortIsNot() {
        producer.beginTransaction();
        put(store, CHANGELOG, "a", "1");
        producer.commitTransaction();
        producer.beginTransaction();
        put(store, CHANGELOG, "a", "2");
        producer.abortTransaction();
        reopen();
        assertEquals(0L, store.committedOffset(CHANGELOG));
        assertEquals("1", get(store, "a"));
    }

    @Test
    void aCommitOfUnknownOutcomeIsNot() {
        producer.beginTransaction();
        put(store, CHANGELOG, "a", "1");
        inner.commitTransactionException = new TimeoutException("nobody answers");
        assertThrows(TimeoutException.class, producer::commitTransaction);
        inner.commitTransactionException = null;
        assertTrue(store.approximateNumUncommittedBytes() > 0);
        producer.abortTransaction();
        producer.beginTransaction();
        producer.commitTransaction();
        reopen();
        assertEquals(StoreRows.OFFSET_UNKNOWN, store.committedOffset(CHANGELOG));
        assertNull(get(store, "a"));
    }

    @Test
    void aStoreOfAnotherThreadIsNotTold() throws InterruptedException {
        Thread zombie = new Thread(() -> store.put(Bytes.wrap(bytes("a")), bytes("zombie")));
        zombie.start();
        zombie.join();
        producer.beginTransaction();
        producer.send(new ProducerRecord<>(CHANGELOG.topic(), CHANGELOG.partition(), bytes("a"),
                bytes("1")));
        producer.commitTransaction();
        reopen();
        assertEquals(StoreRows.OFFSET_UNKNOWN, store.committedOffset(CHANGELOG));
        assertNull(get(store, "a"));
    }

    @Test
    void aStandbyIsNotTold() {
        TaskContext context = new TaskContext(state);
        store.close();
        store = openStore(context, CHANGELOG);
        producer.beginTransaction();
        put(store, CHANGELOG, "a", "1");
        producer.commitTransaction();
        context.restore(bytes("a"), bytes("2"));
        producer.beginTransaction();
        producer.send(new ProducerRecord<>(CHANGELOG.topic(), CHANGELOG.partition(), bytes("a"),
                bytes("3")));
        producer.commitTransaction();
        assertTrue(store.approximateNumUncommittedBytes() > 0);
        assertEquals("2", get(store, "a"));
    }

    @Test
    void storesOfOneTransactionAreToldTogether() {
        TopicPartition otherChangelog = new TopicPartition(CHANGELOG.topic(), 2);
        KeyValueBytes other =
                openStore(new TaskContext(state, new TaskId(0, 2)), otherChangelog);
        producer.beginTransaction();
        put(store, CHANGELOG, "a", "1");
        put(other, otherChangelog, "a", "2");
        producer.commitTransaction();
        assertEquals(0L, store.committedOffset(CHANGELOG));
        assertEquals(0L, other.committedOffset(otherChangelog));
        assertEquals("1", get(store, "a"));
        assertEquals("2", get(other, "a"));
        other.close();
    }

    @Test
    void aSourceTopicMayBeTheChangelog() {
        TopicPartition source = new TopicPartition("source", 1);
        store.close();
        store = openStore(new TaskContext(state), source);
        producer.beginTransaction();
        store.put(Bytes.wrap(bytes("a")), bytes("1"));
        producer.sendOffsetsToTransaction(Map.of(source, new OffsetAndMetadata(12)),
                new MockConsumer<byte[], byte[]>("earliest").groupMetadata());
        producer.commitTransaction();
        store.close();
        store = openStore(new TaskContext(state), source);
        assertEquals(11L, store.committedOffset(source));
        assertEquals("1", get(store, "a"));
    }

    @Test
    void beingToldTwiceChangesNothing() {
        producer.beginTransaction();
        put(store, CHANGELOG, "a", "1");
        producer.commitTransaction();
        store.commit(Map.of(CHANGELOG, 0L));
        store.commit(Map.of(CHANGELOG, 0L));
        reopen();
        assertEquals(0L, store.committedOffset(CHANGELOG));
        assertEquals("1", get(store, "a"));
    }
}
