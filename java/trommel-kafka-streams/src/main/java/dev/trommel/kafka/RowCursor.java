package dev.trommel.kafka;

import dev.trommel.Row;
import dev.trommel.Rows;
import java.util.Arrays;

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
        private final RowCursor written;
        private final RowCursor stored;
        private final boolean reverse;
        private boolean hasWritten = true;
        private boolean hasStored;

        /** {@code written} is at its first row. */
        Merged(RowCursor written, RowCursor stored, boolean reverse) {
            this.written = written;
            this.stored = stored;
            this.reverse = reverse;
            this.hasStored = stored != null && stored.advance();
        }

        @Override
        boolean advance() {
            while (hasWritten || hasStored) {
                int order = order();
                RowCursor first = order > 0 ? stored : written;
                key = first.key;
                value = first.value;
                if (order >= 0) {
                    hasStored = stored.advance();
                }
                if (order <= 0) {
                    hasWritten = written.advance();
                }
                if (value != WriteBuffer.DELETED) {
                    return true;
                }
            }
            return false;
        }

        /** Negative: the row of the buffer is first. Positive: that of the engine. */
        private int order() {
            if (!hasWritten) {
                return 1;
            }
            if (!hasStored) {
                return -1;
            }
            int order = Arrays.compareUnsigned(written.key, stored.key);
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
