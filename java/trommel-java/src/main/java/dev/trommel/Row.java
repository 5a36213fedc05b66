package dev.trommel;

import java.util.Arrays;
import java.util.Objects;

/** A key and its value. Two rows are equal if both have the same bytes. */
public final class Row {
    private final byte[] key;
    private final byte[] value;

    /**
     * A row of these arrays, which are not copied.
     *
     * @param key the key
     * @param value the value
     */
    public Row(byte[] key, byte[] value) {
        this.key = Objects.requireNonNull(key, "key");
        this.value = Objects.requireNonNull(value, "value");
    }

    /**
     * The key.
     *
     * @return the row's own array
     */
    public byte[] key() {
        return key;
    }

    /**
     * The value.
     *
     * @return the row's own array
     */
    public byte[] value() {
        return value;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Row row
                && Arrays.equals(key, row.key)
                && Arrays.equals(value, row.value);
    }

    @Override
    public int hashCode() {
        return 31 * Arrays.hashCode(key) + Arrays.hashCode(value);
    }

    @Override
    public String toString() {
        return "Row[key of " + key.length + " bytes, value of " + value.length + " bytes]";
    }
}
