package dev.trommel.kafka;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** An instance with a name and a folder of state, through all its processes. */
final class TorturedInstance {
    private static final int MEGABYTES = 256;
    /** From when on it may be struck again, running or not. */
    private static final int REST_SECONDS = 20;
    private static final int FILL_BYTES = 1 << 20;

    private final Path folder;
    private final String name;
    private final String servers;
    private final String teller;
    private final List<ChildProcess> lives = new ArrayList<>();
    private long startedAt;
    private boolean isDown;
    private boolean isHalted;
    private boolean isFull;

    TorturedInstance(Path folder, String name, String servers, String teller) {
        this.folder = folder;
        this.name = name;
        this.servers = servers;
        this.teller = teller;
    }

    private ChildProcess life() {
        return lives.get(lives.size() - 1);
    }

    private Path state() {
        return folder.resolve("state-" + name);
    }

    void start() throws IOException {
        lives.add(ChildProcess.start(folder.resolve("instance-" + name + "-" + lives.size()
                        + ".log"), MEGABYTES, StreamsInstance.class, "topology=torture",
                "stores=trommel", "teller=" + teller, "every=2000",
                "bootstrap.servers=" + servers, "state.dir=" + state(),
                "group.instance.id=" + name, "replication.factor=3",
                "trommel.cache.bytes=32MiB", "commit.interval.ms=1000",
                "consumer.session.timeout.ms=10000", "producer.transaction.timeout.ms=40000"));
        startedAt = System.nanoTime();
        isDown = false;
    }

    void awaitRunning(int seconds) throws InterruptedException {
        life().await("running", seconds, () -> life().said("RUNNING"));
    }

    /** Whether nothing is being done to it. */
    boolean isWhole() {
        return !isDown && !isHalted && !isFull;
    }

    /** Whether it may be struck: it runs, or has had time enough to. */
    boolean isReady() {
        return !isDown && !isHalted && (life().said("RUNNING")
                || System.nanoTime() - startedAt > TimeUnit.SECONDS.toNanos(REST_SECONDS));
    }

    /** Throws if it ended and nobody killed it. */
    void requireAlive() {
        if (!isDown && !life().isAlive()) {
            throw new IllegalStateException(
                    "instance " + name + " died by itself" + life().lastWords());
        }
    }

    void kill() throws InterruptedException {
        isDown = true;
        life().kill();
    }

    void killForGood() {
        try {
            if (!lives.isEmpty()) {
                kill();
            }
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
    }

    void halt() throws IOException, InterruptedException {
        isHalted = true;
        life().halt();
    }

    void goOn() throws IOException, InterruptedException {
        life().goOn();
        isHalted = false;
    }

    private Path filling() {
        return state().resolve("filling");
    }

    /** Takes all space that the file system of its state has. */
    void fillDisk() throws IOException {
        isFull = true;
        try (OutputStream file = Files.newOutputStream(filling())) {
            for (int bytes = FILL_BYTES; bytes > 0; bytes /= 2) {
                fill(file, new byte[bytes]);
            }
        } catch (IOException full) {
            // As it is to be.
        }
    }

    private static void fill(OutputStream file, byte[] piece) {
        try {
            while (true) {
                file.write(piece);
            }
        } catch (IOException full) {
            // As it is to be; a smaller piece may go in.
        }
    }

    void freeDisk() throws IOException {
        Files.deleteIfExists(filling());
        isFull = false;
    }

    /** Records that all its processes restored. */
    long restored() {
        return lives.stream().mapToLong(life -> life.last("RESTORED")).sum();
    }

    long restarts() {
        return lives.size() - 1;
    }

    /** Processes, but for the first, that restored nothing. */
    long restartsWithoutReplay() {
        return lives.stream().skip(1)
                .filter(life -> life.said("RUNNING") && life.last("RESTORED") == 0).count();
    }
}
