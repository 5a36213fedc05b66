package dev.trommel.kafka;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.kafka.common.TopicPartition;

/**
 * Keys of rows in a key space.
 *
 * <pre>
 * 0 'g'                        generation of the task's folder
 * 0 'o' partition i32 topic    offset of the last record of a changelog partition
 * 0 'p'                        position of interactive queries
 * 0 't'                        stream time, number of the last duplicate
 * 1 key                        a row of a key-value store
 * 1 segment i64 key            a row of a window or session store; key as in the changelog
 * </pre>
 *
 * <p>Keys of windows are kept as the changelog has them, since caches of Kafka Streams merge what
 * they have with rows of stores in the order of these bytes.
 */
final class RowKeys {
    static final byte[] GENERATION = {0, 'g'};
    /** From here on all rows are of a state; the generation is of its folder. */
    static final byte[] STATE = {0, 'g' + 1};
    static final byte[] POSITION = {0, 'p'};
    static final byte[] TIME = {0, 't'};
    static final byte[] OFFSETS = {0, 'o'};
    static final byte[] OFFSETS_END = {0, 'o' + 1};
    static final byte[] DATA = {1};
    static final byte[] DATA_END = {2};

    private static final int SEGMENT_SIZE = 1 + Long.BYTES;

    private RowKeys() {}

    static byte[] offset(TopicPartition partition) {
        byte[] topic = partition.topic().getBytes(StandardCharsets.UTF_8);
        ByteBuffer row = ByteBuffer.allocate(OFFSETS.length + Integer.BYTES + topic.length);
        return row.put(OFFSETS).putInt(partition.partition()).put(topic).array();
    }

    /** The partition of a row that {@link #offset} named. */
    static TopicPartition partition(byte[] row) {
        int at = OFFSETS.length + Integer.BYTES;
        String topic = new String(row, at, row.length - at, StandardCharsets.UTF_8);
        return new TopicPartition(topic, ByteBuffer.wrap(row).getInt(OFFSETS.length));
    }

    static byte[] data(byte[] key) {
        byte[] row = new byte[1 + key.length];
        row[0] = DATA[0];
        System.arraycopy(key, 0, row, 1, key.length);
        return row;
    }

    /** The key of a row that {@link #data} named. */
    static byte[] dataKey(byte[] row) {
        return Arrays.copyOfRange(row, 1, row.length);
    }

    static byte[] inSegment(long segment, byte[] key) {
        ByteBuffer row = ByteBuffer.allocate(SEGMENT_SIZE + key.length);
        return row.put(DATA).putLong(segment).put(key).array();
    }

    static byte[] segment(long segment) {
        return ByteBuffer.allocate(SEGMENT_SIZE).put(DATA).putLong(segment).array();
    }

    static long segmentOf(byte[] row) {
        return ByteBuffer.wrap(row).getLong(1);
    }

    /** The key of a row that {@link #inSegment} named. */
    static byte[] segmentKey(byte[] row) {
        return Arrays.copyOfRange(row, SEGMENT_SIZE, row.length);
    }

    /** The smallest key that is larger than this one. */
    static byte[] successor(byte[] key) {
        return Arrays.copyOf(key, key.length + 1);
    }

    /** The smallest key that is larger than all with this prefix; null if there is none. */
    static byte[] afterPrefix(byte[] prefix) {
        for (int at = prefix.length - 1; at >= 0; at--) {
            if (prefix[at] != (byte) 0xFF) {
                byte[] after = Arrays.copyOf(prefix, at + 1);
                after[at]++;
                return after;
            }
        }
        return null;
    }
}
