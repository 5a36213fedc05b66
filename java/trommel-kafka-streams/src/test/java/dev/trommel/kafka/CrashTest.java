package dev.trommel.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Processes that die behind a commit, and state that is cleaned up; without a broker. */
class CrashTest {
    private static final long COMMITS = 500;
    private static final Bytes COUNTER = Bytes.wrap(new byte[] {0});

    @TempDir
    Path state;

    /** Commits so many times, each a row more and a counter, and dies with another one unsaid. */
    static final class Dies {
        private Dies() {}

        public static void main(String[] arguments) {
            TaskContext context = new TaskContext(Path.of(arguments[0]));
            for (int at = 1; at < arguments.length; at += 2) {
                context.with(arguments[at], arguments[at + 1]);
            }
            KeyValueBytes store = open(context);
            for (long commit = 1; commit <= COMMITS; commit++) {
                put(store, commit);
                store.commit(Map.of(Commits.CHANGELOG, commit));
            }
            put(store, COMMITS + 1);
            Runtime.getRuntime().halt(9);
        }
    }

    private static KeyValueBytes open(TaskContext context) {
        KeyValueBytes store = new KeyValueBytes("store");
        store.init(context, store);
        return store;
    }

    private static Bytes key(long number) {
        return Bytes.wrap(("key-" + number).getBytes(StandardCharsets.UTF_8));
    }

    private static void put(KeyValueBytes store, long number) {
        store.put(key(number), new byte[100]);
        store.put(COUNTER, ByteBuffer.allocate(Long.BYTES).putLong(number).array());
    }

    /** Lets a process die, and gives the offset that is there afterwards; 0 if none is. */
    private long offsetAfterDeath(String... configs) throws Exception {
        String[] arguments = new String[configs.length + 1];
        arguments[0] = state.toString();
        System.arraycopy(configs, 0, arguments, 1, configs.length);
        ChildProcess process = ChildProcess.start(
                state.resolve("output"), 128, Dies.class, arguments);
        process.await("dead", 120, () -> !process.isAlive());
        TaskContext context = new TaskContext(state);
        for (int at = 0; at < configs.length; at += 2) {
            context.with(configs[at], configs[at + 1]);
        }
        KeyValueBytes store = open(context);
        try {
            long offset = Math.max(0, store.committedOffset(Commits.CHANGELOG));
            byte[] counter = store.get(COUNTER);
            assertEquals(offset, counter == null ? 0 : ByteBuffer.wrap(counter).getLong(),
                    "rows are those of the offset" + process.lastWords());
            for (long number = 1; number <= COMMITS + 1; number++) {
                assertEquals(number <= offset, store.get(key(number)) != null, "row " + number);
            }
            return offset;
        } finally {
            // An engine that was written to is closed with its last store, and merges no more when
            // its folder is deleted.
            put(store, COMMITS);
            store.commit(Map.of(Commits.CHANGELOG, COMMITS));
            store.close();
            assertFalse(SharedEngine.isOpen(state.resolve(context.applicationId())));
        }
    }

    @Test
    void theLastCommitIsThere() throws Exception {
        assertEquals(COMMITS, offsetAfterDeath("processing.guarantee", "exactly_once_v2"));
    }

    @Test
    void theLastCommitIsThereUnderAtLeastOnce() throws Exception {
        assertEquals(COMMITS, offsetAfterDeath("processing.guarantee", "at_least_once"));
    }

    @Test
    void withoutALogAnOlderCommitIsThereAsAWhole() throws Exception {
        long offset = offsetAfterDeath("processing.guarantee", "exactly_once_v2",
                TrommelConfig.LOG, "false",
                TrommelConfig.KEYSPACE_OPTIONS, "write_buffer_bytes=4KiB");
        assertTrue(offset > 0 && offset <= COMMITS, "of " + COMMITS + " commits " + offset);
    }

    @Test
    void withoutALogAndAFlushNothingIsThere() throws Exception {
        assertEquals(0, offsetAfterDeath("processing.guarantee", "exactly_once_v2",
                TrommelConfig.LOG, "false"));
    }

    @Test
    void whatIsCleanedUpIsGone() {
        TaskContext context = new TaskContext(state);
        KeyValueBytes store = open(context);
        put(store, 1);
        store.commit(Map.of(Commits.CHANGELOG, 1L));
        store.close();
        Properties config = new Properties();
        config.put("application.id", context.applicationId());
        config.put("bootstrap.servers", "127.0.0.1:1");
        config.put("state.dir", state.toString());
        config.put("default.key.serde", Serdes.StringSerde.class);
        config.put("default.value.serde", Serdes.StringSerde.class);
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream("input").groupByKey().count();
        try (KafkaStreams streams = new KafkaStreams(builder.build(), config)) {
            streams.cleanUp();
        }
        store = open(new TaskContext(state));
        assertEquals(StoreRows.OFFSET_UNKNOWN, store.committedOffset(Commits.CHANGELOG));
        assertNull(store.get(key(1)));
        store.close();
    }
}
