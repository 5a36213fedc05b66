package dev.trommel;

import java.nio.ByteBuffer;
import java.nio.file.FileSystems;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Objects;

/** Checks of arguments, whose messages name the argument. */
final class Arguments {
    private Arguments() {}

    static int length(byte[] bytes) {
        return bytes == null ? 0 : bytes.length;
    }

    /** A path as the native library takes it. */
    static byte[] path(Path path) {
        Objects.requireNonNull(path, "path");
        if (path.getFileSystem() != FileSystems.getDefault()) {
            throw new IllegalArgumentException("path: it is not of the default file system");
        }
        String text = path.toString();
        if (text.isEmpty()) {
            throw new IllegalArgumentException("path: a folder is needed");
        }
        return Packed.bytes(text);
    }

    static void ttl(Duration ttl) {
        Objects.requireNonNull(ttl, "ttl");
        if (ttl.isNegative()) {
            throw new IllegalArgumentException("ttl: " + ttl + " is negative");
        }
    }

    /**
     * How much is between a place and the limit of a direct buffer. The native side takes the
     * memory as it is. So a byte of it is read here, which throws if the memory is that of a closed
     * arena, or of another thread's arena.
     */
    static int lengthFrom(int at, ByteBuffer buffer) {
        // The limit is read once: whatever other threads do, it is within the buffer.
        int length = buffer.limit() - at;
        if (length > 0) {
            buffer.get(at);
        }
        return length;
    }

    /** What is between a buffer's position and its limit; neither is changed. */
    static byte[] bytes(ByteBuffer buffer) {
        int at = buffer.position();
        byte[] bytes = new byte[Math.max(buffer.limit() - at, 0)];
        buffer.get(at, bytes);
        return bytes;
    }
}
