package dev.trommel.kafka;

import java.util.NoSuchElementException;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.WindowStoreIterator;

/**
 * What stores give for ranges. Once exhausted it holds nothing of the engine; {@link #close} frees
 * what it holds before.
 */
abstract class StateIterator<K> implements KeyValueIterator<K, byte[]> {
    private final BytesStore store;
    private RowCursor cursor;
    private KeyValue<K, byte[]> next;
    private boolean closed;

    StateIterator(BytesStore store, RowCursor cursor) {
        this.store = store;
        this.cursor = cursor;
    }

    /** What the key of a row is for the caller; null: the row is not asked for. */
    abstract K keyOf(byte[] row);

    @Override
    public final boolean hasNext() {
        if (closed || !store.isOpen()) {
            throw new InvalidStateStoreException("This iterator of store " + store.name()
                    + " is closed, or its store is.");
        }
        while (next == null && cursor != null) {
            if (cursor.advance()) {
                K key = keyOf(cursor.key);
                next = key == null ? null : KeyValue.pair(key, cursor.value);
            } else {
                free();
            }
        }
        return next != null;
    }

    @Override
    public final KeyValue<K, byte[]> next() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        KeyValue<K, byte[]> row = next;
        next = null;
        return row;
    }

    @Override
    public final K peekNextKey() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        return next.key;
    }

    @Override
    public final void close() {
        closed = true;
        next = null;
        free();
    }

    private void free() {
        if (cursor != null) {
            cursor.close();
            cursor = null;
        }
    }

    /** Rows of key-value stores. */
    static final class OfKeys extends StateIterator<Bytes> {
        OfKeys(BytesStore store, RowCursor cursor) {
            super(store, cursor);
        }

        @Override
        Bytes keyOf(byte[] row) {
            return Bytes.wrap(RowKeys.dataKey(row));
        }
    }

    private static final Empty<Bytes> NO_KEYS = new Empty<>();
    private static final Empty<Windowed<Bytes>> NO_WINDOWS = new Empty<>();
    private static final NoTimes NO_TIMES = new NoTimes();

    static KeyValueIterator<Bytes, byte[]> noKeys() {
        return NO_KEYS;
    }

    static KeyValueIterator<Windowed<Bytes>, byte[]> noWindows() {
        return NO_WINDOWS;
    }

    static WindowStoreIterator<byte[]> noTimes() {
        return NO_TIMES;
    }

    /** Shared by all who find nothing. */
    private static class Empty<K> implements KeyValueIterator<K, byte[]> {
        @Override
        public boolean hasNext() {
            return false;
        }

        @Override
        public KeyValue<K, byte[]> next() {
            throw new NoSuchElementException();
        }

        @Override
        public K peekNextKey() {
            throw new NoSuchElementException();
        }

        @Override
        public void close() {}
    }

    private static final class NoTimes extends Empty<Long> implements WindowStoreIterator<byte[]> {}
}
