package dev.trommel;

import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Objects;

/**
 * A transaction in one key space. {@link Transaction#of} makes it. Reads see the transaction's own
 * writes; writes are seen by nobody else until {@link Transaction#commit}.
 *
 * <p>Threads: any, at once. Rows of ranges are read ahead in small pieces, and what was read ahead
 * counts as read.
 */
public sealed class TransactionIn extends Readable permits Transaction {
    private final Store store;

    TransactionIn(Store store, long handle) {
        super(handle);
        this.store = store;
    }

    /**
     * The store that it is of.
     *
     * @return the store
     */
    @Override
    public final Store store() {
        return store;
    }

    /**
     * Locks a key until the transaction ends, and reads its newest value. Others that write the key
     * or read it so wait that long.
     *
     * @param key the key
     * @return the value; null if the key has none
     * @throws ConflictException the key was written since the transaction began, and what it has
     *     read is not as it was: run it again
     * @throws DeadlockException whoever has the lock waits for this transaction: run it again
     * @throws LockTimeoutException another one keeps the lock for too long
     */
    public final byte[] getForUpdate(byte[] key) {
        Objects.requireNonNull(key, "key");
        try {
            return Native.getForUpdate(handle, key, key.length);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Sets the value of a key.
     *
     * @param key the key
     * @param value the value
     */
    public final void put(byte[] key, byte[] value) {
        doPut(key, value);
    }

    /**
     * Sets the value of a key, as {@link Writable#put(ByteBuffer, ByteBuffer)}.
     *
     * @param key the key
     * @param value the value
     */
    public final void put(ByteBuffer key, ByteBuffer value) {
        doPut(key, value);
    }

    /**
     * Sets the value of a key for so long after the commit.
     *
     * @param key the key
     * @param value the value
     * @param ttl how long; more than 584 years are for ever
     * @throws IllegalArgumentException the duration is negative
     */
    public final void put(byte[] key, byte[] value, Duration ttl) {
        doPut(key, value, ttl);
    }

    /**
     * Removes a key. It need not be there.
     *
     * @param key the key
     */
    public final void delete(byte[] key) {
        doDelete(key);
    }

    /**
     * Removes all keys of a range.
     *
     * @param from the first key
     * @param to the key behind the last one
     * @throws InvertedRangeException the range ends before it begins
     */
    public final void deleteRange(byte[] from, byte[] to) {
        doDeleteRange(from, to);
    }

    /**
     * Merges an operand into the value of a key.
     *
     * @param key the key
     * @param operand what is merged
     */
    public final void merge(byte[] key, byte[] operand) {
        doMerge(key, operand);
    }
}
