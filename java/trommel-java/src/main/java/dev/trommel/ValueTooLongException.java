package dev.trommel;

/** A value is longer than a store accepts. Nothing was written. */
public final class ValueTooLongException extends TrommelException {
    private static final long serialVersionUID = 1L;

    ValueTooLongException(int code, String message, byte[] key) {
        super(code, message, key);
    }
}
