package dev.trommel;

import java.lang.ref.Reference;

/**
 * A key space: keys, options and files of its own in a store. {@link Store#keyspace(String)} makes
 * it. It needs no closing: it ends with its store, which it keeps open.
 *
 * <p>Threads: any, at once.
 */
public final class Keyspace extends Writable {
    private final Store store;

    Keyspace(Store store, long handle) {
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

    /** Writes what is in memory of this key space to a run on disk. */
    public void flush() {
        try {
            Native.flush(handle, false);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** Merges everything of this key space into one run. */
    public void compact() {
        try {
            Native.compact(handle, false);
        } finally {
            Reference.reachabilityFence(this);
        }
    }
}
