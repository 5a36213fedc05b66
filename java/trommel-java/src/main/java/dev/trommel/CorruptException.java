package dev.trommel;

/** Bytes are wrong. Restore the file that the message names from a copy. */
public final class CorruptException extends TrommelException {
    private static final long serialVersionUID = 1L;

    CorruptException(int code, String message, byte[] key) {
        super(code, message, key);
    }
}
