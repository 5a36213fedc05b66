package dev.trommel.kafka;

import dev.trommel.Keyspace;
import dev.trommel.WriteBatch;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Rows of a changelog that wait to be written, as they came: many of them become one sorted run,
 * past log and memory of the engine.
 *
 * <pre>
 * changelog --> rows, offset, rows, offset, ...  --> many: a sorted run    few: a batch
 *               bytes of Java, unsorted              when it is full, when a commit had few rows,
 *                                                    before any read, or when nothing comes
 * </pre>
 *
 * <p>Invariant: an offset is written together with all rows before it, or behind them. Rows may be
 * newer than the offset beside them: they are of committed transactions, and who begins at that
 * offset sets them again. Threads: any; one at a time is within.
 */
final class RestoredRows {
    private static final int ARRAY_BYTES = 16 << 20;
    /** As much as fits into the array with what comes at once. */
    private static final int FULL_BYTES = 15 << 20;
    /** So much becomes a run; less would make too many of them. */
    private static final int RUN_BYTES_MIN = 2 << 20;
    /** A commit that comes with so much behind the one before it waits with its rows. */
    private static final int BULK_BYTES = 256 << 10;

    private static final Logger LOG = LoggerFactory.getLogger(RestoredRows.class);

    private final SharedEngine engine;
    private final Keyspace keyspace;
    private WriteBatch batch = new WriteBatch(ARRAY_BYTES);
    private long bytesSinceCommit;
    /** Whether somebody sees to it that they are written when nothing comes. */
    private boolean isWatched;
    private volatile int bytes;
    private volatile long added;

    RestoredRows(SharedEngine engine, Keyspace keyspace) {
        this.engine = engine;
        this.keyspace = keyspace;
    }

    /** What they are in memory, in bytes; 0: there are none. */
    int bytes() {
        return bytes;
    }

    /** Counts what came, so that one can see whether more does. */
    long added() {
        return added;
    }

    /** Whether there is as much as there should be. */
    boolean isFull() {
        return bytes >= FULL_BYTES;
    }

    /** Sets a row; null deletes it. */
    synchronized void add(byte[] row, byte[] value) {
        if (value == null) {
            batch.delete(keyspace, row);
        } else {
            batch.put(keyspace, row, value);
        }
        more();
    }

    private void more() {
        if (bytes == 0) {
            engine.restores(this, !isWatched);
            isWatched = true;
        }
        bytesSinceCommit += batch.sizeBytes() - bytes;
        bytes = batch.sizeBytes();
        added = added + 1;
    }

    /** Adds a commit, if it need not be written yet: so much comes that a run is worth it. */
    synchronized boolean addCommit(Consumer<WriteBatch> commit) {
        boolean isBulk = bytesSinceCommit >= BULK_BYTES;
        if (isBulk) {
            commit.accept(batch);
            more();
        }
        bytesSinceCommit = 0;
        return isBulk;
    }

    /** Writes all of it. After an error it is as it was. */
    synchronized void write() {
        if (bytes == 0) {
            return;
        }
        if (bytes >= RUN_BYTES_MIN) {
            engine.ingest(keyspace, batch);
            noMore();
        } else {
            engine.write(batch);
            drop();
        }
    }

    /**
     * As {@link #write}, and gives up the memory; unless more came since so much was there. True:
     * there is more to do.
     */
    synchronized boolean writeIfIdle(long addedBefore) {
        if (added != addedBefore) {
            return true;
        }
        try {
            write();
            drop();
            isWatched = false;
            return false;
        } catch (RuntimeException problem) {
            LOG.error("Restored rows could not be written to {}; it is tried again. {}", engine,
                    problem.toString());
            return true;
        }
    }

    /** Forgets all of it, and the memory. */
    synchronized void drop() {
        batch = new WriteBatch(ARRAY_BYTES);
        noMore();
    }

    private void noMore() {
        engine.restoresNoMore(this);
        bytes = 0;
    }
}
