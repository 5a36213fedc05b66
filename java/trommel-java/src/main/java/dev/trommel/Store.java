package dev.trommel;

import java.lang.ref.Reference;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Function;

/**
 * An open store: a folder, which one process at a time has open. It is its own key space "default".
 *
 * <pre>{@code
 * try (Store store = Store.open(Path.of("words"))) {
 *     store.put("zug".getBytes(), "47.17 N".getBytes());
 *     byte[] value = store.get("zug".getBytes());
 * }
 * }</pre>
 *
 * <p>Threads: any, at once; {@link #close} too. After it, everything of the store throws {@link
 * ClosedException}. A store that is not closed is closed when neither it nor what was made of it
 * can be reached any more. If the process ends before, what was written is there all the same.
 */
public final class Store extends Writable implements AutoCloseable {
    /** Runs of a transaction before one that waits. */
    private static final int HURRIED_RUNS = 3;

    private static final long PAUSE_NANOS_MIN = 50_000;
    private static final long PAUSE_NANOS_MAX = 20_000_000;

    private final Path path;

    private Store(Path path, long handle) {
        super(handle);
        this.path = path;
    }

    /**
     * Opens the store in a folder, and makes one if there is none. The options are as usual, or as
     * the store has kept them.
     *
     * @param path the folder
     * @return the store
     * @throws LockedException it is open already, in this process or in another one
     * @throws NotAStoreException the folder holds files, but no store
     * @throws VersionException another version of Trommel wrote it
     * @throws CorruptException a file is damaged
     * @throws DiskException the disk refuses
     */
    public static Store open(Path path) {
        return open(path, new Options());
    }

    /**
     * Opens the store in a folder, and makes one if there is none and the options allow it.
     *
     * @param path the folder
     * @param options what is set; they are copied
     * @return the store
     * @throws LockedException it is open already, in this process or in another one
     * @throws NotAStoreException the folder holds files, but no store
     * @throws MissingException there is no store, and none was to be made
     * @throws VersionException another version of Trommel wrote it
     * @throws CorruptException a file is damaged
     * @throws OptionException options make no sense together
     * @throws DiskException the disk refuses
     */
    public static Store open(Path path, Options options) {
        byte[] folder = Arguments.path(path);
        byte[] set = Objects.requireNonNull(options, "options").packed();
        return new Store(path, Native.open(folder, folder.length, set, set.length));
    }

    @Override
    Store store() {
        return this;
    }

    /**
     * The folder, by the path that it was opened with.
     *
     * @return the path
     */
    public Path path() {
        return path;
    }

    /**
     * Closes the store: waits for calls under way, makes all writes durable, ends background work.
     * Then the folder is free to be opened again, whatever of this store lives on. Closing it again
     * does nothing.
     *
     * @throws DiskException what kept writes from becoming durable; the store is closed all the
     *     same
     */
    @Override
    public void close() {
        try {
            Native.close(handle);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * The key space that every store has: this one.
     *
     * @return the key space
     */
    public Writable defaultKeyspace() {
        return this;
    }

    /**
     * The key space of a name, which is made if it is not there.
     *
     * @param name the name
     * @return the key space
     * @throws OptionException the name makes no sense
     */
    public Keyspace keyspace(String name) {
        return keyspace(name, new Options());
    }

    /**
     * The key space of a name, which is made if it is not there. What is set in the options is
     * kept.
     *
     * @param name the name
     * @param options what is set; they are copied
     * @return the key space
     * @throws OptionException the name or an option makes no sense, or is of the whole store
     */
    public Keyspace keyspace(String name, Options options) {
        byte[] named = Packed.bytes(Objects.requireNonNull(name, "name"));
        byte[] set = Objects.requireNonNull(options, "options").packed();
        try {
            long made = Native.keyspace(handle, named, named.length, set, set.length);
            return new Keyspace(this, made);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * The key space of a name that is there.
     *
     * @param name the name
     * @return the key space
     * @throws NoKeyspaceException there is none
     */
    public Keyspace openKeyspace(String name) {
        byte[] named = Packed.bytes(Objects.requireNonNull(name, "name"));
        try {
            return new Keyspace(this, Native.openKeyspace(handle, named, named.length));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * The names of all key spaces, the default one first.
     *
     * @return the names
     */
    public List<String> keyspaces() {
        try {
            return List.copyOf(Packed.texts(Native.keyspaces(handle)));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Drops a key space with all that is in it. What reads or writes it throws {@link
     * KeyspaceDroppedException} from then on.
     *
     * @param name the name
     * @throws NoKeyspaceException there is none
     * @throws OptionException it is the default one
     */
    public void dropKeyspace(String name) {
        byte[] named = Packed.bytes(Objects.requireNonNull(name, "name"));
        try {
            Native.dropKeyspace(handle, named, named.length);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Gives a key space another name. Its objects stay good.
     *
     * @param name the name
     * @param to the new name
     * @throws NoKeyspaceException there is none of that name
     * @throws KeyspaceExistsException the new name is taken
     * @throws OptionException it is the default one, or the new name makes no sense
     */
    public void renameKeyspace(String name, String to) {
        byte[] from = Packed.bytes(Objects.requireNonNull(name, "name"));
        byte[] into = Packed.bytes(Objects.requireNonNull(to, "to"));
        try {
            Native.renameKeyspace(handle, from, from.length, into, into.length);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * The store as it is now, to be read while writes go on. Merges keep what it sees: close it.
     *
     * @return the snapshot, of the default key space; {@link Snapshot#of} gives the others
     */
    public Snapshot snapshot() {
        try {
            return new Snapshot(this, Native.snapshot(handle));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Begins a transaction, as if it ran alone.
     *
     * @return the transaction
     */
    public Transaction transaction() {
        return transaction(Isolation.SERIALIZABLE);
    }

    /**
     * Begins a transaction.
     *
     * @param isolation what its commit makes sure of
     * @return the transaction
     */
    public Transaction transaction(Isolation isolation) {
        Objects.requireNonNull(isolation, "isolation");
        try {
            long begun = Native.transaction(handle, isolation == Isolation.SERIALIZABLE);
            return new Transaction(this, begun);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Runs a transaction and commits it; again, after a while, as long as others are faster or it
     * is in a deadlock. An exception ends it, and nothing is written.
     *
     * @param <T> what the work gives
     * @param work may be called several times
     * @return what the work gave
     */
    public <T> T run(Function<? super Transaction, ? extends T> work) {
        Objects.requireNonNull(work, "work");
        for (int runs = 0; ; runs++) {
            try (Transaction transaction = transaction()) {
                T given = work.apply(transaction);
                transaction.commit();
                return given;
            } catch (ConflictException | DeadlockException faster) {
                if (runs >= HURRIED_RUNS) {
                    long pause = PAUSE_NANOS_MIN << Math.min(runs - HURRIED_RUNS, 10);
                    LockSupport.parkNanos(Math.min(pause, PAUSE_NANOS_MAX));
                }
            }
        }
    }

    /**
     * Writes a batch: readers see all of it or nothing, and so does whoever opens the store after a
     * crash. The batch is empty then; after an exception it is as it was.
     *
     * @param batch the batch
     * @throws ConflictException a condition of the batch does not hold; nothing was written
     * @throws BatchTooLongException it is longer than a store accepts; nothing was written
     * @throws IllegalArgumentException the batch writes into another store's key space
     */
    public void write(WriteBatch batch) {
        write(batch, false);
    }

    /**
     * As {@link #write}, and on disk when it returns, whatever the options say.
     *
     * @param batch the batch
     */
    public void writeSynced(WriteBatch batch) {
        write(batch, true);
    }

    private void write(WriteBatch batch, boolean isSynced) {
        Objects.requireNonNull(batch, "batch").checkStore(this);
        Packed writes = batch.writes();
        try {
            Native.write(handle, writes.bytes(), writes.length(), batch.keyspaces(), isSynced);
            batch.clear();
        } finally {
            Reference.reachabilityFence(batch);
            Reference.reachabilityFence(this);
        }
    }

    /** Makes all writes so far durable. */
    public void sync() {
        try {
            Native.sync(handle);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** Writes what is in memory to runs on disk, of each key space. */
    public void flush() {
        try {
            Native.flush(handle, true);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** Returns when no flush or merge is due. */
    public void settle() {
        try {
            Native.settle(handle);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** Merges everything of each key space into one run. */
    public void compact() {
        try {
            Native.compact(handle, true);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Makes a second store with all writes that are visible now. Tables are shared by hard links
     * where that can be. Writes go on meanwhile.
     *
     * @param path a folder that is new or empty
     * @throws NotEmptyException the folder has files
     * @throws DiskException the disk refuses
     */
    public void checkpoint(Path path) {
        byte[] folder = Arguments.path(path);
        try {
            Native.checkpoint(handle, folder, folder.length);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Reads every byte of every table and log and checks it, and every key against the filter.
     *
     * @return what was read; damage is in it, and throws nothing
     */
    public VerifyReport verify() {
        try {
            List<String> texts = Packed.texts(Native.verify(handle));
            return new VerifyReport(
                    Long.parseUnsignedLong(texts.get(0)),
                    Long.parseUnsignedLong(texts.get(1)),
                    Long.parseUnsignedLong(texts.get(2)),
                    texts.subList(3, texts.size()));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    @Override
    public String toString() {
        return "Store[" + path + "]";
    }
}
