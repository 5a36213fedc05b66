package dev.trommel;

import java.lang.ref.Reference;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;

/**
 * A filter alone, for keys and ranges: it says "surely not", or "maybe". False is a proof that no
 * such key was added.
 *
 * <p>It needs no closing: its memory is freed when it cannot be reached any more. Threads: any, at
 * once.
 */
public final class RangeFilter {
    /** The kind that is built if none is named. */
    private static final String KIND = "cell";

    private static final int PIECE_BYTES = 256 << 10;

    private final long handle;

    private RangeFilter(long handle) {
        this.handle = handle;
        Handles.free(this, handle, Native::freeFilter);
    }

    /**
     * A filter of keys that ascend.
     *
     * @param sortedKeys the keys; of equal ones one counts
     * @param bitsPerKey its memory, 1 to 64; more: fewer wrong "maybe"
     * @return the filter
     * @throws UnsortedException keys do not ascend
     * @throws IllegalArgumentException the bits make no sense
     */
    public static RangeFilter build(byte[][] sortedKeys, double bitsPerKey) {
        return build(
                Arrays.asList(Objects.requireNonNull(sortedKeys, "sortedKeys")), bitsPerKey, KIND);
    }

    /**
     * A filter of keys that ascend.
     *
     * @param sortedKeys the keys; of equal ones one counts
     * @param bitsPerKey its memory, 1 to 64; more: fewer wrong "maybe"
     * @return the filter
     * @throws UnsortedException keys do not ascend
     * @throws IllegalArgumentException the bits make no sense
     */
    public static RangeFilter build(Iterable<byte[]> sortedKeys, double bitsPerKey) {
        return build(sortedKeys, bitsPerKey, KIND);
    }

    /**
     * A filter of a kind.
     *
     * @param sortedKeys the keys, which ascend; of equal ones one counts
     * @param bitsPerKey its memory, 1 to 64; more: fewer wrong "maybe"
     * @param kind one of {@link #kinds}
     * @return the filter
     * @throws UnsortedException keys do not ascend
     * @throws IllegalArgumentException the bits make no sense, or there is no such kind
     */
    public static RangeFilter build(
            Iterable<byte[]> sortedKeys, double bitsPerKey, String kind) {
        Objects.requireNonNull(sortedKeys, "sortedKeys");
        byte[] named = Packed.bytes(Objects.requireNonNull(kind, "kind"));
        long builder = Native.filterBuilder(named, named.length, bitsPerKey);
        try {
            Packed piece = new Packed();
            for (byte[] key : sortedKeys) {
                Objects.requireNonNull(key, "sortedKeys: one of them is null");
                if (!piece.add(key)) {
                    throw new IllegalArgumentException("sortedKeys: one is too long");
                }
                if (piece.length() >= PIECE_BYTES) {
                    Native.filterAdd(builder, piece.bytes(), piece.length());
                    piece.clear();
                }
            }
            Native.filterAdd(builder, piece.bytes(), piece.length());
            return new RangeFilter(Native.filterBuild(builder));
        } finally {
            Native.freeFilterBuilder(builder);
        }
    }

    /**
     * The filter of bytes that {@link #toBytes} has made, here or in the package for Python.
     *
     * @param bytes the bytes
     * @return the filter
     * @throws CorruptException they are others
     */
    public static RangeFilter fromBytes(byte[] bytes) {
        Objects.requireNonNull(bytes, "bytes");
        return new RangeFilter(Native.filterOf(bytes, bytes.length));
    }

    /**
     * The names of all kinds of filters.
     *
     * @return the names
     */
    public static List<String> kinds() {
        return List.copyOf(Packed.texts(Native.filterKinds()));
    }

    /**
     * Its bytes, with a checksum.
     *
     * @return the bytes
     */
    public byte[] toBytes() {
        try {
            return Native.filterBytes(handle);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * The name of its kind.
     *
     * @return the name
     */
    public String kind() {
        try {
            return Packed.text(Native.filterKind(handle));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Whether it answers for ranges; else it says "maybe" to each of more than one key.
     *
     * @return whether
     */
    public boolean knowsRanges() {
        try {
            return Native.filterKnowsRanges(handle);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Its size in bytes.
     *
     * @return bytes
     */
    public long sizeBytes() {
        try {
            return Native.filterSize(handle);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Whether a key may have been added.
     *
     * @param key the key
     * @return false: it was not
     */
    public boolean mayContain(byte[] key) {
        Objects.requireNonNull(key, "key");
        try {
            return Native.filterMayContain(handle, key, key.length);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Whether a key of a range may have been added.
     *
     * @param from the first key; null: from the begin
     * @param to the key behind the last one, which may count, too; null: to the end
     * @return false: none was
     */
    public boolean mayContainRange(byte[] from, byte[] to) {
        int fromLength = Arguments.length(from);
        int toLength = Arguments.length(to);
        try {
            return Native.filterMayContainRange(handle, from, fromLength, to, toLength);
        } finally {
            Reference.reachabilityFence(this);
        }
    }
}
