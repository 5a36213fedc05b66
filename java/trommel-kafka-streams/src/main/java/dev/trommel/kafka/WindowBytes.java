package dev.trommel.kafka;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Objects;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.TimeWindow;
import org.apache.kafka.streams.state.HeadersBytesStore;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.TimestampedBytesStore;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.streams.state.WindowStoreIterator;

/** A window store of bytes. Keys of its changelog are: key, start i64, number of duplicate i32. */
class WindowBytes extends SegmentedBytes implements WindowStore<Bytes, byte[]> {
    private static final int SUFFIX_SIZE = Long.BYTES + Integer.BYTES;

    private final boolean retainDuplicates;
    private final long windowSize;

    WindowBytes(WindowShape shape) {
        super(shape.name, shape.retention, shape.segmentInterval, SUFFIX_SIZE);
        this.retainDuplicates = shape.retainDuplicates;
        this.windowSize = shape.windowSize;
    }

    /** Values have a timestamp in front. */
    static final class Timestamped extends WindowBytes implements TimestampedBytesStore {
        Timestamped(WindowShape shape) {
            super(shape);
        }
    }

    /** Values have headers and a timestamp in front. */
    static final class WithHeaders extends WindowBytes
            implements TimestampedBytesStore, HeadersBytesStore {
        WithHeaders(WindowShape shape) {
            super(shape);
        }
    }

    private static byte[] changelogKey(byte[] key, long start, int duplicate) {
        return ByteBuffer.allocate(key.length + SUFFIX_SIZE)
                .put(key).putLong(start).putInt(duplicate).array();
    }

    private static byte[] keyBytes(Bytes key) {
        return Objects.requireNonNull(key, "key cannot be null").get();
    }

    @Override
    final long timeOf(byte[] key) {
        return ByteBuffer.wrap(key).getLong(key.length - SUFFIX_SIZE);
    }

    @Override
    final int duplicateOf(byte[] key) {
        return retainDuplicates ? ByteBuffer.wrap(key).getInt(key.length - Integer.BYTES) : 0;
    }

    @Override
    public final void put(Bytes key, byte[] value, long start) {
        byte[] bytes = keyBytes(key);
        if (value == null && retainDuplicates) {
            return; // Nobody can say which one of them.
        }
        int duplicate = retainDuplicates ? nextDuplicate() : 0;
        writeKept(changelogKey(bytes, start, duplicate), value);
    }

    @Override
    public final byte[] fetch(Bytes key, long start) {
        int duplicate = retainDuplicates ? lastDuplicate() : 0;
        return getLive(changelogKey(keyBytes(key), start, duplicate));
    }

    @Override
    public final WindowStoreIterator<byte[]> fetch(Bytes key, long from, long to) {
        return ofKey(keyBytes(key), from, to, false);
    }

    @Override
    public final WindowStoreIterator<byte[]> backwardFetch(Bytes key, long from, long to) {
        return ofKey(keyBytes(key), from, to, true);
    }

    private WindowStoreIterator<byte[]> ofKey(byte[] key, long from, long to, boolean reverse) {
        long earliest = Math.max(from, oldestLiveTime());
        long latest = Math.min(to, streamTime());
        if (earliest > latest) {
            rows();
            return StateIterator.noTimes();
        }
        byte[] end = RowKeys.successor(changelogKey(key, latest, Integer.MAX_VALUE));
        RowCursor found = between(earliest, latest, changelogKey(key, earliest, 0), end, reverse);
        return found == null ? StateIterator.noTimes()
                : new Times(this, found, key, earliest, latest);
    }

    @Override
    public final KeyValueIterator<Windowed<Bytes>, byte[]> fetch(
            Bytes keyFrom, Bytes keyTo, long from, long to) {
        return ofKeys(keyFrom, keyTo, from, to, false);
    }

    @Override
    public final KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetch(
            Bytes keyFrom, Bytes keyTo, long from, long to) {
        return ofKeys(keyFrom, keyTo, from, to, true);
    }

    @Override
    public final KeyValueIterator<Windowed<Bytes>, byte[]> all() {
        return ofKeys(null, null, 0, Long.MAX_VALUE, false);
    }

    @Override
    public final KeyValueIterator<Windowed<Bytes>, byte[]> backwardAll() {
        return ofKeys(null, null, 0, Long.MAX_VALUE, true);
    }

    @Override
    public final KeyValueIterator<Windowed<Bytes>, byte[]> fetchAll(long from, long to) {
        return ofKeys(null, null, from, to, false);
    }

    @Override
    public final KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetchAll(long from, long to) {
        return ofKeys(null, null, from, to, true);
    }

    private KeyValueIterator<Windowed<Bytes>, byte[]> ofKeys(
            Bytes keyFrom, Bytes keyTo, long from, long to, boolean reverse) {
        rows();
        long earliest = Math.max(from, oldestLiveTime());
        long latest = Math.min(to, streamTime());
        if (areReversed(keyFrom, keyTo) || earliest > latest) {
            return StateIterator.noWindows();
        }
        byte[] first = keyFrom == null ? null : keyFrom.get();
        byte[] last = keyTo == null ? null : keyTo.get();
        byte[] end = endOf(last, changelogKey(new byte[0], latest, Integer.MAX_VALUE));
        RowCursor found = between(earliest, latest, first, end, reverse);
        return found == null ? StateIterator.noWindows()
                : new Windows(this, found, keyFrom, keyTo, earliest, latest);
    }

    private Windowed<Bytes> windowed(Bytes key, long start) {
        long end = start + windowSize;
        return new Windowed<>(key, new TimeWindow(start, end < 0 ? Long.MAX_VALUE : end));
    }

    /** Starts of windows of one key. */
    private static final class Times extends StateIterator<Long>
            implements WindowStoreIterator<byte[]> {
        private final WindowBytes store;
        private final byte[] key;
        private final long earliest;
        private final long latest;

        Times(WindowBytes store, RowCursor cursor, byte[] key, long earliest, long latest) {
            super(store, cursor);
            this.store = store;
            this.key = key;
            this.earliest = earliest;
            this.latest = latest;
        }

        @Override
        Long keyOf(byte[] row) {
            byte[] found = RowKeys.segmentKey(row);
            long start = store.timeOf(found);
            boolean isAsked = found.length == key.length + SUFFIX_SIZE
                    && Arrays.equals(found, 0, key.length, key, 0, key.length)
                    && start >= earliest && start <= latest;
            return isAsked ? start : null;
        }
    }

    /** Windows of several keys. */
    private static final class Windows extends StateIterator<Windowed<Bytes>> {
        private final WindowBytes store;
        private final Bytes keyFrom;
        private final Bytes keyTo;
        private final long earliest;
        private final long latest;

        Windows(WindowBytes store, RowCursor cursor, Bytes keyFrom, Bytes keyTo, long earliest,
                long latest) {
            super(store, cursor);
            this.store = store;
            this.keyFrom = keyFrom;
            this.keyTo = keyTo;
            this.earliest = earliest;
            this.latest = latest;
        }

        @Override
        Windowed<Bytes> keyOf(byte[] row) {
            byte[] found = RowKeys.segmentKey(row);
            long start = store.timeOf(found);
            Bytes key = Bytes.wrap(store.keyOf(found));
            boolean isAsked = start >= earliest && start <= latest
                    && (keyFrom == null || key.compareTo(keyFrom) >= 0)
                    && (keyTo == null || key.compareTo(keyTo) <= 0);
            return isAsked ? store.windowed(key, start) : null;
        }
    }
}
