package dev.trommel.kafka;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaClientSupplier;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.processor.StateRestoreListener;

/**
 * One instance of an application, in a process of its own, that others may kill. It says on its
 * output what it does, a line each: {@code RUNNING}, {@code RESTORED n}, {@code PROCESSED n}.
 *
 * <p>Arguments: server, folder of state, name of the instance, stores (trommel or rocksdb),
 * who tells stores of commits (hook or runtime), after how many commits it dies between the
 * transaction's commit and the stores' (0: never).
 */
final class StreamsInstance {
    static final String APPLICATION = "story";

    private StreamsInstance() {}

    /** Runs until it is ended. */
    public static void main(String[] arguments) throws InterruptedException {
        Properties config = config(arguments);
        KafkaStreams streams = new KafkaStreams(operators().build(config), config,
                clients(arguments[4], Integer.parseInt(arguments[5])));
        AtomicLong restored = new AtomicLong();
        streams.setGlobalStateRestoreListener(listener(restored));
        streams.setStateListener((now, before) -> say(now + " " + restored.get()));
        streams.setUncaughtExceptionHandler(problem -> {
            problem.printStackTrace();
            return StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse.REPLACE_THREAD;
        });
        Runtime.getRuntime().addShutdownHook(
                new Thread(() -> streams.close(Duration.ofSeconds(20))));
        streams.start();
        while (true) {
            Thread.sleep(100);
            say("PROCESSED " + processed(streams));
        }
    }

    private static synchronized void say(String line) {
        System.out.println(line);
    }

    private static Properties config(String[] arguments) {
        Properties config = new Properties();
        config.put("application.id", APPLICATION);
        config.put("bootstrap.servers", arguments[0]);
        config.put("state.dir", arguments[1]);
        config.put("group.instance.id", arguments[2]);
        config.put("processing.guarantee", "exactly_once_v2");
        config.put("num.stream.threads", 2);
        config.put("num.standby.replicas", 1);
        config.put("commit.interval.ms", 100);
        config.put("statestore.cache.max.bytes", 0);
        config.put("topology.optimization", "all");
        config.put("default.key.serde", Serdes.StringSerde.class);
        config.put("default.value.serde", Serdes.StringSerde.class);
        config.put("acceptable.recovery.lag", Long.MAX_VALUE);
        config.put("auto.offset.reset", "earliest");
        config.put("consumer.session.timeout.ms", 10_000);
        config.put("consumer.heartbeat.interval.ms", 2_000);
        config.put("producer.transaction.timeout.ms", 15_000);
        if (arguments[3].equals("trommel")) {
            config.put("dsl.store.suppliers.class", TrommelDslStoreSuppliers.class.getName());
        }
        if (arguments[4].equals("runtime")) {
            config.put("enable.transactional.statestores", true);
        }
        return config;
    }

    /** Counts, counts of windows, and a table whose source is its changelog. */
    private static StreamsBuilder operators() {
        StreamsBuilder builder = new StreamsBuilder();
        var input = builder.<String, String>stream(Story.INPUT).groupByKey();
        input.count().toStream().mapValues(String::valueOf).to(Story.COUNTS);
        input.windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofHours(1))).count()
                .toStream((window, count) -> window.key()).mapValues(String::valueOf)
                .to(Story.WINDOWED_COUNTS);
        builder.<String, String>table(Story.TABLE,
                org.apache.kafka.streams.kstream.Materialized.as("names"))
                .toStream().to(Story.TABLE_CHANGES);
        return builder;
    }

    private static StateRestoreListener listener(AtomicLong restored) {
        return new StateRestoreListener() {
            @Override
            public void onRestoreStart(TopicPartition from, String store, long first, long end) {}

            @Override
            public void onBatchRestored(TopicPartition from, String store, long end, long rows) {
                say("RESTORED " + restored.addAndGet(rows) + " " + from);
            }

            @Override
            public void onRestoreEnd(TopicPartition from, String store, long total) {}
        };
    }

    private static long processed(KafkaStreams streams) {
        double sum = 0;
        for (Metric metric : streams.metrics().values()) {
            if (metric.metricName().name().equals("process-total")
                    && metric.metricName().group().equals("stream-thread-metrics")) {
                sum += ((Number) metric.metricValue()).doubleValue();
            }
        }
        return (long) sum;
    }

    private static KafkaClientSupplier clients(String teller, int commitsUntilDeath) {
        KafkaClientSupplier mortal = new MortalClients(commitsUntilDeath);
        return teller.equals("hook") ? new TrommelClientSupplier(mortal) : mortal;
    }

    /** Producers that end the process right behind a commit. */
    private static final class MortalClients implements KafkaClientSupplier {
        private final AtomicLong commitsLeft;

        MortalClients(int commitsUntilDeath) {
            commitsLeft = new AtomicLong(commitsUntilDeath == 0 ? Long.MAX_VALUE
                    : commitsUntilDeath);
        }

        @Override
        @SuppressWarnings("unchecked")
        public Producer<byte[], byte[]> getProducer(Map<String, Object> config) {
            Producer<byte[], byte[]> real = new KafkaProducer<>(config,
                    new ByteArraySerializer(), new ByteArraySerializer());
            return (Producer<byte[], byte[]>) Proxy.newProxyInstance(
                    StreamsInstance.class.getClassLoader(), new Class<?>[] {Producer.class},
                    (proxy, method, arguments) -> {
                        try {
                            Object result = method.invoke(real, arguments);
                            if (method.getName().equals("commitTransaction")
                                    && commitsLeft.decrementAndGet() == 0) {
                                say("DIES");
                                Runtime.getRuntime().halt(9);
                            }
                            return result;
                        } catch (InvocationTargetException problem) {
                            throw problem.getCause();
                        }
                    });
        }

        @Override
        public Admin getAdmin(Map<String, Object> config) {
            return Admin.create(config);
        }

        @Override
        public Consumer<byte[], byte[]> getConsumer(Map<String, Object> config) {
            return new KafkaConsumer<>(config, new ByteArrayDeserializer(),
                    new ByteArrayDeserializer());
        }

        @Override
        public Consumer<byte[], byte[]> getRestoreConsumer(Map<String, Object> config) {
            return getConsumer(config);
        }

        @Override
        public Consumer<byte[], byte[]> getGlobalConsumer(Map<String, Object> config) {
            return getConsumer(config);
        }
    }
}
