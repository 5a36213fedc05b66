package dev.trommel;

/** Background work has failed, and writes wait for it. It is tried again. */
public final class StoppedException extends TrommelException {
    private static final long serialVersionUID = 1L;

    StoppedException(int code, String message, byte[] key) {
        super(code, message, key);
    }
}
