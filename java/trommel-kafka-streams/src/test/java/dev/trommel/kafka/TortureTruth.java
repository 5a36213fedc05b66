package dev.trommel.kafka;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/** Reads committed outputs while they come, and compares them with the model in the end. */
final class TortureTruth implements AutoCloseable {
    private static final List<String> MODELLED = List.of(Torture.COUNTS, Torture.WINDOWED_COUNTS,
            Torture.SESSIONS, Torture.JOINED);
    /** Whatever comes twice comes within this time behind the last record that is to come. */
    private static final int TWICE_SECONDS = 5;
    private static final int SHOWN_MAX = 10;

    private final KafkaConsumer<String, String> consumer;
    private final Thread reader = new Thread(this::read, "truth");
    private final Map<String, Map<String, TortureModel.Values>> outputs = new HashMap<>();
    private final Map<String, long[]> joinedRows = new HashMap<>();
    private final List<String> wrong = new ArrayList<>();
    private final AtomicLong counts = new AtomicLong();
    private final AtomicLong all = new AtomicLong();
    private volatile boolean closed;
    private volatile RuntimeException problem;

    TortureTruth(String servers) {
        consumer = new KafkaConsumer<>(Map.of("bootstrap.servers", servers,
                "isolation.level", "read_committed", "auto.offset.reset", "earliest",
                "default.api.timeout.ms", 300_000, "enable.auto.commit", false),
                new StringDeserializer(), new StringDeserializer());
        List<TopicPartition> partitions = new ArrayList<>();
        for (String topic : Torture.OUTPUTS) {
            for (int number = 0; number < Torture.PARTITIONS; number++) {
                partitions.add(new TopicPartition(topic, number));
            }
        }
        consumer.assign(partitions);
        reader.start();
    }

    /** Events that have come out as counts. */
    long counts() {
        return counts.get();
    }

    /** Records of all outputs so far. */
    long all() {
        return all.get();
    }

    private void read() {
        try {
            while (!closed) {
                var records = consumer.poll(Duration.ofMillis(200));
                synchronized (this) {
                    records.forEach(this::take);
                }
            }
        } catch (RuntimeException ended) {
            problem = ended;
        } finally {
            consumer.close();
        }
    }

    private void take(ConsumerRecord<String, String> record) {
        if (record.key().startsWith(TortureLoad.END)) {
            return;
        }
        all.incrementAndGet();
        if (record.topic().equals(Torture.TABLES_JOINED)) {
            joinedRow(record);
            return;
        }
        if (record.topic().equals(Torture.COUNTS)) {
            counts.incrementAndGet();
        }
        outputs.computeIfAbsent(record.topic(), topic -> new HashMap<>())
                .computeIfAbsent(record.key(), key -> new TortureModel.Values())
                .add(record.value(), !record.topic().equals(Torture.JOINED));
    }

    /** Each change of a row is by one of one side, and the first one has a first version. */
    private void joinedRow(ConsumerRecord<String, String> record) {
        String[] both = record.value().split("\\+");
        long one = Long.parseLong(both[0]);
        long other = Long.parseLong(both[1]);
        long[] last = joinedRows.put(record.key(), new long[] {one, other});
        boolean isRight = last == null ? one == 1 || other == 1
                : one - last[0] + other - last[1] == 1 && one >= last[0] && other >= last[1];
        if (!isRight && wrong.size() < SHOWN_MAX) {
            wrong.add(record.topic() + ": " + record.key() + " is " + record.value() + " after "
                    + (last == null ? "nothing" : last[0] + "+" + last[1]));
        }
    }

    /** Throws if an output cannot be read or is known to be wrong. */
    synchronized void requireFine() {
        if (problem != null) {
            throw problem;
        }
        if (!wrong.isEmpty()) {
            throw new IllegalStateException("wrong outputs:\n" + String.join("\n", wrong));
        }
    }

    /** Waits until outputs are as the model has them; an error that shows what is not. */
    void await(TortureModel model, int seconds, Torture.Action meanwhile) throws Exception {
        // Rounds, not a time: who waits may be halted for a while.
        for (int round = 0; round < seconds && !isComplete(model); round++) {
            requireFine();
            meanwhile.run();
            Thread.sleep(1_000);
        }
        Thread.sleep(TimeUnit.SECONDS.toMillis(TWICE_SECONDS));
        compare(model);
        requireFine();
    }

    private synchronized boolean isComplete(TortureModel model) {
        for (String topic : MODELLED) {
            long seen = outputs.getOrDefault(topic, Map.of()).values().stream()
                    .mapToLong(values -> values.count).sum();
            if (seen < model.count(topic)) {
                return false;
            }
        }
        return model.versions().entrySet().stream().allMatch(row -> isLast(row.getKey(),
                row.getValue()));
    }

    private boolean isLast(String key, long[] versions) {
        long[] last = joinedRows.get(key);
        return versions[0] == 0 || versions[1] == 0 ? last == null
                : last != null && last[0] == versions[0] && last[1] == versions[1];
    }

    private synchronized void compare(TortureModel model) {
        for (String topic : MODELLED) {
            Map<String, TortureModel.Values> seen = new HashMap<>(
                    outputs.getOrDefault(topic, Map.of()));
            model.output(topic).forEach((key, values) -> {
                TortureModel.Values have = seen.remove(key);
                if (!values.equals(have)) {
                    differs(topic, key, values, have);
                }
            });
            seen.forEach((key, values) -> differs(topic, key, null, values));
        }
        model.versions().forEach((key, versions) -> {
            if (!isLast(key, versions)) {
                differs(Torture.TABLES_JOINED, key, versions[0] + "+" + versions[1],
                        java.util.Arrays.toString(joinedRows.get(key)));
            }
        });
    }

    private void differs(String topic, String key, Object expected, Object have) {
        if (wrong.size() < SHOWN_MAX) {
            wrong.add(topic + ": " + key + " is to be " + expected + ", and is " + have);
        }
    }

    @Override
    public void close() {
        closed = true;
        try {
            reader.join(TimeUnit.SECONDS.toMillis(30));
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
    }
}
