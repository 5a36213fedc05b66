package dev.trommel;

/** A key is longer than a store accepts. Nothing was written. */
public final class KeyTooLongException extends TrommelException {
    private static final long serialVersionUID = 1L;

    KeyTooLongException(int code, String message, byte[] key) {
        super(code, message, key);
    }
}
