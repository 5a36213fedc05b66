package dev.trommel;

import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Collections;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.UnaryOperator;

/**
 * A key space that is written and read: a {@link Keyspace}, or a {@link Store}, which is its own
 * key space "default".
 *
 * <p>When a write returns, every reader sees it, and the end of the process does not undo it. What
 * the end of the machine may undo, the option {@code sync} says. Writes that are longer than a
 * store accepts throw {@link KeyTooLongException} or {@link ValueTooLongException}, and write
 * nothing.
 *
 * <p>Threads: any, at once.
 */
public abstract sealed class Writable extends Readable permits Store, Keyspace {
    Writable(long handle) {
        super(handle);
    }

    /**
     * Its name, as it is now.
     *
     * @return the name
     */
    public final String name() {
        try {
            return Packed.text(Native.keyspaceName(handle));
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
     * Sets the value of a key. Of both buffers what is between position and limit counts, and
     * neither is changed. If both are direct, nothing is allocated.
     *
     * @param key the key
     * @param value the value
     */
    public final void put(ByteBuffer key, ByteBuffer value) {
        doPut(key, value);
    }

    /**
     * Sets the value of a key for a while. After it the key has no value.
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
     * Removes all keys of a range, in one write however many they are.
     *
     * @param from the first key
     * @param to the key behind the last one
     * @throws InvertedRangeException the range ends before it begins
     */
    public final void deleteRange(byte[] from, byte[] to) {
        doDeleteRange(from, to);
    }

    /**
     * Merges an operand into the value of a key, as the option {@code merge_operator} says. Nothing
     * is read.
     *
     * @param key the key
     * @param operand what is merged
     * @throws NoMergeOperatorException the key space was opened without one
     */
    public final void merge(byte[] key, byte[] operand) {
        doMerge(key, operand);
    }

    /**
     * Sets the value of a key that has none.
     *
     * @param key the key
     * @param value the value
     * @return null: it was set; else what the key has, and nothing was written
     */
    public final byte[] putIfAbsent(byte[] key, byte[] value) {
        Objects.requireNonNull(key, "key");
        Objects.requireNonNull(value, "value");
        try {
            return Native.putIfAbsent(handle, key, key.length, value, value.length);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Sets or removes the value of a key, if it has the one that is expected.
     *
     * @param key the key
     * @param expected what the key is to have; null: no value
     * @param value what it gets; null: it is removed
     * @return whether it was done
     */
    public final boolean compareAndSwap(byte[] key, byte[] expected, byte[] value) {
        Objects.requireNonNull(key, "key");
        int expectedLength = Arguments.length(expected);
        int valueLength = Arguments.length(value);
        try {
            return Native.compareAndSwap(
                    handle, key, key.length, expected, expectedLength, value, valueLength);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Adds to a counter: a signed number of 8 bytes, the low one first. No value counts as 0.
     *
     * @param key the key
     * @param add what is added, with overflow
     * @return the number before
     * @throws NoCounterException the value has another length
     */
    public final long fetchAdd(byte[] key, long add) {
        Objects.requireNonNull(key, "key");
        try {
            return Native.fetchAdd(handle, key, key.length, add);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Reads a key and writes what a function makes of its value, if nobody else has written it
     * between; else once more. The function may be called several times, and may use the store.
     *
     * @param key the key
     * @param change gets the value, or null if there is none; gives the new one, or null to remove
     *     the key; or the array that it got, to leave it
     * @return the value before; null if there was none
     */
    public final byte[] update(byte[] key, UnaryOperator<byte[]> change) {
        Objects.requireNonNull(change, "change");
        while (true) {
            byte[] found = get(key);
            byte[] given = found == null ? null : found.clone();
            byte[] made = change.apply(given);
            if (made == given || compareAndSwap(key, found, made)) {
                return found;
            }
            Thread.yield();
        }
    }

    /**
     * Writes rows whose keys ascend as one sorted run, past log and memory. It is all or nothing,
     * and durable when this returns. Other writes wait meanwhile; so the iterator must not use this
     * store.
     *
     * @param rows the rows
     * @return how many they were
     * @throws UnsortedException keys do not ascend; nothing was written, as after an exception of
     *     the iterator, which is thrown on
     */
    public final long ingest(Iterator<Row> rows) {
        Objects.requireNonNull(rows, "rows");
        try {
            return Native.ingest(handle, new RowFeeder(rows));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Writes what a batch puts and deletes as one sorted run, as {@link #ingest} does, in whatever
     * order it has them: of two writes of one key the later one counts. For large batches, of some
     * MiB. All that is put is there at once, and durable when this returns. What is deleted is
     * written before it, by itself: a crash may come between. The batch is empty then; after an
     * exception it is as it was.
     *
     * @param batch puts and deletes, all of them into this key space
     * @return how many keys were put
     * @throws IllegalArgumentException it has other writes, or conditions, or writes into another
     *     key space; nothing was written
     */
    public final long ingestBatch(WriteBatch batch) {
        Objects.requireNonNull(batch, "batch").checkInto(this);
        Packed writes = batch.writes();
        try {
            long count = Native.ingestBatch(handle, writes.bytes(), writes.length());
            batch.clear();
            return count;
        } finally {
            Reference.reachabilityFence(batch);
            Reference.reachabilityFence(this);
        }
    }

    /**
     * What the store has done, and what it holds of this key space. The numbers are {@link Long} or
     * {@link Double}, by name; one that there is several times is a map by its label. Under {@code
     * failure} is why background work fails, or null.
     *
     * @return the numbers, in a map that cannot be changed
     */
    public final Map<String, Object> stats() {
        try {
            return statsOf(Packed.texts(Native.stats(handle)));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    private static Map<String, Object> statsOf(List<String> texts) {
        Map<String, Object> all = new LinkedHashMap<>();
        Map<String, Map<String, Object>> labelled = new LinkedHashMap<>();
        for (int at = 1; at < texts.size(); at += 3) {
            String name = texts.get(at);
            String label = texts.get(at + 1);
            Object number = numberOf(texts.get(at + 2));
            if (label.isEmpty()) {
                all.put(name, number);
            } else {
                labelled.computeIfAbsent(name, it -> new LinkedHashMap<>()).put(label, number);
            }
        }
        labelled.forEach((name, map) -> all.put(name, Collections.unmodifiableMap(map)));
        all.put("failure", texts.get(0).isEmpty() ? null : texts.get(0));
        return Collections.unmodifiableMap(all);
    }

    private static Object numberOf(String text) {
        return switch (text) {
            case "inf" -> Double.POSITIVE_INFINITY;
            case "-inf" -> Double.NEGATIVE_INFINITY;
            default ->
                    text.chars().allMatch(Character::isDigit)
                            ? (Object) Long.parseUnsignedLong(text)
                            : (Object) Double.valueOf(text);
        };
    }
}
