package dev.trommel.kafka;

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsMetrics;
import org.apache.kafka.streams.processor.BatchingStateRestoreCallback;
import org.apache.kafka.streams.processor.CommitCallback;
import org.apache.kafka.streams.processor.StateRestoreCallback;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.api.RecordMetadata;

/** What a store needs of a task, without Kafka. */
final class TaskContext implements StateStoreContext {
    static final String APPLICATION = "app";

    final Map<String, Object> configs = new HashMap<>();
    private final Path state;
    private final TaskId task;
    private BatchingStateRestoreCallback restoring;
    private StreamsMetrics metrics;
    private RecordMetadata record;

    TaskContext(Path state) {
        this(state, new TaskId(0, 1));
    }

    TaskContext(Path state, TaskId task) {
        this.state = state;
        this.task = task;
    }

    TaskContext with(String config, Object value) {
        configs.put(config, value);
        return this;
    }

    /** The task is one of the instance that has these metrics. */
    TaskContext of(StreamsMetrics instance) {
        metrics = instance;
        return this;
    }

    /** The task is at this record from now on. */
    void at(String topic, int partition, long offset) {
        record = new RecordMetadata() {
            @Override
            public String topic() {
                return topic;
            }

            @Override
            public int partition() {
                return partition;
            }

            @Override
            public long offset() {
                return offset;
            }
        };
    }

    void restore(byte[] key, byte[] value) {
        restore(List.of(KeyValue.pair(key, value)));
    }

    void restore(List<KeyValue<byte[], byte[]>> records) {
        restoring.restoreAll(records);
    }

    Path folder() {
        return state.resolve(APPLICATION).resolve(task.subtopology() + "_" + task.partition());
    }

    @Override
    public String applicationId() {
        return APPLICATION;
    }

    @Override
    public TaskId taskId() {
        return task;
    }

    @Override
    public Optional<RecordMetadata> recordMetadata() {
        return Optional.ofNullable(record);
    }

    @Override
    public Serde<?> keySerde() {
        return null;
    }

    @Override
    public Serde<?> valueSerde() {
        return null;
    }

    @Override
    public File stateDir() {
        try {
            return Files.createDirectories(folder()).toFile();
        } catch (java.io.IOException problem) {
            throw new java.io.UncheckedIOException(problem);
        }
    }

    @Override
    public StreamsMetrics metrics() {
        return metrics;
    }

    @Override
    public void register(StateStore store, StateRestoreCallback callback) {
        restoring = (BatchingStateRestoreCallback) callback;
    }

    @Override
    public void register(
            StateStore store, StateRestoreCallback callback, CommitCallback commitCallback) {
        register(store, callback);
    }

    @Override
    public Map<String, Object> appConfigs() {
        return configs;
    }

    @Override
    public Map<String, Object> appConfigsWithPrefix(String prefix) {
        return Map.of();
    }
}
