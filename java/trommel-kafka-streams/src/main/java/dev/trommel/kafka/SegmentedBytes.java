package dev.trommel.kafka;

import dev.trommel.WriteBatch;
import java.nio.ByteBuffer;
import java.util.Arrays;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.streams.StreamsMetrics;

/**
 * A store whose rows have a time, and go when they are older than the retention.
 *
 * <pre>
 * segment  0 . . . . 1 . . . . 2 . . . . 3     each so many milliseconds
 *          gone      | hidden | live     |  stream time
 *                    |        stream time - retention + 1
 *                    the oldest that is kept; those before it go with one deletion of a range
 * </pre>
 *
 * <p>Invariant: when a segment is deleted, no read gives its rows any more.
 */
abstract class SegmentedBytes extends BytesStore {
    private static final int TIME_SIZE = Long.BYTES + Integer.BYTES;

    private final long retention;
    private final long segmentInterval;
    private final int suffixSize;
    private volatile long streamTime = -1;
    private long oldestSegment;
    private int duplicate;
    private long storedTime;
    private int storedDuplicate;
    private Sensor dropped;

    SegmentedBytes(String name, long retention, long segmentInterval, int suffixSize) {
        super(name);
        this.retention = retention;
        this.segmentInterval = segmentInterval;
        this.suffixSize = suffixSize;
    }

    /** The time of a key of the changelog, by which its segment goes. */
    abstract long timeOf(byte[] key);

    /** The number of the last duplicate that a key of the changelog may be. */
    abstract int duplicateOf(byte[] key);

    @Override
    final void readMore(StoreRows from) {
        byte[] stored = from.meta(RowKeys.TIME);
        streamTime = stored == null ? -1 : ByteBuffer.wrap(stored).getLong();
        duplicate = stored == null ? 0 : ByteBuffer.wrap(stored).getInt(Long.BYTES);
        storedTime = streamTime;
        storedDuplicate = duplicate;
        oldestSegment = Math.max(0, from.firstSegment());
    }

    @Override
    final void onOpen() {
        StreamsMetrics metrics = context().metrics();
        dropped = metrics == null ? null : metrics.addRateTotalSensor("trommel-state", name(),
                "expired-record-drop", Sensor.RecordingLevel.INFO,
                "task-id", context().taskId().toString());
    }

    @Override
    final void onClose() {
        if (dropped != null) {
            context().metrics().removeSensor(dropped);
        }
    }

    @Override
    final boolean hasMore() {
        return streamTime != storedTime || duplicate != storedDuplicate;
    }

    @Override
    final void stageMore(WriteBatch batch) {
        long kept = oldestKeptSegment();
        if (kept > oldestSegment) {
            byte[] end = RowKeys.segment(kept);
            rows().stageDeletedRange(batch, RowKeys.DATA, end);
            rows().forgetUncommittedBelow(end);
        }
        stageTime(batch);
    }

    @Override
    final void stageTime(WriteBatch batch) {
        rows().stageMeta(batch, RowKeys.TIME, ByteBuffer.allocate(TIME_SIZE)
                .putLong(streamTime).putInt(duplicate).array());
    }

    @Override
    final void staged() {
        super.staged();
        oldestSegment = Math.max(oldestSegment, oldestKeptSegment());
        storedTime = streamTime;
        storedDuplicate = duplicate;
    }

    private long segment(long time) {
        return Math.max(0, time) / segmentInterval;
    }

    /** From which time on rows are shown. */
    final long oldestLiveTime() {
        return Math.max(0, streamTime - retention + 1);
    }

    /**
     * The first segment that is kept. It begins before {@link #oldestLiveTime}: sessions are
     * looked for once more when they have just expired, to be handed on as closed.
     */
    private long oldestKeptSegment() {
        return segment(streamTime - retention);
    }

    /** From which time on rows are kept. */
    final long oldestKeptTime() {
        return oldestKeptSegment() * segmentInterval;
    }

    final long streamTime() {
        return streamTime;
    }

    final void observe(long time) {
        if (time > streamTime) {
            streamTime = time;
        }
    }

    final int nextDuplicate() {
        duplicate = (duplicate + 1) & Integer.MAX_VALUE;
        return duplicate;
    }

    final int lastDuplicate() {
        return duplicate;
    }

    @Override
    final byte[] restoredRow(byte[] key) {
        long time = timeOf(key);
        observe(time);
        duplicate = Math.max(duplicate, duplicateOf(key));
        return time < oldestKeptTime() ? null : RowKeys.inSegment(segment(time), key);
    }

    /** Sets the row of a key of the changelog, if it is kept; null deletes it. */
    final void writeKept(byte[] key, byte[] value) {
        rows();
        long time = timeOf(key);
        observe(time);
        if (time < oldestKeptTime()) {
            advancePosition();
            if (dropped != null) {
                dropped.record();
            }
        } else {
            write(RowKeys.inSegment(segment(time), key), value);
        }
    }

    /** The value of a key of the changelog, if it is live. */
    final byte[] getLive(byte[] key) {
        StoreRows from = rows();
        long time = timeOf(key);
        boolean isLive = time >= oldestLiveTime() && time <= streamTime;
        return isLive ? from.get(RowKeys.inSegment(segment(time), key)) : null;
    }

    /**
     * Rows with keys of the changelog within bounds (null: open; the end is not included), in
     * segments of a span of time; null if there are none.
     */
    final RowCursor between(long earliest, long latest, byte[] from, byte[] to, boolean reverse) {
        StoreRows in = rows();
        long first = Math.max(segment(earliest), oldestKeptSegment());
        long last = segment(Math.min(latest, streamTime));
        if (streamTime < 0 || latest < 0 || first > last) {
            return null;
        }
        if (from == null && to == null) {
            return in.range(RowKeys.segment(first), RowKeys.segment(last + 1), reverse);
        }
        Segments segments = new Segments(in, first, last, from, to, reverse);
        return segments.openNext() ? segments : null;
    }

    /** One segment behind the other: each is asked for when the one before is exhausted. */
    private static final class Segments extends RowCursor {
        private final StoreRows rows;
        private final byte[] from;
        private final byte[] to;
        private final boolean reverse;
        private long first;
        private long last;
        private RowCursor current;

        Segments(StoreRows rows, long first, long last, byte[] from, byte[] to, boolean reverse) {
            this.rows = rows;
            this.first = first;
            this.last = last;
            this.from = from == null ? new byte[0] : from;
            this.to = to;
            this.reverse = reverse;
        }

        /** Goes to the next segment that has rows; false: none has. */
        boolean openNext() {
            current = null;
            while (current == null && first <= last) {
                long segment = reverse ? last-- : first++;
                byte[] end = to == null ? RowKeys.segment(segment + 1)
                        : RowKeys.inSegment(segment, to);
                current = rows.range(RowKeys.inSegment(segment, from), end, reverse);
            }
            return current != null;
        }

        @Override
        boolean advance() {
            while (current != null) {
                if (current.advance()) {
                    key = current.key;
                    value = current.value;
                    return true;
                }
                current.close();
                openNext();
            }
            return false;
        }

        @Override
        void close() {
            if (current != null) {
                current.close();
            }
        }
    }

    /**
     * A key that is larger than those of the changelog of all keys up to this one whose suffix is
     * at most the given one; null for null. A key that this one begins with may be behind it with
     * its suffix.
     */
    static byte[] endOf(byte[] key, byte[] greatestSuffix) {
        if (key == null) {
            return null;
        }
        byte[] greatest = concat(key, key.length, greatestSuffix);
        for (int size = key.length - 1; size >= 0; size--) {
            if ((key[size] & 0xFF) <= (greatestSuffix[0] & 0xFF)) {
                byte[] shorter = concat(key, size, greatestSuffix);
                if (Arrays.compareUnsigned(shorter, greatest) > 0) {
                    greatest = shorter;
                }
            }
        }
        return RowKeys.successor(greatest);
    }

    private static byte[] concat(byte[] key, int size, byte[] suffix) {
        byte[] both = Arrays.copyOf(key, size + suffix.length);
        System.arraycopy(suffix, 0, both, size, suffix.length);
        return both;
    }

    /** The key before the suffix of a key of the changelog. */
    final byte[] keyOf(byte[] key) {
        return Arrays.copyOf(key, key.length - suffixSize);
    }
}
