package dev.trommel.kafka;

import java.io.IOException;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListOffsetsOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;

/**
 * Brokers on 127.0.0.1, a process each, that others may kill. Of three each topic has three
 * replicas, of which two are to have a record before it counts.
 */
final class Cluster {
    private static final int WAIT_SECONDS = 180;
    private static final int ADMIN_SECONDS = 20;

    private final Path folder;
    private final int megabytes;
    private final int[] ports;
    private final ChildProcess[] brokers;
    private final Admin admin;
    private int started;
    private int ended;

    /** Starts so many brokers, each with a heap of so many MiB. */
    Cluster(Path folder, int count, int megabytes) throws IOException, InterruptedException {
        this.folder = folder;
        this.megabytes = megabytes;
        ports = freePorts(2 * count);
        brokers = new ChildProcess[count];
        String id = Uuid.randomUuid().toString();
        for (int number = 0; number < count; number++) {
            writeConfig(number);
            ChildProcess format = ChildProcess.start(folder.resolve("format-" + number + ".log"),
                    256, "kafka.tools.StorageTool", "format", "-t", id, "-c",
                    config(number).toString());
            format.await("formatted", WAIT_SECONDS, () -> !format.isAlive());
            start(number);
        }
        admin = Admin.create(Map.of("bootstrap.servers", servers(),
                "default.api.timeout.ms", ADMIN_SECONDS * 1000,
                "request.timeout.ms", ADMIN_SECONDS * 500));
    }

    private static int[] freePorts(int count) throws IOException {
        int[] free = new int[count];
        List<ServerSocket> taken = new ArrayList<>();
        for (int at = 0; at < count; at++) {
            taken.add(new ServerSocket(0));
            free[at] = taken.get(at).getLocalPort();
        }
        for (ServerSocket socket : taken) {
            socket.close();
        }
        return free;
    }

    private Path config(int number) {
        return folder.resolve("broker-" + number + ".properties");
    }

    private String address(int at) {
        return "127.0.0.1:" + ports[at];
    }

    /** What clients connect to. */
    String servers() {
        return IntStream.range(0, brokers.length).mapToObj(this::address)
                .collect(Collectors.joining(","));
    }

    private void writeConfig(int number) throws IOException {
        int copies = Math.min(brokers.length, 3);
        int copiesMin = Math.min(brokers.length, 2);
        String voters = IntStream.range(0, brokers.length)
                .mapToObj(at -> at + 1 + "@" + address(brokers.length + at))
                .collect(Collectors.joining(","));
        Files.write(config(number), List.of(
                "process.roles=broker,controller",
                "node.id=" + (number + 1),
                "controller.quorum.voters=" + voters,
                "listeners=PLAINTEXT://" + address(number) + ",CONTROLLER://"
                        + address(brokers.length + number),
                "advertised.listeners=PLAINTEXT://" + address(number),
                "controller.listener.names=CONTROLLER",
                "log.dirs=" + folder.resolve("logs-" + number),
                "log.message.timestamp.after.max.ms=" + Long.MAX_VALUE,
                "log.segment.bytes=67108864",
                "log.index.size.max.bytes=1048576",
                "log.cleaner.dedupe.buffer.size=16777216",
                "num.network.threads=2",
                "num.io.threads=4",
                "default.replication.factor=" + copies,
                "min.insync.replicas=" + copiesMin,
                "offsets.topic.replication.factor=" + copies,
                "offsets.topic.num.partitions=2",
                "transaction.state.log.replication.factor=" + copies,
                "transaction.state.log.min.isr=" + copiesMin,
                "transaction.state.log.num.partitions=2",
                "transaction.abort.timed.out.transaction.cleanup.interval.ms=1000",
                "group.initial.rebalance.delay.ms=0",
                "share.coordinator.state.topic.replication.factor=" + copies,
                "share.coordinator.state.topic.min.isr=" + copiesMin));
    }

    int size() {
        return brokers.length;
    }

    /** Starts a broker that is dead, or was never alive. */
    void start(int number) throws IOException {
        brokers[number] = ChildProcess.start(
                folder.resolve("broker-" + number + "-" + started++ + ".log"), megabytes,
                "kafka.Kafka", config(number).toString());
    }

    /** Ends a broker as a crash does. */
    void kill(int number) throws InterruptedException {
        brokers[number].kill();
    }

    /** Starts a broker that ended by itself, as they do if they wait too long for each other. */
    void restartIfDead(int number) throws IOException {
        if (!brokers[number].isAlive()) {
            ended++;
            start(number);
        }
    }

    /** How many brokers ended by themselves. */
    int ended() {
        return ended;
    }

    /** Makes topics that keep everything, as soon as all brokers are there. */
    void createTopics(Collection<String> names, int partitions) throws Exception {
        for (int round = 0; !areAllThere(); round++) {
            if (round > WAIT_SECONDS) {
                throw new IllegalStateException("brokers do not come" + brokers[0].lastWords());
            }
            Thread.sleep(1_000);
        }
        List<NewTopic> topics = new ArrayList<>();
        for (String name : names) {
            topics.add(new NewTopic(name, partitions, (short) Math.min(brokers.length, 3))
                    .configs(Map.of("retention.ms", "-1")));
        }
        admin.createTopics(topics).all().get(WAIT_SECONDS, TimeUnit.SECONDS);
    }

    private boolean areAllThere() throws InterruptedException {
        return nowOrNever(() -> admin.describeCluster().nodes()
                .get(ADMIN_SECONDS, TimeUnit.SECONDS).size() == brokers.length);
    }

    /** Whether each replica of each partition has all, so that any broker may go. */
    boolean isInSync() throws InterruptedException {
        return nowOrNever(() -> {
            var names = admin.listTopics().names().get(ADMIN_SECONDS, TimeUnit.SECONDS);
            Collection<TopicDescription> topics = admin.describeTopics(names).allTopicNames()
                    .get(ADMIN_SECONDS, TimeUnit.SECONDS).values();
            return topics.stream().flatMap(topic -> topic.partitions().stream())
                    .allMatch(one -> one.isr().size() == one.replicas().size());
        });
    }

    /** What brokers answer; false if they do not. */
    private static boolean nowOrNever(Callable<Boolean> asked) throws InterruptedException {
        try {
            return asked.call();
        } catch (InterruptedException ended) {
            throw ended;
        } catch (Exception notNow) {
            return false;
        }
    }

    /** What is committed of topics whose names end so: offset of the next record. */
    Map<TopicPartition, Long> committedEnds(String suffix) throws Exception {
        var names = admin.listTopics().names().get(ADMIN_SECONDS, TimeUnit.SECONDS).stream()
                .filter(name -> name.endsWith(suffix)).toList();
        Map<TopicPartition, OffsetSpec> asked = new HashMap<>();
        admin.describeTopics(names).allTopicNames().get(ADMIN_SECONDS, TimeUnit.SECONDS)
                .forEach((name, topic) -> topic.partitions().forEach(one -> asked.put(
                        new TopicPartition(name, one.partition()), OffsetSpec.latest())));
        Map<TopicPartition, Long> ends = new HashMap<>();
        admin.listOffsets(asked, new ListOffsetsOptions(IsolationLevel.READ_COMMITTED)).all()
                .get(ADMIN_SECONDS, TimeUnit.SECONDS)
                .forEach((partition, end) -> ends.put(partition, end.offset()));
        return ends;
    }

    /** Ends all brokers. */
    void close() throws InterruptedException {
        admin.close(Duration.ofSeconds(1));
        for (ChildProcess broker : brokers) {
            broker.kill();
        }
    }
}
