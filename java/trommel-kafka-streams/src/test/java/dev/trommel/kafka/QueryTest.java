package dev.trommel.kafka;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.query.FailureReason;
import org.apache.kafka.streams.query.KeyQuery;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.Query;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;
import org.apache.kafka.streams.query.RangeQuery;
import org.apache.kafka.streams.query.WindowKeyQuery;
import org.apache.kafka.streams.query.WindowRangeQuery;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Interactive queries on bytes. */
class QueryTest {
    private static final QueryConfig PLAIN = new QueryConfig(false);

    @TempDir
    Path state;

    private BytesStore opened;

    @AfterEach
    void close() {
        opened.close();
    }

    private static Bytes key(String text) {
        return Bytes.wrap(text.getBytes(StandardCharsets.UTF_8));
    }

    private static <R> QueryResult<R> ask(BytesStore store, Query<R> query) {
        return store.query(query, PositionBound.unbounded(), PLAIN);
    }

    private KeyValueBytes keys() {
        TaskContext context = new TaskContext(state);
        KeyValueBytes store = new KeyValueBytes("keys");
        store.init(context, store);
        opened = store;
        context.at("input", 1, 7);
        for (String key : List.of("a", "b", "c")) {
            store.put(key(key), key.getBytes(StandardCharsets.UTF_8));
        }
        return store;
    }

    private static String keysOf(KeyValueIterator<?, byte[]> rows) {
        List<String> found = new ArrayList<>();
        rows.forEachRemaining(row -> found.add(new String(row.value, StandardCharsets.UTF_8)));
        rows.close();
        return String.join("", found);
    }

    @Test
    void keysAndRangesOfKeys() {
        KeyValueBytes store = keys();
        assertArrayEquals(new byte[] {'b'},
                (byte[]) ask(store, KeyQuery.withKey(key("b"))).getResult());
        assertEquals("bc", keysOf(ask(store,
                RangeQuery.<Bytes, byte[]>withLowerBound(key("b"))).getResult()));
        assertEquals("ba", keysOf(ask(store,
                RangeQuery.<Bytes, byte[]>withUpperBound(key("b")).withDescendingKeys())
                .getResult()));
        assertEquals("cba", keysOf(ask(store,
                RangeQuery.<Bytes, byte[]>withNoBounds().withDescendingKeys()).getResult()));
    }

    @Test
    void aBoundThatIsNotReachedIsSaid() {
        KeyValueBytes store = keys();
        for (long offset : new long[] {7, 8}) {
            Position wanted = Position.emptyPosition().withComponent("input", 1, offset)
                    .withComponent("input", 2, 1_000);
            QueryResult<byte[]> result = store.query(
                    KeyQuery.<Bytes, byte[]>withKey(key("a")), PositionBound.at(wanted),
                    new QueryConfig(true));
            assertEquals(offset == 7, result.isSuccess());
            assertFalse(result.getExecutionInfo().isEmpty());
            assertEquals(7L,
                    result.getPosition().getPartitionPositions("input").get(1));
        }
    }

    @Test
    void windows() {
        WindowBytes store = new WindowBytes(new WindowShape("windows", Duration.ofMinutes(10),
                Duration.ofMillis(10), false));
        store.init(new TaskContext(state), store);
        opened = store;
        store.put(key("a"), new byte[] {'1'}, 5);
        store.put(key("a"), new byte[] {'2'}, 50);
        store.put(key("b"), new byte[] {'3'}, 5);
        assertEquals("1", keysOf(ask(store, asTyped(WindowKeyQuery
                .withKeyAndWindowStartRange(key("a"), Instant.ofEpochMilli(0),
                        Instant.ofEpochMilli(49)))).getResult()));
        assertEquals("123", keysOf(ask(store, WindowRangeQuery.<Bytes, byte[]>
                withWindowStartRange(Instant.ofEpochMilli(5), Instant.ofEpochMilli(50)))
                .getResult()));
        assertEquals(FailureReason.UNKNOWN_QUERY_TYPE, ask(store,
                WindowRangeQuery.<Bytes, byte[]>withKey(key("a"))).getFailureReason());
    }

    /** As typed stores hand it on: they make a second query from what the first one says. */
    private static WindowKeyQuery<Bytes, byte[]> asTyped(WindowKeyQuery<Bytes, byte[]> query) {
        return WindowKeyQuery.withKeyAndWindowStartRange(query.getKey(),
                query.getTimeFrom().orElseThrow(), query.getTimeTo().orElseThrow());
    }

    @Test
    void sessions() {
        SessionBytes store = new SessionBytes("sessions", 600_000);
        store.init(new TaskContext(state), store);
        opened = store;
        store.put(new Windowed<>(key("a"), new SessionWindow(1, 2)), new byte[] {'1'});
        store.put(new Windowed<>(key("b"), new SessionWindow(1, 2)), new byte[] {'2'});
        assertEquals("1", keysOf(ask(store, WindowRangeQuery.<Bytes, byte[]>
                withKey(key("a"))).getResult()));
        assertEquals(FailureReason.UNKNOWN_QUERY_TYPE, ask(store, WindowRangeQuery
                .<Bytes, byte[]>withWindowStartRange(Instant.EPOCH, Instant.EPOCH))
                .getFailureReason());
    }

    @Test
    void otherQueriesAndProblemsAreFailures() {
        KeyValueBytes store = keys();
        assertEquals(FailureReason.UNKNOWN_QUERY_TYPE, ask(store,
                WindowRangeQuery.<Bytes, byte[]>withKey(key("a"))).getFailureReason());
        store.close();
        QueryResult<byte[]> result =
                ask(store, KeyQuery.<Bytes, byte[]>withKey(key("a")));
        assertEquals(FailureReason.STORE_EXCEPTION, result.getFailureReason());
        assertTrue(result.getFailureMessage().contains("keys is closed"));
    }
}
