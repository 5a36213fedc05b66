package dev.trommel;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Bytes one behind the other, as the native library reads and makes them. A list is the length of
 * each, in 4 bytes with the low one first, and its bytes. A row is two lengths, a key and a value.
 */
final class Packed {
    static final int LENGTH_BYTES = Integer.BYTES;

    /** The longest array that every machine makes. */
    static final int ARRAY_MAX = Integer.MAX_VALUE - 8;

    private static final int ABSENT = -1;
    private static final int CAPACITY_MIN = 256;

    private static final VarHandle INT =
            MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle LONG =
            MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

    private byte[] bytes = new byte[CAPACITY_MIN];
    private int length;

    static int intAt(byte[] bytes, int at) {
        return (int) INT.get(bytes, at);
    }

    static long longAt(byte[] bytes, int at) {
        return (long) LONG.get(bytes, at);
    }

    /** What has been packed is at the begin of this array, which may be longer. */
    byte[] bytes() {
        return bytes;
    }

    int length() {
        return length;
    }

    void clear() {
        length = 0;
    }

    /** Gives up memory beyond so many bytes. Requires: it is clear. */
    void trim(int capacityMax) {
        if (bytes.length > capacityMax) {
            bytes = new byte[CAPACITY_MIN];
        }
    }

    /** Makes room for so many more bytes: false if no array can have them. */
    boolean hasRoom(long more) {
        long needed = length + more;
        if (needed > ARRAY_MAX) {
            return false;
        }
        if (needed > bytes.length) {
            long doubled = Math.min(2L * bytes.length, ARRAY_MAX);
            bytes = Arrays.copyOf(bytes, (int) Math.max(needed, doubled));
        }
        return true;
    }

    // Each of these requires that there is room for it.

    void putByte(byte value) {
        bytes[length++] = value;
    }

    void putInt(int value) {
        INT.set(bytes, length, value);
        length += Integer.BYTES;
    }

    void putLong(long value) {
        LONG.set(bytes, length, value);
        length += Long.BYTES;
    }

    void putBytes(byte[] more) {
        System.arraycopy(more, 0, bytes, length, more.length);
        length += more.length;
    }

    /** Appends to a list: false if no array can have it. */
    boolean add(byte[] next) {
        if (!hasRoom((long) LENGTH_BYTES + next.length)) {
            return false;
        }
        putInt(next.length);
        putBytes(next);
        return true;
    }

    /** Appends a row: false if no array can have it. */
    boolean addRow(byte[] key, byte[] value) {
        if (!hasRoom(2L * LENGTH_BYTES + key.length + value.length)) {
            return false;
        }
        putInt(key.length);
        putInt(value.length);
        putBytes(key);
        putBytes(value);
        return true;
    }

    byte[] toArray() {
        return Arrays.copyOf(bytes, length);
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static String text(byte[] bytes) {
        return new String(bytes, StandardCharsets.UTF_8);
    }

    /** The texts of a list. */
    static List<String> texts(byte[] list) {
        List<String> texts = new ArrayList<>();
        for (int at = 0; at < list.length; ) {
            int length = intAt(list, at);
            texts.add(new String(list, at + LENGTH_BYTES, length, StandardCharsets.UTF_8));
            at += LENGTH_BYTES + length;
        }
        return texts;
    }

    /** The values of a list, null where there is none. */
    static byte[][] values(byte[] list, int count) {
        byte[][] values = new byte[count][];
        int at = 0;
        for (int place = 0; place < count; place++) {
            int length = intAt(list, at);
            at += LENGTH_BYTES;
            if (length != ABSENT) {
                values[place] = Arrays.copyOfRange(list, at, at + length);
                at += length;
            }
        }
        return values;
    }
}
