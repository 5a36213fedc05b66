package dev.trommel;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;

/** Bytes for tests, and texts of them. */
final class Bytes {
    private Bytes() {}

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static String text(byte[] bytes) {
        return bytes == null ? null : new String(bytes, StandardCharsets.UTF_8);
    }

    /** A key whose order is that of the numbers. */
    static byte[] key(int number) {
        return ByteBuffer.allocate(Integer.BYTES).putInt(number).array();
    }

    static int number(byte[] key) {
        return ByteBuffer.wrap(key).getInt();
    }

    static ByteBuffer direct(String text) {
        byte[] bytes = bytes(text);
        return ByteBuffer.allocateDirect(bytes.length).put(bytes).flip();
    }

    /** Rows as "key=value". */
    static List<String> texts(Iterator<Row> rows) {
        List<String> texts = new ArrayList<>();
        rows.forEachRemaining(row -> texts.add(text(row.key()) + "=" + text(row.value())));
        return texts;
    }
}
