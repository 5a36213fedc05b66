package dev.trommel.kafka;

import dev.trommel.DiskException;
import dev.trommel.Keyspace;
import dev.trommel.LockedException;
import dev.trommel.OptionException;
import dev.trommel.StoppedException;
import dev.trommel.Store;
import dev.trommel.TrommelException;
import dev.trommel.WriteBatch;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The engine of one instance, which the stores of all its tasks share. It lives in the folder
 * {@code trommel} beside the folders of tasks, and is open as long as a store is. An engine that
 * nobody wrote to stays open for some seconds more: at its start Kafka Streams opens each store of
 * each task to read an offset, and closes it before the next one.
 */
final class SharedEngine {
    static final String FOLDER = "trommel";
    private static final String MANIFEST = "MANIFEST";

    private static final Logger LOG = LoggerFactory.getLogger(SharedEngine.class);
    private static final Map<Path, SharedEngine> OPEN = new HashMap<>();
    private static final String DEFAULT_KEYSPACE = "default";

    private static final long UNUSED_SECONDS = 10;
    private static final ScheduledExecutorService CLOSER =
            Executors.newSingleThreadScheduledExecutor(task -> {
                Thread thread = new Thread(task, "trommel-closer");
                thread.setDaemon(true);
                return thread;
            });
    /** A task that was restored and is killed later than this does not restore again. */
    private static final long IDLE_MILLIS = 250;
    /** Of all stores together; the arrays that have it are half as long again at most. */
    private static final long RESTORED_BYTES_MAX = 24L << 20;
    /** Of all stores together, while the disk refuses them. */
    private static final long REFUSED_BYTES_MAX = 64L << 20;
    private static final long SWEEP_NANOS = TimeUnit.MINUTES.toNanos(1);

    private final Path folder;
    private final Store store;
    private final String options;
    private final Set<String> used = new HashSet<>();
    private final Set<RestoredRows> restoring = ConcurrentHashMap.newKeySet();
    private long sweptAt;
    private int users;
    private long releases;
    private volatile boolean changed;

    private SharedEngine(Path folder, Store store, String options) {
        this.folder = folder;
        this.store = store;
        this.options = options;
        this.sweptAt = System.nanoTime() - SWEEP_NANOS;
    }

    /**
     * The engine for an application's folder. Each call wants one {@link #release}.
     *
     * @throws ProcessorStateException if it cannot be opened
     */
    static SharedEngine acquire(Path application, TrommelConfig config) {
        synchronized (OPEN) {
            Path folder = realPath(application).resolve(FOLDER);
            SharedEngine engine = OPEN.get(folder);
            if (engine != null && engine.users == 0 && !engine.isStillThatOf(config)) {
                engine.close();
                engine = null;
            }
            if (engine == null) {
                engine = new SharedEngine(folder, open(folder, config), config.engineText());
                OPEN.put(folder, engine);
            }
            engine.users++;
            engine.sweep(application);
            return engine;
        }
    }

    /** Whether an engine that nobody uses is the one that would be opened now. */
    private boolean isStillThatOf(TrommelConfig config) {
        return options.equals(config.engineText()) && Files.exists(folder.resolve(MANIFEST));
    }

    private static Path realPath(Path application) {
        try {
            return Files.createDirectories(application).toRealPath();
        } catch (IOException problem) {
            throw new ProcessorStateException("The state folder " + application
                    + " cannot be made or read: " + problem
                    + ". Make it writable for this user, or change state.dir.", problem);
        }
    }

    private static Store open(Path folder, TrommelConfig config) {
        try {
            Store store = Store.open(folder, config.engineOptions());
            LOG.info("Opened Trommel in {}", folder);
            return store;
        } catch (RuntimeException problem) {
            throw new ProcessorStateException("Trommel cannot be opened in " + folder + ": "
                    + problem.getMessage() + ". " + advice(problem), problem);
        }
    }

    private static String advice(RuntimeException problem) {
        if (problem instanceof LockedException) {
            return "End the instance that has it open, or give each instance a state.dir of its"
                    + " own.";
        }
        if (problem instanceof OptionException || problem instanceof IllegalArgumentException) {
            return "Correct " + TrommelConfig.OPTIONS + " or " + TrommelConfig.CACHE_BYTES + ".";
        }
        return "The folder has to be one that this user can write to. If what is in it is damaged,"
                + " end the instance and delete the folder: all is restored from changelogs then.";
    }

    /** Drops what gone tasks had, now and then. What fails is tried again the next time. */
    private void sweep(Path application) {
        if (System.nanoTime() - sweptAt < SWEEP_NANOS) {
            return;
        }
        sweptAt = System.nanoTime();
        try {
            dropKeyspacesOfGoneTasks(application);
        } catch (TrommelException problem) {
            LOG.error("What tasks that are gone had in {} could not be dropped; it is tried again."
                    + " {}", folder, problem.getMessage());
        }
    }

    /** Kafka Streams deletes folders of tasks; what they had here goes when a store is opened. */
    private void dropKeyspacesOfGoneTasks(Path application) {
        for (String name : store.keyspaces()) {
            int end = name.lastIndexOf('/');
            if (!name.equals(DEFAULT_KEYSPACE) && end > 0 && !used.contains(name)
                    && isGone(application.resolve(name.substring(0, end)))) {
                LOG.info("Dropping {} in {}: the folder of its task is gone", name, folder);
                changed = true;
                store.dropKeyspace(name);
            }
        }
    }

    private static boolean isGone(Path task) {
        return !Files.isDirectory(task) && !KeptFolders.isKept(task);
    }

    /**
     * The key space of a store in a task's folder, made if it is not there, anew if it is of
     * another generation.
     */
    Keyspace keyspace(String name, byte[] generation, TrommelConfig config) {
        synchronized (OPEN) {
            used.add(name);
            Keyspace keyspace = store.keyspace(name, config.keyspaceOptions());
            if (!Arrays.equals(keyspace.get(RowKeys.GENERATION), generation)) {
                changed = true;
                store.dropKeyspace(name);
                keyspace = store.keyspace(name, config.keyspaceOptions());
                keyspace.put(RowKeys.GENERATION, generation);
            }
            return keyspace;
        }
    }

    /** Names of its key spaces. */
    List<String> keyspaces() {
        return store.keyspaces();
    }

    void write(WriteBatch batch) {
        changed = true;
        store.write(batch);
    }

    /** Makes a sorted run of what a batch puts. */
    void ingest(Keyspace into, WriteBatch batch) {
        changed = true;
        into.ingestBatch(batch);
    }

    /** Restored rows wait in memory from now on; if they are to be watched, until none come. */
    void restores(RestoredRows rows, boolean isToBeWatched) {
        restoring.add(rows);
        if (isToBeWatched) {
            writeWhenIdle(rows);
        }
    }

    void restoresNoMore(RestoredRows rows) {
        restoring.remove(rows);
    }

    private void writeWhenIdle(RestoredRows rows) {
        long added = rows.added();
        CLOSER.schedule(() -> {
            if (rows.writeIfIdle(added)) {
                writeWhenIdle(rows);
            }
        }, IDLE_MILLIS, TimeUnit.MILLISECONDS);
    }

    /** Writes rows that were restored, if there are too many of these, or of all stores. */
    void limitRestored(RestoredRows rows) {
        if (rows.isFull()) {
            writeRestored(rows);
        }
        if (restoredBytes() > RESTORED_BYTES_MAX) {
            restoring.stream().max(Comparator.comparingInt(RestoredRows::bytes))
                    .ifPresent(this::writeRestored);
        }
    }

    /** What the disk refuses is tried again when more comes, until memory is at its end, too. */
    private void writeRestored(RestoredRows rows) {
        try {
            rows.write();
        } catch (DiskException | StoppedException refused) {
            if (restoredBytes() > REFUSED_BYTES_MAX) {
                throw refused;
            }
            LOG.error("Restored rows could not be written to {}; it is tried again. {}", folder,
                    refused.getMessage());
        }
    }

    private long restoredBytes() {
        return restoring.stream().mapToLong(RestoredRows::bytes).sum();
    }

    /** One user of a key space less; the last one of all closes the engine. */
    void release(String name) {
        synchronized (OPEN) {
            used.remove(name);
            users--;
            releases++;
            if (users == 0 && changed) {
                close();
            } else if (users == 0) {
                long release = releases;
                CLOSER.schedule(() -> closeIfUnusedSince(release), UNUSED_SECONDS,
                        TimeUnit.SECONDS);
            }
        }
    }

    private void closeIfUnusedSince(long release) {
        synchronized (OPEN) {
            if (users == 0 && releases == release && OPEN.get(folder) == this) {
                close();
            }
        }
    }

    private void close() {
        OPEN.remove(folder, this);
        try {
            store.close();
            LOG.info("Closed Trommel in {}", folder);
        } catch (DiskException refused) {
            // Nobody could do more about it: what is lost is restored.
            LOG.error("Closed Trommel in {}, whose last commits may not outlive a power cut: {}",
                    folder, refused.getMessage());
        }
    }

    /** Whether the engine of an application is open in this process. */
    static boolean isOpen(Path application) {
        synchronized (OPEN) {
            return OPEN.containsKey(realPath(application).resolve(FOLDER));
        }
    }

    @Override
    public String toString() {
        return folder.toString();
    }
}
