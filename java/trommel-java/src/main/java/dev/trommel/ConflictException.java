package dev.trommel;

/** Others have written a key since it was read. Nothing was written: run it again. */
public final class ConflictException extends TrommelException {
    private static final long serialVersionUID = 1L;

    ConflictException(int code, String message, byte[] key) {
        super(code, message, key);
    }
}
