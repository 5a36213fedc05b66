package dev.trommel.kafka;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Measures our stores beside the default ones, in turns, with one broker and one instance of one
 * thread. Both have a cache of the same size, which all stores of the instance share.
 *
 * <p>Arguments, as {@code name=value}: folder, keys (numbers with commas between them), records (of
 * each steady load), rounds, teller (hook or runtime), loads and engines (names with commas),
 * restored (numbers of keys).
 */
final class Comparison {
    private static final int PARTITIONS = 2;
    private static final int STEADY_KEYS = 100_000;
    private static final int JOIN_KEYS = 10_000;
    private static final int WAIT_SECONDS = 3_600;
    /** Records among which it is killed. */
    private static final int LAST = 100_000;
    /** Our stores without the engine's log. */
    private static final String UNLOGGED = "trommel-unlogged";
    private static final int CACHE_MEBIBYTES = 32;

    /** What a process did meanwhile. */
    private record Work(double seconds, double cpuSeconds, double writtenMegabytes) {}

    private final Path folder;
    private final String teller;
    private final Cluster cluster;
    private final List<String> table = new ArrayList<>();
    private int started;

    private Comparison(Map<String, String> given) throws Exception {
        folder = Files.createDirectories(Path.of(given.get("folder"))).toAbsolutePath();
        teller = given.get("teller");
        cluster = new Cluster(folder, 1, 512);
    }

    /** Measures, and prints a table. */
    public static void main(String[] arguments) throws Exception {
        Map<String, String> given = new HashMap<>();
        for (String argument : arguments) {
            String[] pair = argument.split("=", 2);
            given.put(pair[0], pair[1]);
        }
        Comparison comparison = new Comparison(given);
        try {
            comparison.all(given);
        } finally {
            comparison.cluster.close();
        }
    }

    private void all(Map<String, String> given) throws Exception {
        int records = Integer.parseInt(given.get("records"));
        int rounds = Integer.parseInt(given.get("rounds"));
        for (String load : words(given.get("loads"))) {
            String input = "steady-" + load;
            cluster.createTopics(load.equals("join") ? List.of(input + "-left", input + "-right")
                    : List.of(input), PARTITIONS);
            sendSteady(load, input, records);
            for (int round = 0; round < rounds; round++) {
                for (String engine : words(given.get("engines"))) {
                    steady(engine, load, round, records);
                }
            }
        }
        for (String keys : words(given.get("keys"))) {
            int count = Integer.parseInt(keys);
            for (String engine : words(given.get("engines"))) {
                restart(engine, count, records);
            }
        }
        for (String keys : words(given.get("restored"))) {
            restored(words(given.get("engines")), Integer.parseInt(keys));
        }
        System.out.println("\n| what | stores | | |\n|---|---|---|---|");
        table.forEach(System.out::println);
    }

    private static List<String> words(String text) {
        return Stream.of(text.split(",")).filter(word -> !word.isEmpty()).toList();
    }

    /** What the stores of an engine are called. */
    private String stores(String engine) {
        boolean isTransactional = engine.equals("rocksdb") && teller.equals("runtime");
        return isTransactional ? "rocksdb, transactional" : engine;
    }

    private void row(String what, String engine, String format, Object... numbers) {
        String line = "| " + what + " | " + stores(engine) + " | "
                + String.format(format, numbers) + " |";
        System.out.println(line);
        table.add(line);
    }

    private interface Sender {
        void send(KafkaProducer<String, String> producer, int number);
    }

    private void sendAll(int from, int to, Sender sender) {
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(Map.of(
                "bootstrap.servers", cluster.servers(), "linger.ms", 20, "batch.size", 256 << 10,
                "compression.type", "lz4"), new StringSerializer(), new StringSerializer())) {
            for (int number = from; number < to; number++) {
                sender.send(producer, number);
            }
            producer.flush();
        }
    }

    /** Records of a stretch of numbers; each of the first {@code keys} has a key of its own. */
    private void send(String topic, int from, int to, int keys) {
        sendAll(from, to, (producer, number) -> producer.send(
                new ProducerRecord<>(topic, key(number, keys), "value-of-some-bytes")));
    }

    /** A changelog as a count of so many keys has it, each of them once. */
    private void sendChangelog(String topic, int keys) {
        byte[] value = ByteBuffer.allocate(Long.BYTES).putLong(1).array();
        try (KafkaProducer<String, byte[]> producer = new KafkaProducer<>(Map.of(
                "bootstrap.servers", cluster.servers(), "linger.ms", 20, "batch.size", 16 << 10),
                new StringSerializer(), new ByteArraySerializer())) {
            for (int number = 0; number < keys; number++) {
                producer.send(new ProducerRecord<>(
                        topic, number % PARTITIONS, key(number, keys), value));
            }
            producer.flush();
        }
    }

    private void sendSteady(String load, String input, int records) {
        long now = System.currentTimeMillis() - TimeUnit.HOURS.toMillis(2);
        boolean isJoin = load.equals("join");
        sendAll(0, records, (producer, number) -> {
            String topic = !isJoin ? input : input + (number % 2 == 0 ? "-left" : "-right");
            producer.send(new ProducerRecord<>(topic, null, now + number,
                    key(number / 2, isJoin ? JOIN_KEYS : STEADY_KEYS), "value-of-some-bytes"));
        });
    }

    /** Numbers below the count of keys give each key once; others give any of them. */
    private static String key(int number, int keys) {
        long mixed = number < keys ? number
                : Long.remainderUnsigned(number * 0x9E3779B97F4A7C15L >>> 7, keys);
        long spread = (mixed + 1) * 0xBF58476D1CE4E5B9L;
        return String.format("%016x", spread ^ (spread >>> 31));
    }

    private ChildProcess instance(String engine, String application, String load, String input)
            throws IOException {
        boolean isUnlogged = engine.equals(UNLOGGED);
        return ChildProcess.start(folder.resolve("instance-" + started++ + ".log"), 512,
                StreamsInstance.class, "topology=" + load,
                "stores=" + (isUnlogged ? "trommel" : engine), "trommel.log=" + !isUnlogged,
                "teller=" + teller, "every=100", "bootstrap.servers=" + cluster.servers(),
                "application.id=" + application, "input=" + input,
                "state.dir=" + folder.resolve("state"), "group.instance.id=one",
                "num.standby.replicas=0", "num.stream.threads=1",
                "trommel.cache.bytes=" + CACHE_MEBIBYTES + "MiB",
                "trommel.options=write_buffer_bytes=16MiB",
                "rocksdb.config.setter=" + SharedCache.class.getName(),
                SharedCache.MEBIBYTES + "=" + CACHE_MEBIBYTES);
    }

    private static void awaitProcessed(ChildProcess instance, long records)
            throws InterruptedException {
        instance.await(records + " records", WAIT_SECONDS,
                () -> instance.last("PROCESSED") >= records || !instance.isAlive());
        if (!instance.isAlive()) {
            throw new IllegalStateException("the instance ended" + instance.lastWords());
        }
    }

    /** Waits until it has nothing to do, and gives what it has done. */
    private static long awaitAllProcessed(ChildProcess instance) throws InterruptedException {
        long before = -1;
        for (long now = 0; now == 0 || now != before; now = instance.last("PROCESSED")) {
            before = now;
            Thread.sleep(2_000);
        }
        return before;
    }

    /** Seconds until it runs, all state restored. */
    private static double awaitRunning(ChildProcess instance) throws InterruptedException {
        long begun = System.nanoTime();
        instance.await("running", WAIT_SECONDS, () -> instance.said("RUNNING"));
        return (System.nanoTime() - begun) / 1e9;
    }

    private static Work measure(ChildProcess instance, long from, long to) throws Exception {
        awaitProcessed(instance, from);
        long begun = System.nanoTime();
        double cpu = cpuSeconds(instance);
        double written = writtenMegabytes(instance);
        awaitProcessed(instance, to);
        return new Work((System.nanoTime() - begun) / 1e9, cpuSeconds(instance) - cpu,
                writtenMegabytes(instance) - written);
    }

    /** Seconds of processor time of a process so far, its kernel time included. */
    private static double cpuSeconds(ChildProcess process) throws IOException {
        String all = Files.readString(Path.of("/proc/" + process.pid() + "/stat"));
        String[] fields = all.substring(all.lastIndexOf(')') + 2).split(" ");
        return (Long.parseLong(fields[11]) + Long.parseLong(fields[12])) / 100.0;
    }

    private static double writtenMegabytes(ChildProcess process) throws IOException {
        return line("/proc/" + process.pid() + "/io", "write_bytes:") / 1e6;
    }

    private static double peakMegabytes(ChildProcess process) throws IOException {
        return line("/proc/" + process.pid() + "/status", "VmHWM:") * 1024 / 1e6;
    }

    private static double line(String file, String name) throws IOException {
        return Files.readAllLines(Path.of(file)).stream().filter(line -> line.startsWith(name))
                .mapToLong(line -> Long.parseLong(line.replaceAll("\\D", ""))).sum();
    }

    private double diskMegabytes(String application) throws IOException {
        try (Stream<Path> files = Files.walk(folder.resolve("state").resolve(application))) {
            return files.filter(Files::isRegularFile)
                    .mapToLong(file -> file.toFile().length()).sum() / 1e6;
        }
    }

    private static String loops(ChildProcess ended) {
        return ended.output().lines().filter(line -> line.startsWith("LOOPS "))
                .map(line -> line.substring(6).split(" "))
                .map(all -> String.format("rounds of the thread p50 %.1f ms, p99 %.1f ms",
                        Long.parseLong(all[0]) / 1e3, Long.parseLong(all[1]) / 1e3))
                .findFirst().orElse("no rounds");
    }

    private void steady(String engine, String load, int round, int records) throws Exception {
        String application = engine + "-" + load + "-" + round;
        ChildProcess instance = instance(engine, application, load, "steady-" + load);
        int warm = records / 10;
        Work work = measure(instance, warm, records);
        double peak = peakMegabytes(instance);
        instance.end(60);
        row(load + ", steady", engine, "%,.0f records/s | %.1f us of CPU each, %s, %.0f MB"
                        + " written, peak %.0f MB of memory", (records - warm) / work.seconds,
                work.cpuSeconds / (records - warm) * 1e6, loops(instance),
                work.writtenMegabytes, peak);
        delete(application);
    }

    private void restart(String engine, int keys, int records) throws Exception {
        String application = engine + "-" + keys;
        String input = "keys-" + application;
        cluster.createTopics(List.of(input), PARTITIONS);
        send(input, 0, keys, keys);
        ChildProcess first = instance(engine, application, "count", input);
        Work fill = measure(first, keys / 20, keys);
        String what = String.format("%,d keys", keys);
        row(what + ", new ones", engine, "%,.0f records/s | %.1f us of CPU each, %.0f MB written",
                keys * 0.95 / fill.seconds, fill.cpuSeconds / keys / 0.95 * 1e6,
                fill.writtenMegabytes);
        send(input, keys, keys + LAST, keys);
        awaitProcessed(first, keys + LAST / 3);
        first.kill();
        ChildProcess second = instance(engine, application, "count", input);
        double running = awaitRunning(second);
        row(what + ", restart after kill -9", engine, "%.1f s to RUNNING | %,d records replayed",
                running, second.last("RESTORED"));
        Work steady = catchUp(second, input, keys, records);
        double peak = peakMegabytes(second);
        second.end(60);
        row(what + ", counts go on", engine, "%,.0f records/s | %.1f us of CPU each, %s, %.0f MB"
                        + " written, peak %.0f MB of memory", records / steady.seconds,
                steady.cpuSeconds / records * 1e6, loops(second), steady.writtenMegabytes, peak);
        recover(engine, application, what, input);
        delete(application);
    }

    /** Counts records of keys that are there, after what was sent before is done. */
    private Work catchUp(ChildProcess second, String input, int keys, int records)
            throws Exception {
        long before = awaitAllProcessed(second);
        send(input, keys + LAST, keys + LAST + records, keys);
        return measure(second, before + 1, before + records);
    }

    private void recover(String engine, String application, String what, String input)
            throws Exception {
        row(what + ", state", engine, "%.0f MB on disk | ended as one ends it",
                diskMegabytes(application));
        delete(application);
        ChildProcess third = instance(engine, application, "count", input);
        double running = awaitRunning(third);
        long restored = third.last("RESTORED");
        row(what + ", folder deleted", engine, "%.1f s to RUNNING | %,d records restored, %,.0f a"
                        + " second, %.0f MB written", running, restored, restored / running,
                writtenMegabytes(third));
        third.end(60);
    }

    /**
     * All stores restore one changelog, which was written as such, and are killed under load then:
     * so there may be many keys.
     */
    private void restored(List<String> engines, int keys) throws Exception {
        String application = "restored-" + keys;
        String input = "input-" + application;
        String changelog = application + "-KSTREAM-AGGREGATE-STATE-STORE-0000000001-changelog";
        cluster.createTopics(List.of(input, changelog), PARTITIONS);
        sendChangelog(changelog, keys);
        int sent = keys;
        for (String engine : engines) {
            String what = String.format("%,d keys of a changelog", keys);
            ChildProcess first = instance(engine, application, "count", input);
            double running = awaitRunning(first);
            long restored = first.last("RESTORED");
            row(what + ", restored", engine, "%.1f s to RUNNING, %,.0f records a second | %.1f us"
                            + " of CPU each, %.0f MB written, peak %.0f MB of memory", running,
                    restored / running, cpuSeconds(first) / restored * 1e6,
                    writtenMegabytes(first), peakMegabytes(first));
            send(input, sent, sent + LAST, keys);
            sent += LAST;
            awaitProcessed(first, LAST / 3);
            first.kill();
            ChildProcess second = instance(engine, application, "count", input);
            running = awaitRunning(second);
            row(what + ", restart after kill -9", engine, "%.1f s to RUNNING | %,d records"
                    + " replayed", running, second.last("RESTORED"));
            awaitAllProcessed(second);
            second.end(60);
            row(what + ", state", engine, "%.0f MB on disk | ended as one ends it",
                    diskMegabytes(application));
            delete(application);
        }
    }

    private void delete(String application) throws IOException {
        try (Stream<Path> files = Files.walk(folder.resolve("state").resolve(application))) {
            for (Path file : files.sorted(java.util.Comparator.reverseOrder()).toList()) {
                Files.delete(file);
            }
        }
    }
}
