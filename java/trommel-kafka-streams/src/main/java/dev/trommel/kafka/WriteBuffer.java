package dev.trommel.kafka;

import java.util.Arrays;
import java.util.Iterator;
import java.util.Map;
import java.util.NavigableMap;
import java.util.concurrent.ConcurrentSkipListMap;

/**
 * Rows that are written and not committed, in order of their keys. One thread writes; any thread
 * reads meanwhile. Invariant: what was committed is never changed any more, since a commit puts a
 * new buffer in this one's place: whoever reads goes on with the old one.
 */
final class WriteBuffer {
    /** Stands for a deleted row; told by identity, as an empty value is a value. */
    static final byte[] DELETED = new byte[0];

    /** Bytes of an entry in memory beside its key and value, about. */
    private static final int ENTRY_BYTES = 96;

    private final ConcurrentSkipListMap<byte[], byte[]> rows =
            new ConcurrentSkipListMap<>(Arrays::compareUnsigned);
    private volatile long bytes;
    private volatile boolean written;

    /** Sets a row; null deletes it. */
    void put(byte[] row, byte[] value) {
        byte[] kept = value == null ? DELETED : value;
        byte[] old = rows.put(row, kept);
        long change = kept.length - (old == null ? -(long) row.length - ENTRY_BYTES : old.length);
        bytes = bytes + change;
        written = true;
    }

    /** The value of a row, {@link #DELETED}, or null: nothing is known of it here. */
    byte[] get(byte[] row) {
        return written ? rows.get(row) : null;
    }

    boolean isEmpty() {
        return !written || rows.isEmpty();
    }

    long bytes() {
        return bytes;
    }

    int size() {
        return rows.size();
    }

    /** Forgets rows below a key: nobody is to see them. */
    void forgetBelow(byte[] row) {
        Iterator<Map.Entry<byte[], byte[]>> below = rows.headMap(row).entrySet().iterator();
        while (below.hasNext()) {
            Map.Entry<byte[], byte[]> gone = below.next();
            bytes = bytes - gone.getKey().length - gone.getValue().length - ENTRY_BYTES;
            below.remove();
        }
    }

    /** All rows in order. */
    Iterable<Map.Entry<byte[], byte[]>> all() {
        return rows.entrySet();
    }

    /** Rows of a range, its end not included; null if there are none. */
    Iterator<Map.Entry<byte[], byte[]>> range(byte[] from, byte[] to, boolean reverse) {
        if (isEmpty() || Arrays.compareUnsigned(from, to) >= 0) {
            return null;
        }
        NavigableMap<byte[], byte[]> within = rows.subMap(from, true, to, false);
        NavigableMap<byte[], byte[]> ordered = reverse ? within.descendingMap() : within;
        Iterator<Map.Entry<byte[], byte[]>> entries = ordered.entrySet().iterator();
        return entries.hasNext() ? entries : null;
    }
}
