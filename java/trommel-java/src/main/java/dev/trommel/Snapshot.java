package dev.trommel;

import java.lang.ref.Reference;
import java.util.Objects;

/**
 * A key space at one moment. It keeps its store open, and what merges would remove, until it is
 * closed or cannot be reached any more.
 *
 * <p>Threads: any, at once; {@link #close} too. After it, reads throw {@link ClosedException}; rows
 * that were asked for before go on.
 */
public final class Snapshot extends Readable implements AutoCloseable {
    private final Store store;

    Snapshot(Store store, long handle) {
        super(handle);
        this.store = store;
    }

    /**
     * The store that it is of.
     *
     * @return the store
     */
    @Override
    public Store store() {
        return store;
    }

    /**
     * The same moment of another key space. It is a snapshot of its own, to be closed by itself.
     *
     * @param keyspace the key space
     * @return the snapshot
     * @throws IllegalArgumentException the key space is of another store
     */
    public Snapshot of(Writable keyspace) {
        Objects.requireNonNull(keyspace, "keyspace");
        try {
            return new Snapshot(store, Native.snapshotOf(handle, keyspace.handle));
        } finally {
            Reference.reachabilityFence(keyspace);
            Reference.reachabilityFence(this);
        }
    }

    /** Gives up what it keeps. Closing it again does nothing. */
    @Override
    public void close() {
        try {
            Native.closeSnapshot(handle);
        } finally {
            Reference.reachabilityFence(this);
        }
    }
}
