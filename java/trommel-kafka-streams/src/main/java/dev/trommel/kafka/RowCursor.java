package dev.trommel.kafka;

import dev.trommel.Row;
import dev.trommel.Rows;
import java.util.Arrays;
import java.util.Iterator;
import java.util.Map;

/** Goes through rows in one direction. Before the first {@link #advance} it is at no row. */
abstract class RowCursor {
    byte[] key;
    byte[] value;

    /** Goes to the next row; false: there is none. */
    abstract boolean advance();

    /** Frees what the engine keeps for it. */
    abstract void close();

    /** Rows of the engine. */
    static final class OfEngine extends RowCursor {
        private final Rows rows;

        OfEngine(Rows rows) {
            this.rows = rows;
        }

        @Override
        boolean advance() {
            if (!rows.hasNext()) {
                return false;
            }
            Row row = rows.next();
            key = row.key();
            value = row.value();
            return true;
        }

        @Override
        void close() {
            rows.close();
        }
    }

    /** Rows of a buffer over those of the engine: of two with one key that of the buffer counts. */
    static final class Merged extends RowCursor {
        private final Iterator<Map.Entry<byte[], byte[]>> written;
        private final RowCursor stored;
        private final boolean reverse;
        private Map.Entry<byte[], byte[]> nextWritten;
        private boolean hasStored;

        Merged(Iterator<Map.Entry<byte[], byte[]>> written, RowCursor stored, boolean reverse) {
            this.written = written;
            this.stored = stored;
            this.reverse = reverse;
            this.nextWritten = written.next();
            this.hasStored = stored != null && stored.advance();
        }

        @Override
        boolean advance() {
            while (nextWritten != null || hasStored) {
                int order = order();
                if (order > 0) {
                    key = stored.key;
                    value = stored.value;
                    hasStored = stored.advance();
                    return true;
                }
                if (order == 0) {
                    hasStored = stored.advance();
                }
                key = nextWritten.getKey();
                value = nextWritten.getValue();
                nextWritten = written.hasNext() ? written.next() : null;
                if (value != WriteBuffer.DELETED) {
                    return true;
                }
            }
            return false;
        }

        /** Negative: the row of the buffer is first. Positive: that of the engine. */
        private int order() {
            if (nextWritten == null) {
                return 1;
            }
            if (!hasStored) {
                return -1;
            }
            int order = Arrays.compareUnsigned(nextWritten.getKey(), stored.key);
            return reverse ? -order : order;
        }

        @Override
        void close() {
            if (stored != null) {
                stored.close();
            }
        }
    }
}
