package dev.trommel;

import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;

/**
 * What can be read: a {@link Keyspace} or {@link Store} as it is now, a {@link Snapshot}, a {@link
 * Transaction} with its own writes.
 *
 * <p>Each method crosses to the native side once, and allocates what it gives and nothing else.
 * Methods that give rows are described at {@link Rows}. A range goes from its first key on and
 * ends before its second; null is no bound. A range that ends before it begins has no keys. Arrays
 * are copied at once: what is done with them afterwards changes nothing.
 *
 * <p>Buffers may be those of an arena, which Java has from version 22 on. Bytes of a closed arena
 * throw {@link IllegalStateException}, those of another thread's arena {@code
 * WrongThreadException}. A shared arena must not be closed before the call has returned: its memory
 * is used without asking again.
 *
 * <p>Threads: any, at once. All methods throw {@link ClosedException} after the store, the snapshot
 * or the transaction was closed, {@link KeyspaceDroppedException} after the key space was dropped,
 * {@link DiskException} and {@link CorruptException} if a file cannot be read; and {@link
 * NullPointerException} if an argument is null that must not be.
 */
public abstract sealed class Readable implements Iterable<Row>
        permits Writable, Snapshot, TransactionIn {
    /** Of the native side. It is freed when this cannot be reached any more. */
    final long handle;

    Readable(long handle) {
        this.handle = handle;
        Handles.free(this, handle, Native::freeReader);
    }

    /** The store that it is of. */
    abstract Store store();

    /**
     * The value of a key.
     *
     * @param key the key
     * @return the value; null if the key has none
     */
    public final byte[] get(byte[] key) {
        Objects.requireNonNull(key, "key");
        try {
            return Native.get(handle, key, key.length);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Puts the value of a key into a buffer, at its position, which moves behind the value. If the
     * value is longer than what remains in the buffer, nothing is put and the position stays. A
     * direct buffer is written at once; into others the value is copied once more.
     *
     * @param key the key
     * @param value where the value goes
     * @return the value's length; -1 if the key has none
     * @throws IllegalArgumentException the buffer is read-only
     */
    public final int get(byte[] key, ByteBuffer value) {
        Objects.requireNonNull(key, "key");
        checkWritable(value);
        if (!value.isDirect()) {
            return putFound(get(key), value);
        }
        int at = value.position();
        int room = Arguments.lengthFrom(at, value);
        try {
            int length = Native.getInto(handle, key, key.length, value, at, room);
            return moved(value, at, room, length);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * As {@link #get(byte[], ByteBuffer)}, of a key in a buffer, from its position to its limit;
     * neither is changed. If both buffers are direct, nothing is allocated.
     *
     * @param key the key
     * @param value where the value goes
     * @return the value's length; -1 if the key has none
     * @throws IllegalArgumentException the buffer for the value is read-only
     */
    public final int get(ByteBuffer key, ByteBuffer value) {
        Objects.requireNonNull(key, "key");
        checkWritable(value);
        if (!key.isDirect() || !value.isDirect()) {
            return get(Arguments.bytes(key), value);
        }
        int keyAt = key.position();
        int keyLength = Arguments.lengthFrom(keyAt, key);
        int at = value.position();
        int room = Arguments.lengthFrom(at, value);
        try {
            int length = Native.getDirect(handle, key, keyAt, keyLength, value, at, room);
            return moved(value, at, room, length);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    private static void checkWritable(ByteBuffer value) {
        if (Objects.requireNonNull(value, "value").isReadOnly()) {
            throw new IllegalArgumentException("value: the buffer is read-only");
        }
    }

    private static int moved(ByteBuffer value, int at, int room, int length) {
        if (length >= 0 && length <= room) {
            value.position(at + length);
        }
        return length;
    }

    private static int putFound(byte[] found, ByteBuffer value) {
        if (found == null) {
            return -1;
        }
        if (found.length <= value.remaining()) {
            value.put(found);
        }
        return found.length;
    }

    /**
     * Whether a key has a value.
     *
     * @param key the key
     * @return whether it has
     */
    public final boolean containsKey(byte[] key) {
        Objects.requireNonNull(key, "key");
        try {
            return Native.contains(handle, key, key.length);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * The values of many keys at one moment, in one crossing. It takes less time a key than as many
     * calls of {@link #get}.
     *
     * @param keys the keys, in any order
     * @return their values in the order of the keys, null where a key has none
     * @throws IllegalArgumentException all keys, or all values, are longer than an array can be
     */
    public final List<byte[]> getMany(List<byte[]> keys) {
        Objects.requireNonNull(keys, "keys");
        Packed packed = new Packed();
        int count = 0;
        for (byte[] key : keys) {
            if (key == null) {
                throw new NullPointerException("keys: the one at " + count + " is null");
            }
            if (!packed.add(key)) {
                throw new IllegalArgumentException("keys: they are longer than an array can be");
            }
            count++;
        }
        try {
            byte[] values = Native.getMany(handle, packed.bytes(), packed.length());
            return Arrays.asList(Packed.values(values, count));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * The rows of a range.
     *
     * @param from the first key; null: from the begin
     * @param to the key behind the last one; null: to the end
     * @return the rows; close them if they may not be read to their end
     */
    public final Rows range(byte[] from, byte[] to) {
        return new Rows(this, first(from, to, false, Rows.FIRST_ROWS));
    }

    /**
     * The rows of a range.
     *
     * @param bounds the range
     * @return the rows; close them if they may not be read to their end
     */
    public final Rows range(Bounds bounds) {
        Objects.requireNonNull(bounds, "bounds");
        return range(bounds.from, bounds.to);
    }

    /**
     * The rows of a range, the last key first.
     *
     * @param from the least key; null: from the begin
     * @param to the key behind the greatest one; null: to the end
     * @return the rows; close them if they may not be read to their end
     */
    public final Rows rangeReverse(byte[] from, byte[] to) {
        return new Rows(this, first(from, to, true, Rows.FIRST_ROWS));
    }

    /**
     * The rows of a range, the last key first.
     *
     * @param bounds the range
     * @return the rows; close them if they may not be read to their end
     */
    public final Rows rangeReverse(Bounds bounds) {
        Objects.requireNonNull(bounds, "bounds");
        return rangeReverse(bounds.from, bounds.to);
    }

    /**
     * The rows of a range, or null if it has none: then no object is made. This is the way to ask
     * for short ranges of which most are empty.
     *
     * @param from the least key; null: from the begin
     * @param to the key behind the greatest one; null: to the end
     * @param reverse whether the last key comes first
     * @return the rows, of which there is one at least; null if there is none
     */
    public final Rows rangeOrNull(byte[] from, byte[] to, boolean reverse) {
        byte[] first = first(from, to, reverse, Rows.FIRST_ROWS);
        return first == null ? null : new Rows(this, first);
    }

    /**
     * The rows whose keys begin with some bytes.
     *
     * @param prefix the bytes; none of them: all rows
     * @return the rows; close them if they may not be read to their end
     */
    public final Rows prefix(byte[] prefix) {
        Objects.requireNonNull(prefix, "prefix");
        return range(prefix, Bounds.prefixEnd(prefix));
    }

    /**
     * All rows.
     *
     * @return the rows; those of a loop that is left early are freed some time later
     */
    @Override
    public final Rows iterator() {
        return range(null, null);
    }

    /**
     * The first row.
     *
     * @return the row; null if there is none
     */
    public final Row firstRow() {
        return only(first(null, null, false, 1));
    }

    /**
     * The last row.
     *
     * @return the row; null if there is none
     */
    public final Row lastRow() {
        return only(first(null, null, true, 1));
    }

    private Row only(byte[] first) {
        if (first == null) {
            return null;
        }
        try (Rows rows = new Rows(this, first)) {
            return rows.next();
        }
    }

    private byte[] first(byte[] from, byte[] to, boolean reverse, int rows) {
        int fromLength = Arguments.length(from);
        int toLength = Arguments.length(to);
        try {
            return Native.rows(
                    handle, from, fromLength, to, toLength, reverse, rows, Rows.FIRST_BYTES);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Whether a range may have a key. False proves that it has none. A store and a snapshot answer
     * from memory; a transaction reads, and answers exactly.
     *
     * @param from the first key; null: from the begin
     * @param to the key behind the last one; null: to the end
     * @return false: it has none
     */
    public final boolean mayContainRange(byte[] from, byte[] to) {
        int fromLength = Arguments.length(from);
        int toLength = Arguments.length(to);
        try {
            return Native.mayContainRange(handle, from, fromLength, to, toLength);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * As {@link #mayContainRange(byte[], byte[])}.
     *
     * @param bounds the range
     * @return false: it has none
     */
    public final boolean mayContainRange(Bounds bounds) {
        Objects.requireNonNull(bounds, "bounds");
        return mayContainRange(bounds.from, bounds.to);
    }

    /**
     * About how many entries a range has. No block of a table is read. A transaction tells what its
     * key space has now, without its own writes.
     *
     * @param from the first key; null: from the begin
     * @param to the key behind the last one; null: to the end
     * @return how many
     */
    public final Count approximateCount(byte[] from, byte[] to) {
        int fromLength = Arguments.length(from);
        int toLength = Arguments.length(to);
        try {
            byte[] numbers = Native.approximateCount(handle, from, fromLength, to, toLength);
            return new Count(
                    Packed.longAt(numbers, 0),
                    Packed.longAt(numbers, Long.BYTES),
                    Packed.longAt(numbers, 2 * Long.BYTES));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * As {@link #approximateCount(byte[], byte[])}.
     *
     * @param bounds the range
     * @return how many
     */
    public final Count approximateCount(Bounds bounds) {
        Objects.requireNonNull(bounds, "bounds");
        return approximateCount(bounds.from, bounds.to);
    }

    /**
     * The number of the last write that is seen. Writes are numbered in their order.
     *
     * @return the number
     */
    public final long sequence() {
        try {
            return Native.sequence(handle);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    // Writes, of a key space and of a transaction, which have them under these names.

    final void doPut(byte[] key, byte[] value) {
        Objects.requireNonNull(key, "key");
        Objects.requireNonNull(value, "value");
        try {
            Native.put(handle, key, key.length, value, value.length);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    final void doPut(ByteBuffer key, ByteBuffer value) {
        Objects.requireNonNull(key, "key");
        Objects.requireNonNull(value, "value");
        if (!key.isDirect() || !value.isDirect()) {
            doPut(Arguments.bytes(key), Arguments.bytes(value));
            return;
        }
        int keyAt = key.position();
        int keyLength = Arguments.lengthFrom(keyAt, key);
        int valueAt = value.position();
        int valueLength = Arguments.lengthFrom(valueAt, value);
        try {
            Native.putDirect(handle, key, keyAt, keyLength, value, valueAt, valueLength);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    final void doPut(byte[] key, byte[] value, Duration ttl) {
        Objects.requireNonNull(key, "key");
        Objects.requireNonNull(value, "value");
        Arguments.ttl(ttl);
        long seconds = ttl.getSeconds();
        try {
            Native.putFor(
                    handle, key, key.length, value, value.length, seconds, ttl.getNano());
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    final void doDelete(byte[] key) {
        Objects.requireNonNull(key, "key");
        try {
            Native.delete(handle, key, key.length);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    final void doDeleteRange(byte[] from, byte[] to) {
        Objects.requireNonNull(from, "from");
        Objects.requireNonNull(to, "to");
        try {
            Native.deleteRange(handle, from, from.length, to, to.length);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    final void doMerge(byte[] key, byte[] operand) {
        Objects.requireNonNull(key, "key");
        Objects.requireNonNull(operand, "operand");
        try {
            Native.merge(handle, key, key.length, operand, operand.length);
        } finally {
            Reference.reachabilityFence(this);
        }
    }
}
