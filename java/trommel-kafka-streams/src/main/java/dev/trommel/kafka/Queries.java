package dev.trommel.kafka;

import java.time.Instant;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.query.FailureReason;
import org.apache.kafka.streams.query.KeyQuery;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.Query;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;
import org.apache.kafka.streams.query.RangeQuery;
import org.apache.kafka.streams.query.ResultOrder;
import org.apache.kafka.streams.query.WindowKeyQuery;
import org.apache.kafka.streams.query.WindowRangeQuery;

/** Interactive queries, as the stores of Kafka Streams answer them. */
final class Queries {
    private Queries() {}

    /** The answer of a store, or why it has none. */
    static <R> QueryResult<R> answer(
            BytesStore store, Query<R> query, PositionBound bound, QueryConfig config) {
        long begun = System.nanoTime();
        Position position = store.getPosition();
        QueryResult<R> result;
        synchronized (position) {
            result = isReached(position, bound, store.context().taskId().partition())
                    ? guarded(store, query)
                    : QueryResult.notUpToBound(position, bound,
                            store.context().taskId().partition());
            result.setPosition(position.copy());
        }
        if (config.isCollectExecutionInfo()) {
            result.addExecutionInfo("Handled in " + store.getClass() + " in "
                    + (System.nanoTime() - begun) + "ns");
        }
        return result;
    }

    /** Whether a store has seen of a partition's topics what the bound names. */
    private static boolean isReached(Position seen, PositionBound bound, int partition) {
        Position wanted = bound.position();
        for (String topic : wanted.getTopics()) {
            Long offset = wanted.getPartitionPositions(topic).get(partition);
            Map<Integer, Long> there = seen.getPartitionPositions(topic);
            if (offset != null && there.getOrDefault(partition, -1L) < offset) {
                return false;
            }
        }
        return true;
    }

    @SuppressWarnings("unchecked") // A query's class says what its result is.
    private static <R> QueryResult<R> guarded(BytesStore store, Query<R> query) {
        try {
            return (QueryResult<R>) run(store, query);
        } catch (RuntimeException problem) {
            return QueryResult.forFailure(FailureReason.STORE_EXCEPTION,
                    "Store " + store.name() + " could not answer " + query + ": " + problem);
        }
    }

    @SuppressWarnings("unchecked") // Below the serializers keys and values are bytes.
    private static QueryResult<?> run(BytesStore store, Query<?> query) {
        if (store instanceof KeyValueBytes) {
            KeyValueBytes keys = (KeyValueBytes) store;
            if (query instanceof KeyQuery) {
                return QueryResult.forResult(keys.get(((KeyQuery<Bytes, byte[]>) query).getKey()));
            }
            if (query instanceof RangeQuery) {
                return range(keys, (RangeQuery<Bytes, byte[]>) query);
            }
        } else if (store instanceof WindowBytes && query instanceof WindowKeyQuery) {
            return windowsOfKey((WindowBytes) store, (WindowKeyQuery<Bytes, byte[]>) query);
        } else if (store instanceof WindowBytes && query instanceof WindowRangeQuery) {
            return windows((WindowBytes) store, (WindowRangeQuery<Bytes, byte[]>) query);
        } else if (store instanceof SessionBytes && query instanceof WindowRangeQuery) {
            return sessions((SessionBytes) store, (WindowRangeQuery<Bytes, byte[]>) query);
        }
        return QueryResult.forUnknownQueryType(query, store);
    }

    private static QueryResult<?> range(KeyValueBytes store, RangeQuery<Bytes, byte[]> query) {
        Bytes from = query.getLowerBound().orElse(null);
        Bytes to = query.getUpperBound().orElse(null);
        boolean reverse = query.resultOrder() == ResultOrder.DESCENDING;
        return QueryResult.forResult(
                reverse ? store.reverseRange(from, to) : store.range(from, to));
    }

    private static QueryResult<?> windowsOfKey(
            WindowBytes store, WindowKeyQuery<Bytes, byte[]> query) {
        Optional<Instant> from = query.getTimeFrom();
        Optional<Instant> to = query.getTimeTo();
        if (from.isEmpty() || to.isEmpty()) {
            return wants(store, query, "both ends of the time");
        }
        return QueryResult.forResult(store.fetch(query.getKey(), from.get().toEpochMilli(),
                to.get().toEpochMilli()));
    }

    private static QueryResult<?> windows(
            WindowBytes store, WindowRangeQuery<Bytes, byte[]> query) {
        Optional<Instant> from = query.getTimeFrom();
        Optional<Instant> to = query.getTimeTo();
        if (from.isEmpty() || to.isEmpty()) {
            return wants(store, query, "both ends of the time (withWindowStartRange)");
        }
        return QueryResult.forResult(
                store.fetchAll(from.get().toEpochMilli(), to.get().toEpochMilli()));
    }

    private static QueryResult<?> sessions(
            SessionBytes store, WindowRangeQuery<Bytes, byte[]> query) {
        if (query.getKey().isEmpty()) {
            return wants(store, query, "a key (withKey)");
        }
        return QueryResult.forResult(store.fetch(query.getKey().get()));
    }

    private static QueryResult<?> wants(BytesStore store, Query<?> query, String what) {
        return QueryResult.forFailure(FailureReason.UNKNOWN_QUERY_TYPE,
                "Store " + store.name() + " cannot answer " + query + ": it wants " + what);
    }
}
