package dev.trommel.kafka;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metrics.KafkaMetric;

/** A producer that tells open stores when a transaction with their changes is committed. */
final class CommitTellingProducer implements Producer<byte[], byte[]> {
    private final Producer<byte[], byte[]> inner;
    private final TransactionNotes notes = new TransactionNotes();

    CommitTellingProducer(Producer<byte[], byte[]> inner) {
        this.inner = inner;
    }

    @Override
    public Future<RecordMetadata> send(ProducerRecord<byte[], byte[]> record) {
        return send(record, null);
    }

    @Override
    public Future<RecordMetadata> send(
            ProducerRecord<byte[], byte[]> record, Callback callback) {
        return inner.send(record, (metadata, problem) -> {
            if (problem == null && metadata.hasOffset()) {
                notes.sent(new TopicPartition(metadata.topic(), metadata.partition()),
                        metadata.offset());
            }
            if (callback != null) {
                callback.onCompletion(metadata, problem);
            }
        });
    }

    @Override
    public void beginTransaction() {
        notes.forget();
        inner.beginTransaction();
    }

    @Override
    public void sendOffsetsToTransaction(
            Map<TopicPartition, OffsetAndMetadata> offsets, ConsumerGroupMetadata group) {
        inner.sendOffsetsToTransaction(offsets, group);
        notes.consumed(offsets);
    }

    @Override
    public void commitTransaction() {
        boolean committed = false;
        try {
            inner.commitTransaction();
            committed = true;
        } finally {
            if (!committed) {
                notes.forget();
            }
        }
        notes.committed();
    }

    @Override
    public void abortTransaction() {
        notes.forget();
        inner.abortTransaction();
    }

    @Override
    public void initTransactions() {
        inner.initTransactions();
    }

    @Override
    public void flush() {
        inner.flush();
    }

    @Override
    public List<PartitionInfo> partitionsFor(String topic) {
        return inner.partitionsFor(topic);
    }

    @Override
    public Map<MetricName, ? extends Metric> metrics() {
        return inner.metrics();
    }

    @Override
    public void registerMetricForSubscription(KafkaMetric metric) {
        inner.registerMetricForSubscription(metric);
    }

    @Override
    public void unregisterMetricFromSubscription(KafkaMetric metric) {
        inner.unregisterMetricFromSubscription(metric);
    }

    @Override
    public Uuid clientInstanceId(Duration timeout) {
        return inner.clientInstanceId(timeout);
    }

    @Override
    public void close() {
        inner.close();
    }

    @Override
    public void close(Duration timeout) {
        inner.close(timeout);
    }
}
