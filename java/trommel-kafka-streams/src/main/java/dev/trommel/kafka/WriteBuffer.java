package dev.trommel.kafka;

import java.util.Arrays;
import java.util.Iterator;
import java.util.Map;
import java.util.NavigableMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.function.BiConsumer;

/**
 * Rows that are written and not committed, in order of their keys. One thread writes; any thread
 * reads meanwhile. Invariant: what was committed is never changed any more, since a commit puts a
 * new buffer in this one's place: whoever reads goes on with the old one.
 */
final class WriteBuffer {
    /** Stands for a deleted row; told by identity, as an empty value is a value. */
    static final byte[] DELETED = new byte[0];

    /** Bytes of an entry in memory beside its key and value, about. */
    private static final int ENTRY_BYTES = 120;

    private final ConcurrentSkipListMap<byte[], Entry> rows =
            new ConcurrentSkipListMap<>(Arrays::compareUnsigned);
    private volatile long bytes;
    /** Counts puts: a cursor leaves out rows that came after it was made. */
    private volatile long puts;

    /** What is written of a row, which is known here since that put. */
    private static final class Entry {
        final long knownSince;
        volatile byte[] value;

        Entry(byte[] value, long put) {
            this.knownSince = put;
            this.value = value;
        }
    }

    /** Sets a row; null deletes it. */
    void put(byte[] row, byte[] value) {
        byte[] kept = value == null ? DELETED : value;
        puts = puts + 1;
        Entry old = rows.putIfAbsent(row, new Entry(kept, puts));
        if (old == null) {
            bytes = bytes + row.length + kept.length + ENTRY_BYTES;
        } else {
            bytes = bytes + kept.length - old.value.length;
            old.value = kept;
        }
    }

    /** The value of a row, {@link #DELETED}, or null: nothing is known of it here. */
    byte[] get(byte[] row) {
        Entry entry = puts == 0 ? null : rows.get(row);
        return entry == null ? null : entry.value;
    }

    boolean isEmpty() {
        return puts == 0 || rows.isEmpty();
    }

    long bytes() {
        return bytes;
    }

    int size() {
        return rows.size();
    }

    /** Forgets rows below a key: nobody is to see them. */
    void forgetBelow(byte[] row) {
        Iterator<Map.Entry<byte[], Entry>> below = rows.headMap(row).entrySet().iterator();
        while (below.hasNext()) {
            Map.Entry<byte[], Entry> gone = below.next();
            bytes = bytes - gone.getKey().length - gone.getValue().value.length - ENTRY_BYTES;
            below.remove();
        }
    }

    /** Passes on all rows in order, with their values or {@link #DELETED}. */
    void forEach(BiConsumer<byte[], byte[]> each) {
        rows.forEach((row, entry) -> each.accept(row, entry.value));
    }

    /** Rows of a range, its end not included, at the first of them; null if there are none. */
    RowCursor range(byte[] from, byte[] to, boolean reverse) {
        if (isEmpty() || Arrays.compareUnsigned(from, to) >= 0) {
            return null;
        }
        long made = puts;
        NavigableMap<byte[], Entry> within = rows.subMap(from, true, to, false);
        NavigableMap<byte[], Entry> ordered = reverse ? within.descendingMap() : within;
        RowCursor cursor = new Cursor(ordered.entrySet().iterator(), made);
        return cursor.advance() ? cursor : null;
    }

    /** Rows that were known when it was made: a loop over them may put others. */
    private static final class Cursor extends RowCursor {
        private final Iterator<Map.Entry<byte[], Entry>> entries;
        private final long made;

        Cursor(Iterator<Map.Entry<byte[], Entry>> entries, long made) {
            this.entries = entries;
            this.made = made;
        }

        @Override
        boolean advance() {
            while (entries.hasNext()) {
                Map.Entry<byte[], Entry> row = entries.next();
                if (row.getValue().knownSince <= made) {
                    key = row.getKey();
                    value = row.getValue().value;
                    return true;
                }
            }
            return false;
        }

        @Override
        void close() {}
    }
}
