package dev.trommel.kafka;

import dev.trommel.Keyspace;
import dev.trommel.Rows;
import dev.trommel.WriteBatch;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Consumer;
import org.apache.kafka.common.TopicPartition;

/**
 * The rows of one store of one task: what is committed, in its key space, and over it what is not.
 * The thread of the task writes; any thread reads.
 */
final class StoreRows {
    /** What Kafka Streams gives for an offset that it does not know. */
    static final long OFFSET_UNKNOWN = -4L;

    private final SharedEngine engine;
    private final Keyspace keyspace;
    private final Map<TopicPartition, Long> offsets = new HashMap<>();
    private final RestoredRows restored;
    private volatile WriteBuffer buffer = new WriteBuffer();

    private StoreRows(SharedEngine engine, Keyspace keyspace) {
        this.engine = engine;
        this.keyspace = keyspace;
        this.restored = new RestoredRows(engine, keyspace);
        readOffsets();
    }

    /** The rows of a key space, which has none if its generation is not this one. */
    static StoreRows open(
            SharedEngine engine, String name, byte[] generation, TrommelConfig config) {
        return new StoreRows(engine, engine.keyspace(name, generation, config));
    }

    private void readOffsets() {
        Rows rows = keyspace.rangeOrNull(RowKeys.OFFSETS, RowKeys.OFFSETS_END, false);
        if (rows == null) {
            return;
        }
        try (rows) {
            rows.forEachRemaining(row -> {
                offsets.put(RowKeys.partition(row.key()), Numbers.read(row.value()));
            });
        }
    }

    SharedEngine engine() {
        return engine;
    }

    /** Writes what is restored, so that it is there for whoever reads, and before other writes. */
    void settle() {
        if (restored.bytes() != 0) {
            restored.write();
        }
    }

    boolean hasRestored() {
        return restored.bytes() != 0;
    }

    /** Bytes of restored rows that wait to be written. */
    int restoredBytes() {
        return restored.bytes();
    }

    /** Sets a row by the changelog; null deletes it. Requires: all writes are committed. */
    void restore(byte[] row, byte[] value) {
        restored.add(row, value);
    }

    /** Writes restored rows, if there are too many in memory. */
    void limitRestored() {
        engine.limitRestored(restored);
    }

    /** Lets a commit of restored rows wait with them; false: they are too few. */
    boolean defer(Consumer<WriteBatch> commit) {
        return restored.addCommit(commit);
    }

    void dropRestored() {
        restored.drop();
    }

    byte[] get(byte[] row) {
        settle();
        byte[] written = buffer.get(row);
        if (written == null) {
            return keyspace.get(row);
        }
        return written == WriteBuffer.DELETED ? null : written;
    }

    /** Rows of a range, its end not included; null if there are none. */
    RowCursor range(byte[] from, byte[] to, boolean reverse) {
        settle();
        // The buffer first: if a commit comes between, the rows are in both, never in none.
        RowCursor written = buffer.range(from, to, reverse);
        if (written == null && Arrays.compareUnsigned(from, to) >= 0) {
            return null;
        }
        Rows rows = keyspace.rangeOrNull(from, to, reverse);
        RowCursor stored = rows == null ? null : new RowCursor.OfEngine(rows);
        return written == null ? stored : new RowCursor.Merged(written, stored, reverse);
    }

    /** Sets a row; null deletes it. */
    void put(byte[] row, byte[] value) {
        settle();
        buffer.put(row, value);
    }

    boolean hasUncommitted() {
        return !buffer.isEmpty();
    }

    long uncommittedBytes() {
        return buffer.bytes();
    }

    /** Drops what is not committed. */
    void dropUncommitted() {
        buffer = new WriteBuffer();
    }

    /** Drops the whole state, committed or not, with offsets, position and stream time. */
    void dropAll() {
        dropRestored();
        WriteBatch batch = new WriteBatch();
        batch.deleteRange(keyspace, RowKeys.STATE, RowKeys.DATA_END);
        engine.write(batch);
        offsets.clear();
        dropUncommitted();
    }

    void forgetUncommittedBelow(byte[] row) {
        buffer.forgetBelow(row);
    }

    /** About how many rows there are, deleted ones that are not committed among them. */
    long approximateCount() {
        settle();
        return keyspace.approximateCount(RowKeys.DATA, RowKeys.DATA_END).estimate()
                + buffer.size();
    }

    /** Whether the key space has a row of data. */
    boolean hasStored() {
        settle();
        Rows rows = keyspace.rangeOrNull(RowKeys.DATA, RowKeys.DATA_END, false);
        if (rows != null) {
            rows.close();
        }
        return rows != null;
    }

    /** The segment of the first row of the key space; -1 if it has none. */
    long firstSegment() {
        settle();
        Rows rows = keyspace.rangeOrNull(RowKeys.DATA, RowKeys.DATA_END, false);
        if (rows == null) {
            return -1;
        }
        try (rows) {
            return RowKeys.segmentOf(rows.next().key());
        }
    }

    /** The offset that is stored with the rows; null if there is none. */
    Long offset(TopicPartition partition) {
        return offsets.get(partition);
    }

    boolean hasOffsets() {
        return !offsets.isEmpty();
    }

    /** Whether these offsets are stored. */
    boolean hasOffsets(Map<TopicPartition, Long> given) {
        return given.entrySet().stream()
                .allMatch(one -> one.getValue() != null
                        && one.getValue().equals(offsets.get(one.getKey())));
    }

    /** Puts all that is not committed into a batch. What is restored is written before it. */
    void stageRows(WriteBatch batch) {
        settle();
        buffer.forEach((row, value) -> {
            if (value == WriteBuffer.DELETED) {
                batch.delete(keyspace, row);
            } else {
                batch.put(keyspace, row, value);
            }
        });
    }

    void stageMeta(WriteBatch batch, byte[] row, byte[] value) {
        batch.put(keyspace, row, value);
    }

    void stageDeletedRange(WriteBatch batch, byte[] from, byte[] to) {
        batch.deleteRange(keyspace, from, to);
    }

    void stageOffsets(WriteBatch batch, Map<TopicPartition, Long> given) {
        given.forEach((partition, offset) -> {
            byte[] row = RowKeys.offset(partition);
            if (offset == null) {
                batch.delete(keyspace, row);
            } else {
                batch.put(keyspace, row, Numbers.bytes(offset));
            }
        });
    }

    /** Takes all offsets away, as those rows are not the state at an offset any more. */
    void stageNoOffsets(WriteBatch batch) {
        batch.deleteRange(keyspace, RowKeys.OFFSETS, RowKeys.OFFSETS_END);
    }

    /** What was staged is written: readers that come now find it there. */
    void committed(Map<TopicPartition, Long> given) {
        given.forEach((partition, offset) -> {
            if (offset == null) {
                offsets.remove(partition);
            } else {
                offsets.put(partition, offset);
            }
        });
        dropUncommitted();
    }

    void offsetsGone() {
        offsets.clear();
    }

    byte[] meta(byte[] row) {
        return keyspace.get(row);
    }
}
