package dev.trommel;

/** The library has panicked, which is a bug of it. No acknowledged write is lost. */
public final class PanickedException extends TrommelException {
    private static final long serialVersionUID = 1L;

    PanickedException(int code, String message, byte[] key) {
        super(code, message, key);
    }
}
