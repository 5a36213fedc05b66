package dev.trommel.kafka;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Crashes of an application under exactly-once, with a broker of its own. Outputs are compared with
 * the truth after each.
 *
 * <pre>
 * changed    from the default stores to ours on the same folder, and back, twice
 * mixed      a task has a store of ours and a default one; it is killed under load
 * killed     an instance is killed under load and starts on its old folder: nothing is replayed
 * between    it dies between the transaction's commit and the stores': a little is replayed
 * takeover   of two instances one is killed; the other goes on; the first one comes back
 * halted     of two instances one is halted until the other took over; it restores what it missed
 * </pre>
 *
 * <p>Arguments: an empty folder, and who tells stores of commits (hook or runtime).
 */
final class Story {
    static final String INPUT = "input";
    static final String TABLE = "table";
    static final String COUNTS = "counts";
    static final String WINDOWED_COUNTS = "windowed-counts";
    static final String TABLE_CHANGES = "table-changes";
    static final String MIXED_COUNTS = "mixed-counts";
    static final String MIXED_WINDOWED_COUNTS = "mixed-windowed-counts";

    private static final List<String> OUTPUTS = List.of(COUNTS, WINDOWED_COUNTS, TABLE_CHANGES);
    private static final List<String> MIXED_OUTPUTS =
            List.of(MIXED_COUNTS, MIXED_WINDOWED_COUNTS);

    private static final int PARTITIONS = 2;
    private static final int KEYS = 5_000;
    private static final int WAIT_SECONDS = 120;
    private static final int ATTEMPTS = 3;
    /** A standby notes its offset each 10,000 records; beside that a commit may be missing. */
    private static final int STANDBY_LAG_MAX = 15_000;

    private final Path folder;
    private final String teller;
    private final String server;
    private final Cluster cluster;
    private final long begun = System.nanoTime();
    private int instances;

    private Story(Path folder, String teller) throws IOException, InterruptedException {
        this.folder = folder;
        this.teller = teller;
        cluster = new Cluster(folder, 1, 512);
        server = cluster.servers();
    }

    /** Plays it; the exit status is 0 if all was as it is to be. */
    public static void main(String[] arguments) throws Exception {
        Path folder = Files.createDirectories(Path.of(arguments[0])).toAbsolutePath();
        Story story = new Story(folder, arguments[1]);
        try {
            story.cluster.createTopics(List.of(INPUT, TABLE), PARTITIONS);
            story.cluster.createTopics(OUTPUTS, PARTITIONS);
            story.cluster.createTopics(MIXED_OUTPUTS, PARTITIONS);
            story.say("broker and topics are there");
            try (Truth truth = new Truth(story.server, OUTPUTS)) {
                // Once is enough for what both versions do alike.
                boolean isWhole = story.teller.equals("hook");
                if (isWhole) {
                    story.changed(truth);
                    story.mixed();
                }
                story.killed(truth);
                story.between(truth);
                story.takeover(truth);
                if (isWhole) {
                    story.halted(truth);
                }
            }
        } finally {
            story.cluster.close();
        }
    }

    private void say(String text) {
        System.out.printf("%5.1f s  %s%n", (System.nanoTime() - begun) / 1e9, text);
    }

    private ChildProcess instance(String name, int commitsUntilDeath) throws IOException {
        return instance(name, "stores=trommel", "state.dir=" + folder.resolve("state-" + name),
                "dies=" + commitsUntilDeath);
    }

    /** What is given stands behind what all instances have. */
    private ChildProcess instance(String name, String... given) throws IOException {
        List<String> arguments = new ArrayList<>(List.of("topology=story", "teller=" + teller,
                "bootstrap.servers=" + server, "group.instance.id=" + name));
        arguments.addAll(List.of(given));
        return ChildProcess.start(folder.resolve("instance-" + name + "-" + instances++ + ".log"),
                256, StreamsInstance.class, arguments.toArray(String[]::new));
    }

    /** Waits until an instance has done so many records since it started. */
    private static void awaitProcessed(ChildProcess instance, long records)
            throws InterruptedException {
        instance.await(records + " records", WAIT_SECONDS,
                () -> instance.last("PROCESSED") >= records || !instance.isAlive());
    }

    private static void awaitRunning(ChildProcess instance) throws InterruptedException {
        instance.await("running", WAIT_SECONDS, () -> instance.said("RUNNING"));
    }

    /** Whoever changes stores restores what they do not have from changelogs, and loses nothing. */
    private void changed(Truth truth) throws Exception {
        String state = "state.dir=" + folder.resolve("state-changed");
        List<String> before = new ArrayList<>();
        for (String stores : List.of("rocksdb", "trommel", "rocksdb", "trommel")) {
            ChildProcess instance = instance("a", "stores=" + stores, state);
            awaitRunning(instance);
            long restored = instance.last("RESTORED");
            try (Load load = new Load(server)) {
                awaitProcessed(instance, 2_000);
                load.stop();
                truth.await(load.sent());
            }
            say("changed to " + stores + " behind " + before + ": " + restored
                    + " records restored, outputs exact");
            require(restored > 0 || before.isEmpty(), "what they do not have is restored",
                    instance);
            if (before.equals(List.of("rocksdb"))) {
                require(instance.output().contains("rows of another kind of store"),
                        "the log says why all is restored", instance);
            }
            instance.end(30);
            before.add(stores);
        }
    }

    /** An application of its own, which reads the input from its beginning. */
    private void mixed() throws Exception {
        String[] given = {"stores=rocksdb", "topology=mixed", "application.id=mixed",
                "state.dir=" + folder.resolve("state-mixed")};
        ChildProcess first = instance("a", given);
        awaitRunning(first);
        try (Truth truth = new Truth(server, MIXED_OUTPUTS); Load load = new Load(server)) {
            awaitProcessed(first, 10_000);
            first.kill();
            ChildProcess second = instance("a", given);
            awaitRunning(second);
            load.stop();
            truth.await(load.sent());
            say("mixed: killed -9 under load, " + second.last("RESTORED")
                    + " records restored, outputs exact");
            second.end(30);
        }
    }

    /**
     * A kill may come between the two commits by chance, and then a commit is replayed. So it is
     * tried again: if nothing is replayed once, stores are told of commits in time.
     */
    private void killed(Truth truth) throws Exception {
        long replayed = Long.MAX_VALUE;
        for (int attempt = 0; attempt < ATTEMPTS && replayed > 0; attempt++) {
            ChildProcess first = instance("a", 0);
            awaitRunning(first);
            try (Load load = new Load(server)) {
                awaitProcessed(first, 15_000);
                first.kill();
                say("killed -9 after " + first.last("PROCESSED") + " records, under load");
                ChildProcess second = instance("a", 0);
                awaitProcessed(second, 5_000);
                load.stop();
                truth.await(load.sent());
                replayed = second.last("RESTORED");
                say("killed: " + replayed + " records replayed, outputs exact");
                require(replayed < load.sent() / 2, "a commit is replayed at most", second);
                second.end(30);
            }
        }
        if (replayed > 0) {
            throw new IllegalStateException("each of " + ATTEMPTS + " restarts replayed records");
        }
    }

    private void between(Truth truth) throws Exception {
        ChildProcess first = instance("a", 15);
        awaitRunning(first);
        try (Load load = new Load(server)) {
            first.await("dead", WAIT_SECONDS, () -> !first.isAlive());
            require(first.said("DIES"), "it dies behind a commit", first);
            say("died behind the commit of a transaction");
            ChildProcess second = instance("a", 0);
            awaitProcessed(second, 1_000);
            load.stop();
            truth.await(load.sent());
            long restored = second.last("RESTORED");
            say("between: " + restored + " records replayed, outputs exact");
            require(restored > 0, "what the stores were not told is replayed", second);
            require(restored < 3 * load.sent() / 4, "no more than that", second);
            second.end(30);
        }
    }

    private void takeover(Truth truth) throws Exception {
        ChildProcess first = instance("a", 0);
        awaitRunning(first);
        ChildProcess other = instance("b", 0);
        awaitRunning(other);
        try (Load load = new Load(server)) {
            awaitProcessed(first, 2_000);
            awaitProcessed(other, 2_000);
            int before = other.count("RUNNING");
            Map<TopicPartition, Long> ends = cluster.committedEnds("-changelog");
            ends.putAll(processedOfTable());
            first.kill();
            say("killed -9 one of two, under load");
            other.await("the tasks of the other", WAIT_SECONDS,
                    () -> other.count("RUNNING") > before);
            awaitProcessed(other, other.last("PROCESSED") + 2_000);
            load.stop();
            truth.await(load.sent());
            say("takeover: " + other.last("RESTORED") + " records restored, outputs exact");
            ChildProcess again = instance("a", 0);
            awaitRunning(again);
            load.goOn();
            awaitProcessed(again, 2_000);
            load.stop();
            truth.await(load.sent());
            say("it came back: " + again.last("RESTORED") + " records restored, outputs exact");
            requireGoesOn(again, again.output(), ends);
            again.end(30);
            other.end(30);
        }
    }

    /** What the application has processed of the table's topic, which may have more. */
    private Map<TopicPartition, Long> processedOfTable() throws Exception {
        Map<TopicPartition, Long> processed = new HashMap<>();
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", server))) {
            admin.listConsumerGroupOffsets("story").partitionsToOffsetAndMetadata()
                    .get(WAIT_SECONDS, TimeUnit.SECONDS).forEach((partition, offset) -> {
                        if (partition.topic().equals(TABLE) && offset != null) {
                            processed.put(partition, offset.offset());
                        }
                    });
        }
        return processed;
    }

    /** Kafka Streams deletes folders of tasks that were fenced: rows stay all the same. */
    private void halted(Truth truth) throws Exception {
        ChildProcess first = instance("a", 0);
        awaitRunning(first);
        ChildProcess other = instance("b", 0);
        awaitRunning(other);
        try (Load load = new Load(server)) {
            awaitProcessed(first, 2_000);
            awaitProcessed(other, 2_000);
            Map<TopicPartition, Long> ends = cluster.committedEnds("-changelog");
            ends.putAll(processedOfTable());
            int before = other.count("RUNNING");
            int ownBefore = first.count("RUNNING");
            String said = first.output();
            first.halt();
            other.await("the tasks of the other", WAIT_SECONDS,
                    () -> other.count("RUNNING") > before);
            load.stop();
            first.goOn();
            first.await("running again", WAIT_SECONDS,
                    () -> first.count("RUNNING") > ownBefore);
            truth.await(load.sent());
            say("halted: outputs exact");
            requireGoesOn(first, first.output().substring(said.length()), ends);
            first.end(30);
            other.end(30);
        }
    }

    /** What an instance restores begins where it was when it was killed. */
    private void requireGoesOn(ChildProcess again, String said, Map<TopicPartition, Long> ends) {
        Matcher found = Pattern.compile("(?m)^RESTORES (\\d+) (\\d+) (\\S+)-(\\d+)$")
                .matcher(said);
        while (found.find()) {
            long from = Long.parseLong(found.group(1));
            long end = ends.getOrDefault(new TopicPartition(found.group(3),
                    Integer.parseInt(found.group(4))), 0L);
            say("  " + found.group(3) + "-" + found.group(4) + ": from " + from + " to "
                    + found.group(2) + "; it had all to " + end + " before");
            require(from >= end - STANDBY_LAG_MAX, "only what is missing is restored", again);
        }
    }

    private static void require(boolean holds, String what, ChildProcess process) {
        if (!holds) {
            throw new IllegalStateException("not so: " + what + process.lastWords());
        }
    }

    /** Sends records all the time, until it is stopped. */
    private static final class Load implements AutoCloseable {
        private static final int BURST = 200;
        private static final AtomicLong SENT = new AtomicLong();
        private static final long HOUR_MILLIS = 3_600_000;
        /** The last hour that is over. Brokers forget what is days old. */
        private static final long HOUR =
                (System.currentTimeMillis() / HOUR_MILLIS - 1) * HOUR_MILLIS;

        private final KafkaProducer<String, String> producer;
        private Thread sender;
        private volatile boolean stopped;

        Load(String server) {
            producer = new KafkaProducer<>(Map.of("bootstrap.servers", server, "linger.ms", 5,
                    "acks", "all"), new StringSerializer(), new StringSerializer());
            goOn();
        }

        void goOn() {
            stopped = false;
            sender = new Thread(this::send);
            sender.start();
        }

        /** Times are within one hour, so that all are in one window. */
        private void send() {
            while (!stopped) {
                for (int burst = 0; burst < BURST; burst++) {
                    long number = SENT.getAndIncrement();
                    String key = "key-" + number * 2_654_435_761L % KEYS;
                    long time = HOUR + number % 3_000_000;
                    producer.send(new ProducerRecord<>(INPUT, null, time, key, "value"));
                    producer.send(new ProducerRecord<>(TABLE, null, time, key,
                            String.valueOf(number)));
                }
                try {
                    Thread.sleep(50);
                } catch (InterruptedException problem) {
                    throw new IllegalStateException(problem);
                }
            }
            producer.flush();
        }

        void stop() throws InterruptedException {
            stopped = true;
            sender.join();
        }

        /** Records of each input that were sent, by all loads. */
        long sent() {
            return SENT.get();
        }

        @Override
        public void close() {
            stopped = true;
            producer.close();
        }
    }

    /** What outputs are to be: counts of each key go up by one; changes of the table ascend. */
    private static final class Truth implements AutoCloseable {
        private final KafkaConsumer<String, String> consumer;
        private final List<String> outputs;
        private final Map<String, Map<String, Long>> last = new HashMap<>();
        private final Map<String, Long> seen = new HashMap<>();

        Truth(String server, List<String> outputs) {
            this.outputs = outputs;
            consumer = new KafkaConsumer<>(Map.of("bootstrap.servers", server,
                    "isolation.level", "read_committed", "auto.offset.reset", "earliest",
                    "group.id", "truth"), new StringDeserializer(), new StringDeserializer());
            List<TopicPartition> all = new ArrayList<>();
            for (String topic : outputs) {
                for (int number = 0; number < PARTITIONS; number++) {
                    all.add(new TopicPartition(topic, number));
                }
            }
            consumer.assign(all);
        }

        /** Waits for so many records in each output; an error if one is wrong, lost or twice. */
        void await(long records) {
            long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(WAIT_SECONDS);
            while (!haveAll(records)) {
                if (System.nanoTime() > deadline) {
                    throw new IllegalStateException("not within " + WAIT_SECONDS + " s: "
                            + records + " records in each output, there are " + seen);
                }
                consumer.poll(Duration.ofMillis(100)).forEach(this::check);
            }
        }

        private boolean haveAll(long records) {
            for (String topic : outputs) {
                if (seen.getOrDefault(topic, 0L) < records) {
                    return false;
                }
            }
            return true;
        }

        private void check(ConsumerRecord<String, String> record) {
            seen.merge(record.topic(), 1L, Long::sum);
            long value = Long.parseLong(record.value());
            Long before = last.computeIfAbsent(record.topic(), topic -> new HashMap<>())
                    .put(record.key(), value);
            boolean isRight = record.topic().equals(TABLE_CHANGES)
                    ? before == null || before < value
                    : value == (before == null ? 1 : before + 1);
            if (!isRight) {
                throw new IllegalStateException(record.topic() + ": " + record.key() + " is "
                        + value + " after " + before);
            }
        }

        @Override
        public void close() {
            consumer.close();
        }
    }
}
