package dev.trommel.kafka;

import dev.trommel.WriteBatch;
import java.util.List;
import java.util.Objects;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.state.HeadersBytesStore;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.TimestampedBytesStore;

/** A key-value store of bytes. */
class KeyValueBytes extends BytesStore implements KeyValueStore<Bytes, byte[]> {
    KeyValueBytes(String name) {
        super(name);
    }

    /** Values have a timestamp in front. */
    static final class Timestamped extends KeyValueBytes implements TimestampedBytesStore {
        Timestamped(String name) {
            super(name);
        }
    }

    /** Values have headers and a timestamp in front. */
    static final class WithHeaders extends KeyValueBytes implements HeadersBytesStore {
        WithHeaders(String name) {
            super(name);
        }
    }

    @Override
    final byte[] restoredRow(byte[] changelogKey) {
        return RowKeys.data(changelogKey);
    }

    @Override
    final void stageMore(WriteBatch batch) {}

    @Override
    final void stageTime(WriteBatch batch) {}

    @Override
    final boolean hasMore() {
        return false;
    }

    @Override
    final void readMore(StoreRows from) {}

    private static byte[] row(Bytes key) {
        return RowKeys.data(Objects.requireNonNull(key, "key cannot be null").get());
    }

    @Override
    public final void put(Bytes key, byte[] value) {
        write(row(key), value);
    }

    @Override
    public final byte[] putIfAbsent(Bytes key, byte[] value) {
        byte[] there = get(key);
        if (there == null) {
            put(key, value);
        }
        return there;
    }

    @Override
    public final void putAll(List<KeyValue<Bytes, byte[]>> entries) {
        entries.forEach(entry -> put(entry.key, entry.value));
    }

    @Override
    public final byte[] delete(Bytes key) {
        byte[] there = get(key);
        put(key, null);
        return there;
    }

    @Override
    public final byte[] get(Bytes key) {
        return rows().get(row(key));
    }

    @Override
    public final KeyValueIterator<Bytes, byte[]> range(Bytes from, Bytes to) {
        return range(from, to, false);
    }

    @Override
    public final KeyValueIterator<Bytes, byte[]> reverseRange(Bytes from, Bytes to) {
        return range(from, to, true);
    }

    @Override
    public final KeyValueIterator<Bytes, byte[]> all() {
        return range(null, null, false);
    }

    @Override
    public final KeyValueIterator<Bytes, byte[]> reverseAll() {
        return range(null, null, true);
    }

    private KeyValueIterator<Bytes, byte[]> range(Bytes from, Bytes to, boolean reverse) {
        if (areReversed(from, to)) {
            return StateIterator.noKeys();
        }
        byte[] first = from == null ? RowKeys.DATA : row(from);
        byte[] end = to == null ? RowKeys.DATA_END : RowKeys.successor(row(to));
        return iterator(rows().range(first, end, reverse));
    }

    @Override
    public final <S extends Serializer<P>, P> KeyValueIterator<Bytes, byte[]> prefixScan(
            P prefix, S serializer) {
        Objects.requireNonNull(prefix, "prefix cannot be null");
        Objects.requireNonNull(serializer, "prefixKeySerializer cannot be null");
        byte[] first = RowKeys.data(serializer.serialize(null, prefix));
        return iterator(rows().range(first, RowKeys.afterPrefix(first), false));
    }

    private KeyValueIterator<Bytes, byte[]> iterator(RowCursor cursor) {
        return cursor == null ? StateIterator.noKeys() : new StateIterator.OfKeys(this, cursor);
    }

    @Override
    public final long approximateNumEntries() {
        return rows().approximateCount();
    }
}
