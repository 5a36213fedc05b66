package dev.trommel.kafka;

import dev.trommel.Keyspace;
import dev.trommel.Store;
import dev.trommel.WriteBatch;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The engine of one instance, which the stores of all its tasks share. It lives in the folder
 * {@code trommel} beside the folders of tasks, and is open as long as a store is.
 */
final class SharedEngine {
    static final String FOLDER = "trommel";

    private static final Logger LOG = LoggerFactory.getLogger(SharedEngine.class);
    private static final Map<Path, SharedEngine> OPEN = new HashMap<>();
    private static final String DEFAULT_KEYSPACE = "default";

    private final Path folder;
    private final Store store;
    private int users;

    private SharedEngine(Path folder, Store store) {
        this.folder = folder;
        this.store = store;
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
            if (engine == null) {
                engine = new SharedEngine(folder, open(folder, config));
                OPEN.put(folder, engine);
                engine.dropKeyspacesOfGoneTasks(application);
            }
            engine.users++;
            return engine;
        }
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
                    + problem.getMessage() + ". One process at a time has this folder open, and"
                    + " needs to write in it; " + TrommelConfig.OPTIONS
                    + " names options that the engine has.", problem);
        }
    }

    /** Kafka Streams deletes folders of tasks; what they had here goes with the next opening. */
    private void dropKeyspacesOfGoneTasks(Path application) {
        for (String name : store.keyspaces()) {
            int end = name.lastIndexOf('/');
            if (!name.equals(DEFAULT_KEYSPACE) && end > 0
                    && !Files.isDirectory(application.resolve(name.substring(0, end)))) {
                LOG.info("Dropping {} in {}: the folder of its task is gone", name, folder);
                store.dropKeyspace(name);
            }
        }
    }

    /** The key space of a store in a task's folder, made if it is not there. */
    Keyspace keyspace(String name, TrommelConfig config) {
        return store.keyspace(name, config.keyspaceOptions());
    }

    /** Names of its key spaces. */
    java.util.List<String> keyspaces() {
        return store.keyspaces();
    }

    void dropKeyspace(String name) {
        store.dropKeyspace(name);
    }

    void write(WriteBatch batch) {
        store.write(batch);
    }

    /** One user less; the last one closes it. */
    void release() {
        synchronized (OPEN) {
            users--;
            if (users == 0) {
                OPEN.remove(folder, this);
                store.close();
                LOG.info("Closed Trommel in {}", folder);
            }
        }
    }

    @Override
    public String toString() {
        return folder.toString();
    }
}
