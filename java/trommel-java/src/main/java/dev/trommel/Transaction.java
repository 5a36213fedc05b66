package dev.trommel;

import java.lang.ref.Reference;
import java.util.Objects;

/**
 * Reads of one moment and writes on top of them, which are committed together or not at all. Its
 * own reads and writes are of the default key space.
 *
 * <pre>{@code
 * try (Transaction transaction = store.transaction()) {
 *     byte[] value = transaction.get(key);
 *     transaction.put(key, changed(value));
 *     transaction.commit();
 * }
 * }</pre>
 *
 * <p>Nobody waits for a transaction, but for keys that it has read {@linkplain #getForUpdate for
 * update}. {@link Store#run} runs one until it commits. After its end all calls throw {@link
 * ClosedException}.
 */
public final class Transaction extends TransactionIn implements AutoCloseable {
    Transaction(Store store, long handle) {
        super(store, handle);
    }

    /** A place to which a transaction's writes can go back. */
    public static final class Savepoint {
        private final long handle;

        private Savepoint(long handle) {
            this.handle = handle;
            Handles.free(this, handle, Native::freeSavepoint);
        }
    }

    /**
     * The transaction, in another key space. It ends with this one.
     *
     * @param keyspace the key space
     * @return the same transaction there
     * @throws IllegalArgumentException the key space is of another store
     */
    public TransactionIn of(Writable keyspace) {
        Objects.requireNonNull(keyspace, "keyspace");
        try {
            long there = Native.transactionOf(handle, keyspace.handle);
            return new TransactionIn(store(), there);
        } finally {
            Reference.reachabilityFence(keyspace);
            Reference.reachabilityFence(this);
        }
    }

    /**
     * A place to which the transaction's writes can go back.
     *
     * @return the place
     */
    public Savepoint savepoint() {
        try {
            return new Savepoint(Native.savepoint(handle));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Forgets what was written since, and frees the keys that were locked since. What was read
     * since must still hold at the commit.
     *
     * @param savepoint the place
     * @throws IllegalArgumentException it is of another transaction
     */
    public void rollBackTo(Savepoint savepoint) {
        Objects.requireNonNull(savepoint, "savepoint");
        try {
            Native.rollBackTo(handle, savepoint.handle);
        } finally {
            Reference.reachabilityFence(savepoint);
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Writes what the transaction has written, and ends it, whatever comes of it.
     *
     * @return the number of its last write; of one that has written nothing, that of its moment
     * @throws ConflictException others have written what it has read: run it again
     * @throws DeadlockException whoever has locked a key that it writes waits for it: run it again
     * @throws IllegalStateException another thread is in a call of it, and it goes on
     */
    public long commit() {
        return commit(false);
    }

    /**
     * As {@link #commit}, and on disk when it returns.
     *
     * @return the number of its last write
     */
    public long commitSynced() {
        return commit(true);
    }

    private long commit(boolean isSynced) {
        try {
            return Native.commit(handle, isSynced);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Ends the transaction, and writes nothing, if it was not committed. Calls of other threads end
     * as they would have.
     */
    @Override
    public void close() {
        try {
            Native.rollBack(handle);
        } finally {
            Reference.reachabilityFence(this);
        }
    }
}
