package dev.trommel;

/** What is asked for was there, and is gone. */
public final class GoneException extends TrommelException {
    private static final long serialVersionUID = 1L;

    GoneException(int code, String message, byte[] key) {
        super(code, message, key);
    }
}
