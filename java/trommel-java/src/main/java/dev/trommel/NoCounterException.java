package dev.trommel;

/** A value that is to be added to is no number of 8 bytes. */
public final class NoCounterException extends TrommelException {
    private static final long serialVersionUID = 1L;

    NoCounterException(int code, String message, byte[] key) {
        super(code, message, key);
    }
}
