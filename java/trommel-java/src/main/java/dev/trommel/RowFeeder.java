package dev.trommel;

import java.util.Iterator;
import java.util.Objects;

/** Gives the native side rows of an iterator, packed, many at once. */
final class RowFeeder {
    private static final int BYTES_MAX = 256 << 10;

    private final Iterator<Row> rows;
    private final Packed packed = new Packed();

    RowFeeder(Iterator<Row> rows) {
        this.rows = rows;
    }

    /** The next rows; null: there are none. The native side calls it. */
    byte[] next() {
        packed.clear();
        while (packed.length() < BYTES_MAX && rows.hasNext()) {
            Row row = Objects.requireNonNull(rows.next(), "rows: one of them is null");
            if (!packed.addRow(row.key(), row.value())) {
                throw new IllegalArgumentException("rows: one is longer than an array can be");
            }
        }
        return packed.length() == 0 ? null : packed.toArray();
    }
}
