package dev.trommel;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/**
 * Writes that become visible together, and survive a crash together or not at all. {@link
 * Store#write} writes it. Of two writes of one key the later one counts.
 *
 * <p>A batch is bytes in memory of Java: adding to it calls nothing native, and writing it crosses
 * once. Writes go into the key space that they name, else into the default one. They throw {@link
 * IllegalArgumentException} if the batch becomes longer than an array can be, and leave it as it
 * was.
 *
 * <p>Threads: one at a time.
 */
public final class WriteBatch {
    private static final byte PUT = 1;
    private static final byte DELETE = 2;
    private static final byte DELETE_RANGE = 3;
    private static final byte PUT_FOR = 4;
    private static final byte MERGE = 5;
    private static final byte INTO_KEYSPACE = 6;
    private static final byte ONLY_IF = 7;
    private static final byte ONLY_IF_ABSENT = 8;

    private static final int HEAD_BYTES = 1 + 2 * Packed.LENGTH_BYTES;
    /** Memory that is kept for the next writes, if nothing else is said. */
    private static final int KEPT_BYTES = 4 << 20;

    private static final long NANOS_A_SECOND = 1_000_000_000L;
    /** A lifetime without end. */
    private static final long FOR_EVER = -1;

    private static final byte[] NONE = {};

    private final Packed writes = new Packed();
    private final List<Writable> keyspaces = new ArrayList<>();
    /** The store that key spaces were named of; null: none was named. */
    private Store store;
    /** Where the next write goes; null: into the default key space, named or not. */
    private Writable into;
    private int count;

    private final int keptBytesMax;

    /** A batch without writes. */
    public WriteBatch() {
        this(KEPT_BYTES);
    }

    /**
     * A batch without writes.
     *
     * @param keptBytesMax so much memory at most is kept for the next writes when the batch was
     *     written or cleared; some MiB if nothing is said
     * @throws IllegalArgumentException the number is negative
     */
    public WriteBatch(int keptBytesMax) {
        if (keptBytesMax < 0) {
            throw new IllegalArgumentException("keptBytesMax: " + keptBytesMax);
        }
        this.keptBytesMax = keptBytesMax;
    }

    /**
     * Sets the value of a key.
     *
     * @param key the key
     * @param value the value
     * @return this batch
     */
    public WriteBatch put(byte[] key, byte[] value) {
        return put(null, key, value);
    }

    /**
     * Sets the value of a key.
     *
     * @param keyspace where; null: in the default key space
     * @param key the key
     * @param value the value
     * @return this batch
     * @throws IllegalArgumentException the key space is not of the store that the others are of
     */
    public WriteBatch put(Writable keyspace, byte[] key, byte[] value) {
        Objects.requireNonNull(value, "value");
        return add(PUT, keyspace, key, value);
    }

    /**
     * Sets the value of a key for so long after the batch was written.
     *
     * @param key the key
     * @param value the value
     * @param ttl how long; more than 292 years are for ever
     * @return this batch
     * @throws IllegalArgumentException the duration is negative
     */
    public WriteBatch put(byte[] key, byte[] value, Duration ttl) {
        return put(null, key, value, ttl);
    }

    /**
     * Sets the value of a key for so long after the batch was written.
     *
     * @param keyspace where; null: in the default key space
     * @param key the key
     * @param value the value
     * @param ttl how long; more than 292 years are for ever
     * @return this batch
     * @throws IllegalArgumentException the duration is negative
     */
    public WriteBatch put(Writable keyspace, byte[] key, byte[] value, Duration ttl) {
        Objects.requireNonNull(key, "key");
        Objects.requireNonNull(value, "value");
        Arguments.ttl(ttl);
        boolean isLong = ttl.getSeconds() >= Long.MAX_VALUE / NANOS_A_SECOND;
        begin(PUT_FOR, keyspace, key, (long) Long.BYTES + value.length);
        writes.putLong(isLong ? FOR_EVER : ttl.toNanos());
        writes.putBytes(value);
        count++;
        return this;
    }

    /**
     * Removes a key.
     *
     * @param key the key
     * @return this batch
     */
    public WriteBatch delete(byte[] key) {
        return delete(null, key);
    }

    /**
     * Removes a key.
     *
     * @param keyspace where; null: in the default key space
     * @param key the key
     * @return this batch
     */
    public WriteBatch delete(Writable keyspace, byte[] key) {
        return add(DELETE, keyspace, key, NONE);
    }

    /**
     * Removes all keys of a range. If it ends before it begins, writing the batch is an error.
     *
     * @param from the first key
     * @param to the key behind the last one
     * @return this batch
     */
    public WriteBatch deleteRange(byte[] from, byte[] to) {
        return deleteRange(null, from, to);
    }

    /**
     * Removes all keys of a range. If it ends before it begins, writing the batch is an error.
     *
     * @param keyspace where; null: in the default key space
     * @param from the first key
     * @param to the key behind the last one
     * @return this batch
     */
    public WriteBatch deleteRange(Writable keyspace, byte[] from, byte[] to) {
        Objects.requireNonNull(from, "from");
        Objects.requireNonNull(to, "to");
        return add(DELETE_RANGE, keyspace, from, to);
    }

    /**
     * Merges an operand into the value of a key.
     *
     * @param key the key
     * @param operand what is merged
     * @return this batch
     */
    public WriteBatch merge(byte[] key, byte[] operand) {
        return merge(null, key, operand);
    }

    /**
     * Merges an operand into the value of a key.
     *
     * @param keyspace where; null: in the default key space
     * @param key the key
     * @param operand what is merged
     * @return this batch
     */
    public WriteBatch merge(Writable keyspace, byte[] key, byte[] operand) {
        Objects.requireNonNull(operand, "operand");
        return add(MERGE, keyspace, key, operand);
    }

    /**
     * The batch is written only if the key then has this value; else writing it throws {@link
     * ConflictException}, and nothing is written. What the batch itself writes does not count.
     *
     * @param key the key
     * @param value the value; null: the key has none
     * @return this batch
     */
    public WriteBatch onlyIf(byte[] key, byte[] value) {
        return onlyIf(null, key, value);
    }

    /**
     * As {@link #onlyIf(byte[], byte[])}, in a key space.
     *
     * @param keyspace where; null: in the default key space
     * @param key the key
     * @param value the value; null: the key has none
     * @return this batch
     */
    public WriteBatch onlyIf(Writable keyspace, byte[] key, byte[] value) {
        Objects.requireNonNull(key, "key");
        byte tag = value == null ? ONLY_IF_ABSENT : ONLY_IF;
        byte[] expected = value == null ? NONE : value;
        begin(tag, keyspace, key, expected.length);
        writes.putBytes(expected);
        return this;
    }

    /**
     * How many writes it has.
     *
     * @return how many; conditions do not count
     */
    public int size() {
        return count;
    }

    /**
     * Whether it has neither writes nor conditions.
     *
     * @return whether
     */
    public boolean isEmpty() {
        return writes.length() == 0;
    }

    /**
     * How long it is, in bytes: keys, values, and some for each write.
     *
     * @return bytes
     */
    public int sizeBytes() {
        return writes.length();
    }

    /** Forgets everything, and keeps some memory for the next writes. */
    public void clear() {
        writes.clear();
        writes.trim(keptBytesMax);
        keyspaces.clear();
        store = null;
        into = null;
        count = 0;
    }

    private WriteBatch add(byte tag, Writable keyspace, byte[] key, byte[] value) {
        Objects.requireNonNull(key, "key");
        begin(tag, keyspace, key, value.length);
        writes.putBytes(value);
        count++;
        return this;
    }

    /** Begins a write: all but its value, for which there is room then. */
    private void begin(byte tag, Writable keyspace, byte[] key, long valueLength) {
        Store named = keyspace == null ? store : keyspace.store();
        if (store != null && store != named) {
            throw new IllegalArgumentException(
                    "keyspace: it is of another store than those before it");
        }
        long needed = HEAD_BYTES + key.length + valueLength;
        if (valueLength > Packed.ARRAY_MAX
                || !writes.hasRoom(needed + HEAD_BYTES + Packed.LENGTH_BYTES)) {
            throw new IllegalArgumentException(
                    "the batch is longer than an array can be: write it in parts");
        }
        store = named;
        Writable where = keyspace == store ? null : keyspace;
        if (where != into) {
            head(INTO_KEYSPACE, NONE, Packed.LENGTH_BYTES);
            writes.putInt(keyspaces.size());
            keyspaces.add(where == null ? store : where);
            into = where;
        }
        head(tag, key, (int) valueLength);
    }

    private void head(byte tag, byte[] key, int valueLength) {
        writes.putByte(tag);
        writes.putInt(key.length);
        writes.putInt(valueLength);
        writes.putBytes(key);
    }

    Packed writes() {
        return writes;
    }

    void checkStore(Store target) {
        if (store != null && store != target) {
            throw new IllegalArgumentException(
                    "batch: it writes into a key space of another store, or of another opening");
        }
    }

    /** An error unless all writes go into this key space. */
    void checkInto(Writable keyspace) {
        checkStore(keyspace.store());
        boolean isDefault = keyspace == keyspace.store();
        boolean isAll = isDefault
                ? keyspaces.isEmpty()
                : keyspaces.size() == 1
                        && keyspaces.get(0) == keyspace
                        && writes.bytes()[0] == INTO_KEYSPACE;
        if (!isAll && !isEmpty()) {
            throw new IllegalArgumentException(
                    "batch: it writes into another key space than " + keyspace.name());
        }
    }

    /** The handles of the key spaces that it names; null if it names none. */
    long[] keyspaces() {
        return keyspaces.isEmpty()
                ? null
                : keyspaces.stream().mapToLong(keyspace -> keyspace.handle).toArray();
    }
}
