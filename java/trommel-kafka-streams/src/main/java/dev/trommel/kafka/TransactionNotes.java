package dev.trommel.kafka;

import dev.trommel.WriteBatch;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What a producer's open transaction has in changelogs: of each partition the greatest offset. The
 * thread of tasks begins and ends transactions; another one learns offsets meanwhile.
 */
final class TransactionNotes {
    private static final Logger LOG = LoggerFactory.getLogger(TransactionNotes.class);

    private final Map<TopicPartition, Long> offsets = new ConcurrentHashMap<>();

    /** A record is in a partition. */
    void sent(TopicPartition partition, long offset) {
        offsets.merge(partition, offset, Math::max);
    }

    /** Offsets of sources: one of them may serve as the changelog of a table. */
    void consumed(Map<TopicPartition, OffsetAndMetadata> next) {
        next.forEach((partition, position) -> {
            if (position.offset() > 0 && !OpenStores.of(partition).isEmpty()) {
                sent(partition, position.offset() - 1);
            }
        });
    }

    /** The transaction was aborted, or nobody knows what became of it. */
    void forget() {
        offsets.clear();
    }

    /**
     * The transaction is committed: tells stores, those of an engine by one atomic write. Only
     * stores whose last put was made on this thread are meant: a standby or a zombie of the same
     * partition in this process is not.
     */
    void committed() {
        Map<SharedEngine, Map<BytesStore, Map<TopicPartition, Long>>> engines = new HashMap<>();
        offsets.forEach((partition, offset) -> {
            for (BytesStore store : OpenStores.of(partition)) {
                if (store.isWrittenByThisThread()) {
                    engines.computeIfAbsent(store.engine(), engine -> new LinkedHashMap<>())
                            .computeIfAbsent(store, one -> new HashMap<>())
                            .put(partition, offset);
                }
            }
        });
        offsets.clear();
        engines.forEach(TransactionNotes::commit);
    }

    /** A problem costs a replay, no more: the transaction is committed, so the task goes on. */
    private static void commit(
            SharedEngine engine, Map<BytesStore, Map<TopicPartition, Long>> stores) {
        try {
            WriteBatch batch = new WriteBatch();
            stores.forEach((store, offsets) -> store.stage(batch, offsets));
            engine.write(batch);
            stores.keySet().forEach(BytesStore::told);
        } catch (RuntimeException problem) {
            LOG.error("A commit could not be written to {}; it is tried again with the next one."
                    + " Until then a restart replays what it had.", engine, problem);
        }
    }
}
