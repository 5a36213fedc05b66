package dev.trommel;

import java.util.Arrays;
import java.util.Objects;

/**
 * A range of keys, in the order of their unsigned bytes. Methods that take two keys mean {@link
 * #of}; the others are here. It never changes, and threads may share it.
 */
public final class Bounds {
    private static final Bounds ALL = new Bounds(null, null);

    /** The first key that may be in it; null: no bound. */
    final byte[] from;

    /** The first key behind it; null: no bound. */
    final byte[] to;

    private Bounds(byte[] from, byte[] to) {
        this.from = from;
        this.to = to;
    }

    /**
     * All keys.
     *
     * @return the range
     */
    public static Bounds all() {
        return ALL;
    }

    /**
     * The keys from one on and before another.
     *
     * @param from the first key; null: from the begin
     * @param to the key behind the last one; null: to the end
     * @return the range; without keys if it ends before it begins
     */
    public static Bounds of(byte[] from, byte[] to) {
        return new Bounds(copy(from), copy(to));
    }

    /**
     * The keys from one to another, with both.
     *
     * @param from the first key
     * @param to the last key
     * @return the range
     */
    public static Bounds closed(byte[] from, byte[] to) {
        Objects.requireNonNull(from, "from");
        Objects.requireNonNull(to, "to");
        return new Bounds(from.clone(), after(to));
    }

    /**
     * The keys between two others, without both.
     *
     * @param from the key before the first one
     * @param to the key behind the last one
     * @return the range
     */
    public static Bounds between(byte[] from, byte[] to) {
        Objects.requireNonNull(from, "from");
        Objects.requireNonNull(to, "to");
        return new Bounds(after(from), to.clone());
    }

    /**
     * The keys from one on.
     *
     * @param from the first key
     * @return the range
     */
    public static Bounds atLeast(byte[] from) {
        return new Bounds(Objects.requireNonNull(from, "from").clone(), null);
    }

    /**
     * The keys behind one.
     *
     * @param from the key before the first one
     * @return the range
     */
    public static Bounds greaterThan(byte[] from) {
        return new Bounds(after(Objects.requireNonNull(from, "from")), null);
    }

    /**
     * The keys up to one, and that one.
     *
     * @param to the last key
     * @return the range
     */
    public static Bounds atMost(byte[] to) {
        return new Bounds(null, after(Objects.requireNonNull(to, "to")));
    }

    /**
     * The keys before one.
     *
     * @param to the key behind the last one
     * @return the range
     */
    public static Bounds lessThan(byte[] to) {
        return new Bounds(null, Objects.requireNonNull(to, "to").clone());
    }

    /**
     * The keys that begin with some bytes.
     *
     * @param prefix the bytes; none of them: all keys
     * @return the range
     */
    public static Bounds prefix(byte[] prefix) {
        Objects.requireNonNull(prefix, "prefix");
        return new Bounds(prefix.clone(), prefixEnd(prefix));
    }

    /** The first key behind all that begin so; null: there is none. */
    static byte[] prefixEnd(byte[] prefix) {
        // The last byte that has one above it grows; what is behind it goes.
        for (int last = prefix.length - 1; last >= 0; last--) {
            if (prefix[last] != (byte) 0xff) {
                byte[] end = Arrays.copyOf(prefix, last + 1);
                end[last]++;
                return end;
            }
        }
        return null;
    }

    /** The first key behind one: that key and a zero. */
    private static byte[] after(byte[] key) {
        return Arrays.copyOf(key, key.length + 1);
    }

    private static byte[] copy(byte[] key) {
        return key == null ? null : key.clone();
    }
}
