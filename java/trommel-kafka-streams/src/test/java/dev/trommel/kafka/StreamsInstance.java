package dev.trommel.kafka;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
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
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler;
import org.apache.kafka.streams.processor.StateRestoreListener;

/**
 * One instance of an application, in a process of its own, that others may kill. It says on its
 * output what it does, a line each: {@code RUNNING}, {@code RESTORED n}, {@code PROCESSED n}.
 *
 * <p>Arguments, as {@code name=value}:
 *
 * <pre>
 * topology   name of a method of Topologies
 * stores     trommel or rocksdb
 * teller     who tells stores of commits: hook or runtime
 * dies       after how many commits it dies between the transaction's commit and the stores'
 * every      milliseconds from one PROCESSED to the next
 * others     configuration of Kafka Streams
 * </pre>
 */
final class StreamsInstance {
    private static final Set<String> OWN =
            Set.of("topology", "stores", "teller", "dies", "every");
    /** So that a thread which cannot start, as with a full disk, does not fill its log. */
    private static final int REPLACE_AFTER_MILLIS = 500;

    private StreamsInstance() {}

    /** Runs until it is ended. */
    public static void main(String[] arguments) throws Exception {
        Map<String, String> given = new HashMap<>();
        for (String argument : arguments) {
            String[] pair = argument.split("=", 2);
            given.put(pair[0], pair[1]);
        }
        Properties config = config(given);
        LoopTimes times = new LoopTimes();
        KafkaStreams streams = new KafkaStreams(
                Topologies.named(given.get("topology"), config).build(config), config,
                clients(given, times));
        AtomicLong restored = new AtomicLong();
        streams.setGlobalStateRestoreListener(listener(restored));
        streams.setStateListener((now, before) -> say(now + " " + restored.get()));
        streams.setUncaughtExceptionHandler(StreamsInstance::replaceThread);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            say("LOOPS " + times);
            streams.close(Duration.ofSeconds(20));
        }));
        streams.start();
        while (true) {
            Thread.sleep(Integer.parseInt(given.getOrDefault("every", "100")));
            say("PROCESSED " + processed(streams));
        }
    }

    private static StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse replaceThread(
            Throwable problem) {
        problem.printStackTrace();
        try {
            Thread.sleep(REPLACE_AFTER_MILLIS);
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
        return StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse.REPLACE_THREAD;
    }

    private static synchronized void say(String line) {
        System.out.println(line);
    }

    private static Properties config(Map<String, String> given) {
        Properties config = new Properties();
        config.put("application.id", "story");
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
        if (given.get("stores").equals("trommel")) {
            config.put("dsl.store.suppliers.class", TrommelDslStoreSuppliers.class.getName());
        }
        if (given.get("teller").equals("runtime")) {
            config.put("enable.transactional.statestores", true);
        }
        given.forEach((name, value) -> {
            if (!OWN.contains(name)) {
                config.put(name, value);
            }
        });
        return config;
    }

    private static StateRestoreListener listener(AtomicLong restored) {
        return new StateRestoreListener() {
            @Override
            public void onRestoreStart(TopicPartition from, String store, long first, long end) {
                say("RESTORES " + first + " " + end + " " + from);
            }

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

    private static KafkaClientSupplier clients(Map<String, String> given, LoopTimes times) {
        int dies = Integer.parseInt(given.getOrDefault("dies", "0"));
        KafkaClientSupplier mortal = new MortalClients(dies, times);
        boolean isOurs = given.get("stores").equals("trommel")
                || given.get("topology").equals("mixed");
        boolean isHooked = given.get("teller").equals("hook") && isOurs;
        return isHooked ? new TrommelClientSupplier(mortal) : mortal;
    }

    /** Producers that end the process right behind a commit; consumers whose polls are timed. */
    private static final class MortalClients implements KafkaClientSupplier {
        private final AtomicLong commitsLeft;
        private final LoopTimes times;

        MortalClients(int commitsUntilDeath, LoopTimes times) {
            commitsLeft = new AtomicLong(commitsUntilDeath == 0 ? Long.MAX_VALUE
                    : commitsUntilDeath);
            this.times = times;
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
            return times.timed(plain(config));
        }

        private static Consumer<byte[], byte[]> plain(Map<String, Object> config) {
            return new KafkaConsumer<>(config, new ByteArrayDeserializer(),
                    new ByteArrayDeserializer());
        }

        @Override
        public Consumer<byte[], byte[]> getRestoreConsumer(Map<String, Object> config) {
            return plain(config);
        }

        @Override
        public Consumer<byte[], byte[]> getGlobalConsumer(Map<String, Object> config) {
            return plain(config);
        }
    }
}
