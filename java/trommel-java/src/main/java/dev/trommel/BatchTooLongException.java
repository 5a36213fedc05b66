package dev.trommel;

/** A batch is longer than a store accepts. Nothing was written: write it in parts. */
public final class BatchTooLongException extends TrommelException {
    private static final long serialVersionUID = 1L;

    BatchTooLongException(int code, String message, byte[] key) {
        super(code, message, key);
    }
}
