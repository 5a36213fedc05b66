package dev.trommel.kafka;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/**
 * Three brokers and three instances under exactly-once, of which one after the other is killed or
 * halted, or has a full disk, for minutes. In the end each output is compared with the truth.
 *
 * <pre>
 * load ──> events, two tables ──> instances ──> outputs ──> truth, compared with the model
 *                │ brokers │          │ state │
 *                └─ kill -9          └─ kill -9, halted until others take over, disk full
 * </pre>
 *
 * <p>Arguments, as {@code name=value}: folder, minutes, seed, rate (records a second), teller (hook
 * or runtime), disks (yes: {@code folder/state-NAME} are small file systems, which may be filled).
 */
final class Torture {
    static final String EVENTS = "events";
    static final String FIRST_TABLE = "first-table";
    static final String SECOND_TABLE = "second-table";
    static final String COUNTS = "counts";
    static final String WINDOWED_COUNTS = "windowed-counts";
    static final String SESSIONS = "sessions";
    static final String JOINED = "joined";
    static final String TABLES_JOINED = "tables-joined";
    static final List<String> OUTPUTS =
            List.of(COUNTS, WINDOWED_COUNTS, SESSIONS, JOINED, TABLES_JOINED);
    static final int PARTITIONS = 12;

    private static final int BROKERS = 3;
    private static final int BROKER_MEGABYTES = 256;
    private static final int WAIT_SECONDS = 240;
    /** Behind the load; instances and brokers have to come back, and do what was left. */
    private static final int DRAIN_SECONDS = 900;
    private static final double STRIKE_SECONDS_MIN = 2;
    private static final double STRIKE_SECONDS_SPAN = 6;
    private static final double STRIKE_SECONDS_MAX = 120;
    /** How long outputs may stand still while nothing of the load is done. */
    private static final int STILL_SECONDS_MAX = 900;

    /** Something that may go wrong. */
    interface Action {
        void run() throws Exception;
    }

    /** What is done to brokers and instances. */
    enum Strike {
        BROKER_KILLED, INSTANCE_KILLED, INSTANCE_HALTED, DISK_FILLED
    }

    /** Seconds of this process: those in which it was halted itself do not count. */
    private static final class Clock {
        private static final double TICK_SECONDS_MAX = 2;

        private double seconds;
        private long tickedAt = System.nanoTime();

        void tick() {
            long now = System.nanoTime();
            seconds += Math.min((now - tickedAt) / 1e9, TICK_SECONDS_MAX);
            tickedAt = now;
        }

        double seconds() {
            return seconds;
        }
    }

    private record Due(double at, Action action) {}

    private final Map<Strike, Integer> strikes = new EnumMap<>(Strike.class);
    private final List<Due> dues = new ArrayList<>();
    private final List<TorturedInstance> instances = new ArrayList<>();
    private final long begun = System.nanoTime();
    private final Random random;
    private final boolean hasDisks;
    private final Cluster cluster;
    private final Events events;
    private boolean brokersAreFine = true;
    private final Clock clock = new Clock();
    private long lastDone;
    private double lastDoneAt;
    private long doneAtStrike = -1;
    private double struckAt;

    private Torture(Map<String, String> given) throws Exception {
        Path folder = Files.createDirectories(Path.of(given.get("folder"))).toAbsolutePath();
        long seed = Long.parseLong(given.get("seed"));
        random = new Random(seed);
        events = new Events(seed);
        hasDisks = given.get("disks").equals("yes");
        cluster = new Cluster(folder, BROKERS, BROKER_MEGABYTES);
        for (String name : List.of("a", "b", "c")) {
            instances.add(new TorturedInstance(folder, name, cluster.servers(),
                    given.get("teller")));
        }
    }

    /** Plays it; the exit status is 0 if all was as it is to be. */
    public static void main(String[] arguments) throws Exception {
        Map<String, String> given = new HashMap<>();
        for (String argument : arguments) {
            String[] pair = argument.split("=", 2);
            given.put(pair[0], pair[1]);
        }
        Torture torture = new Torture(given);
        try {
            torture.play(Double.parseDouble(given.get("minutes")),
                    Integer.parseInt(given.get("rate")));
        } finally {
            torture.instances.forEach(TorturedInstance::killForGood);
            torture.cluster.close();
        }
    }

    private void say(String text) {
        System.out.printf("%6.1f s  %s%n", (System.nanoTime() - begun) / 1e9, text);
    }

    private void play(double minutes, int rate) throws Exception {
        List<String> topics = new ArrayList<>(List.of(EVENTS, FIRST_TABLE, SECOND_TABLE));
        topics.addAll(OUTPUTS);
        cluster.createTopics(topics, PARTITIONS);
        say("brokers and topics are there");
        for (TorturedInstance instance : instances) {
            instance.start();
        }
        for (TorturedInstance instance : instances) {
            instance.awaitRunning(WAIT_SECONDS);
        }
        say("instances run");
        try (TortureTruth truth = new TortureTruth(cluster.servers());
                TortureLoad load =
                        new TortureLoad(cluster.servers(), events, rate, truth::counts)) {
            torment(minutes, load, truth);
            heal();
            say("all are back, no more load; " + load.behind() + " events are behind");
            load.stop();
            truth.await(new TortureModel(events, load.sent()), DRAIN_SECONDS, () -> {
                requireAlive();
                load.letTimePass();
            });
            say("outputs are exact: " + load.sent() + " records in, " + truth.all() + " out");
            sayStrikes();
        }
    }

    private void torment(double minutes, TortureLoad load, TortureTruth truth) throws Exception {
        double nextStrike = 0;
        double nextWord = 0;
        while (clock.seconds() < minutes * 60) {
            clock.tick();
            doWhatIsDue(clock.seconds());
            requireAlive();
            load.requireFine();
            truth.requireFine();
            requireMotion(truth.all());
            if (clock.seconds() > nextStrike && mayStrike(truth.all())) {
                strike();
                nextStrike = clock.seconds() + STRIKE_SECONDS_MIN
                        + random.nextDouble() * STRIKE_SECONDS_SPAN;
            }
            if (clock.seconds() > nextWord) {
                say(load.sent() + " records in, " + truth.all() + " out, " + load.behind()
                        + " events behind; " + strikes);
                nextWord = clock.seconds() + 30;
            }
            Thread.sleep(200);
        }
    }

    /** Whether something came out since the last strike; if not, the next one comes later. */
    private boolean mayStrike(long done) {
        boolean may = done > doneAtStrike
                || clock.seconds() - struckAt > STRIKE_SECONDS_MAX;
        if (may) {
            doneAtStrike = done;
            struckAt = clock.seconds();
        }
        return may;
    }

    /** An application that does nothing for minutes has been lost. */
    private void requireMotion(long done) {
        if (done != lastDone) {
            lastDone = done;
            lastDoneAt = clock.seconds();
        }
        if (clock.seconds() - lastDoneAt > STILL_SECONDS_MAX) {
            throw new IllegalStateException("nothing came out for " + STILL_SECONDS_MAX + " s");
        }
    }

    private void requireAlive() throws IOException {
        if (brokersAreFine) {
            for (int number = 0; number < cluster.size(); number++) {
                cluster.restartIfDead(number);
            }
        }
        instances.forEach(TorturedInstance::requireAlive);
    }

    private void doWhatIsDue(double now) throws Exception {
        for (Due due : List.copyOf(dues)) {
            if (due.at <= now) {
                dues.remove(due);
                due.action.run();
            }
        }
    }

    private void later(int millis, Action action) {
        dues.add(new Due(clock.seconds() + millis / 1e3, action));
    }

    /** Ends all that is wrong. */
    private void heal() throws Exception {
        doWhatIsDue(Double.MAX_VALUE);
        double deadline = clock.seconds() + WAIT_SECONDS;
        while (!cluster.isInSync()) {
            clock.tick();
            if (clock.seconds() > deadline) {
                throw new IllegalStateException("brokers are not in sync");
            }
            Thread.sleep(500);
        }
    }

    private void strike() throws Exception {
        int chance = random.nextInt(100);
        if (chance < 25) {
            strikeBroker();
            return;
        }
        // One of them is left in peace, so that something goes on.
        List<TorturedInstance> ready =
                instances.stream().filter(TorturedInstance::isReady).toList();
        long whole = instances.stream().filter(TorturedInstance::isWhole).count();
        if (ready.isEmpty() || whole < 2) {
            return;
        }
        TorturedInstance victim = ready.get(random.nextInt(ready.size()));
        if (chance < 65) {
            count(Strike.INSTANCE_KILLED);
            victim.kill();
            // Half of them are back before others take over.
            later(random.nextBoolean() ? random.nextInt(2_000) : 12_000 + random.nextInt(6_000),
                    victim::start);
        } else if (chance < 85) {
            count(Strike.INSTANCE_HALTED);
            victim.halt();
            later(14_000 + random.nextInt(6_000), victim::goOn);
        } else if (hasDisks) {
            count(Strike.DISK_FILLED);
            victim.fillDisk();
            later(3_000 + random.nextInt(9_000), victim::freeDisk);
        }
    }

    private void strikeBroker() throws Exception {
        if (!brokersAreFine || !cluster.isInSync()) {
            return;
        }
        count(Strike.BROKER_KILLED);
        int number = random.nextInt(cluster.size());
        brokersAreFine = false;
        cluster.kill(number);
        later(random.nextInt(6_000), () -> {
            cluster.start(number);
            brokersAreFine = true;
        });
    }

    private void count(Strike strike) {
        strikes.merge(strike, 1, Integer::sum);
    }

    private void sayStrikes() {
        long restored = instances.stream().mapToLong(TorturedInstance::restored).sum();
        long restarts = instances.stream().mapToLong(TorturedInstance::restarts).sum();
        long clean = instances.stream().mapToLong(TorturedInstance::restartsWithoutReplay).sum();
        int all = strikes.values().stream().mapToInt(Integer::intValue).sum();
        System.out.println("strikes: " + all + " " + strikes);
        System.out.println("brokers that ended by themselves: " + cluster.ended());
        System.out.println("records restored, by all instances: " + restored);
        System.out.println("restarts: " + restarts + ", of them without any replay: " + clean);
    }
}
