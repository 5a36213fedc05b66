package dev.trommel.kafka;

import java.util.Map;
import java.util.Random;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.processor.StateStore;

/** When tests commit: what a store answers never depends on it. */
enum Commits {
    /** Everything is in the buffer. */
    NEVER,
    /** Everything is in the engine. */
    ALWAYS,
    /** Some is here, some there. */
    SOMETIMES;

    static final TopicPartition CHANGELOG = new TopicPartition("app-store-changelog", 1);

    private final Random random = new Random(7);
    private long offset;

    void after(StateStore store) {
        offset++;
        if (this == ALWAYS || (this == SOMETIMES && random.nextInt(3) == 0)) {
            store.commit(Map.of(CHANGELOG, offset));
        }
    }
}
