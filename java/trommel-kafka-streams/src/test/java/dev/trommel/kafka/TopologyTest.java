package dev.trommel.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.Random;
import java.util.TreeMap;
import java.util.function.Consumer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TopologyConfig;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers;
import org.apache.kafka.streams.test.TestRecord;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Operators give the same with stores of Trommel as with those of Kafka Streams. */
class TopologyTest {
    private static final Duration WINDOW = Duration.ofSeconds(60);

    @TempDir
    Path state;

    private Properties config(Class<?> suppliers, int cacheBytes, String format) {
        Properties config = new Properties();
        config.put(StreamsConfig.DSL_STORE_FORMAT_CONFIG, format);
        config.put(StreamsConfig.APPLICATION_ID_CONFIG, "topology");
        config.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "nowhere:1");
        config.put(StreamsConfig.STATE_DIR_CONFIG,
                state.resolve(suppliers.getSimpleName() + cacheBytes + format).toString());
        config.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        config.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        config.put(StreamsConfig.DSL_STORE_SUPPLIERS_CLASS_CONFIG, suppliers);
        config.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, cacheBytes);
        return config;
    }

    /** Outputs by key, in the order in which each key has them. */
    private TreeMap<String, List<String>> run(
            Properties config, Consumer<StreamsBuilder> operators) {
        StreamsBuilder builder =
                new StreamsBuilder(new TopologyConfig(new StreamsConfig(config)));
        operators.accept(builder);
        TreeMap<String, List<String>> outputs = new TreeMap<>();
        try (TopologyTestDriver driver = new TopologyTestDriver(builder.build(config), config,
                Instant.ofEpochMilli(0))) {
            feed(driver);
            var out = driver.createOutputTopic("out", new StringDeserializer(),
                    new StringDeserializer());
            while (!out.isEmpty()) {
                TestRecord<String, String> record = out.readRecord();
                outputs.computeIfAbsent(record.key(), key -> new ArrayList<>())
                        .add(record.value() + "@" + record.timestamp());
            }
        }
        return outputs;
    }

    private static void feed(TopologyTestDriver driver) {
        Random random = new Random(42);
        List<TestInputTopic<String, String>> inputs = new ArrayList<>();
        for (String topic : List.of("left", "right")) {
            try {
                inputs.add(driver.createInputTopic(topic, new StringSerializer(),
                        new StringSerializer()));
            } catch (IllegalArgumentException notInThisTopology) {
                continue;
            }
        }
        long time = 0;
        for (int number = 0; number < 1_500; number++) {
            time += random.nextInt(2_000);
            long late = Math.max(0, time - random.nextInt(90_000) * random.nextInt(2));
            String key = "k" + random.nextInt(20);
            String value = random.nextInt(12) == 0 ? null : "k" + random.nextInt(20);
            int topic = random.nextInt(2);
            if (inputs.size() > topic) {
                try {
                    inputs.get(topic).pipeInput(key, value, late);
                } catch (IllegalArgumentException unknownTopic) {
                    inputs.remove(topic);
                }
            }
        }
    }

    /** Beside stores in memory, which are opened in no time. */
    private void check(Consumer<StreamsBuilder> operators) {
        check(operators, BuiltInDslStoreSuppliers.InMemoryDslStoreSuppliers.class);
    }

    /**
     * Beside those on disk, where the two kinds of Kafka differ: stores in memory give no windows
     * that are closed already, and join streams otherwise when records come late.
     */
    private void checkOnDisk(Consumer<StreamsBuilder> operators) {
        check(operators, BuiltInDslStoreSuppliers.RocksDBDslStoreSuppliers.class);
    }

    private void check(Consumer<StreamsBuilder> operators, Class<?> others) {
        for (String format : List.of("DEFAULT", "HEADERS")) {
            for (int cacheBytes : new int[] {0, 100_000}) {
                check(operators, others, cacheBytes, format);
            }
        }
    }

    private void check(
            Consumer<StreamsBuilder> operators, Class<?> others, int cacheBytes, String format) {
        TreeMap<String, List<String>> expected =
                run(config(others, cacheBytes, format), operators);
        TreeMap<String, List<String>> found =
                run(config(TrommelDslStoreSuppliers.class, cacheBytes, format), operators);
        int rows = expected.values().stream().mapToInt(List::size).sum();
        assertTrue(rows >= 10, "a topology that says little shows little: " + rows);
        assertEquals(expected, found, "cache of " + cacheBytes + ", format " + format);
    }

    private static KStream<String, String> stream(StreamsBuilder builder, String topic) {
        return builder.stream(topic);
    }

    @Test
    void counts() {
        check(builder -> stream(builder, "left").groupByKey().count().toStream()
                .mapValues(String::valueOf).to("out"));
    }

    @Test
    void countsOfWindows() {
        check(builder -> stream(builder, "left").groupByKey()
                .windowedBy(TimeWindows.ofSizeAndGrace(WINDOW, Duration.ofSeconds(30))
                        .advanceBy(Duration.ofSeconds(20)))
                .count().toStream((window, count) -> window.toString())
                .mapValues(String::valueOf).to("out"));
    }

    @Test
    void countsOfSlidingWindows() {
        check(builder -> stream(builder, "left").groupByKey()
                .windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(WINDOW,
                        Duration.ofSeconds(30)))
                .count().toStream((window, count) -> window.toString())
                .mapValues(String::valueOf).to("out"));
    }

    @Test
    void countsOfClosedWindows() {
        checkOnDisk(builder -> stream(builder, "left").groupByKey()
                .windowedBy(TimeWindows.ofSizeAndGrace(WINDOW, Duration.ofSeconds(10)))
                .emitStrategy(EmitStrategy.onWindowClose())
                .count().toStream((window, count) -> window.toString())
                .mapValues(String::valueOf).to("out"));
    }

    @Test
    void countsOfSessions() {
        check(builder -> stream(builder, "left").groupByKey()
                .windowedBy(SessionWindows.ofInactivityGapAndGrace(Duration.ofSeconds(20),
                        Duration.ofSeconds(40)))
                .count().toStream((window, count) -> window.toString())
                .mapValues(String::valueOf).to("out"));
    }

    @Test
    void countsOfClosedSessions() {
        checkOnDisk(builder -> stream(builder, "left").groupByKey()
                .windowedBy(SessionWindows.ofInactivityGapAndGrace(Duration.ofSeconds(20),
                        Duration.ofSeconds(10)))
                .emitStrategy(EmitStrategy.onWindowClose())
                .count().toStream((window, count) -> window.toString())
                .mapValues(String::valueOf).to("out"));
    }

    @Test
    void countsOfWindowsThatAreHeldBack() {
        check(builder -> stream(builder, "left").groupByKey()
                .windowedBy(TimeWindows.ofSizeAndGrace(WINDOW, Duration.ofSeconds(30)))
                .count(Materialized.with(Serdes.String(), Serdes.Long()))
                .suppress(Suppressed.untilWindowCloses(
                        Suppressed.BufferConfig.unbounded()))
                .toStream((window, count) -> window.toString())
                .mapValues(String::valueOf).to("out"));
    }

    private static String both(String left, String right) {
        return left + "+" + right;
    }

    private static final JoinWindows WITHIN =
            JoinWindows.ofTimeDifferenceAndGrace(Duration.ofSeconds(30), Duration.ofSeconds(20));

    private static StreamJoined<String, String, String> stores() {
        return StreamJoined.with(Serdes.String(), Serdes.String(), Serdes.String());
    }

    @Test
    void joinsOfStreams() {
        checkOnDisk(builder -> stream(builder, "left")
                .join(stream(builder, "right"), TopologyTest::both, WITHIN, stores()).to("out"));
    }

    @Test
    void leftJoinsOfStreams() {
        checkOnDisk(builder -> stream(builder, "left")
                .leftJoin(stream(builder, "right"), TopologyTest::both, WITHIN, stores())
                .to("out"));
    }

    @Test
    void outerJoinsOfStreams() {
        checkOnDisk(builder -> stream(builder, "left")
                .outerJoin(stream(builder, "right"), TopologyTest::both, WITHIN, stores())
                .to("out"));
    }

    @Test
    void joinsOfTables() {
        check(builder -> {
            KTable<String, String> left = builder.table("left");
            KTable<String, String> right = builder.table("right");
            left.outerJoin(right, TopologyTest::both).toStream().to("out");
        });
    }

    @Test
    void joinsOfTablesByForeignKey() {
        check(builder -> {
            KTable<String, String> left = builder.table("left");
            KTable<String, String> right = builder.table("right");
            left.leftJoin(right, value -> value, TopologyTest::both).toStream().to("out");
        });
    }

    @Test
    void joinsOfStreamAndTable() {
        check(builder -> stream(builder, "left")
                .leftJoin(builder.<String, String>table("right"), TopologyTest::both).to("out"));
    }

    @Test
    void joinsOfStreamAndGlobalTable() {
        check(builder -> stream(builder, "left")
                .join(builder.<String, String>globalTable("right"), (key, value) -> key,
                        TopologyTest::both)
                .to("out"));
    }
}
