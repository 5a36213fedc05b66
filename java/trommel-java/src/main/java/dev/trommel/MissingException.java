package dev.trommel;

/** There is no store here, and none was to be made. */
public final class MissingException extends TrommelException {
    private static final long serialVersionUID = 1L;

    MissingException(int code, String message, byte[] key) {
        super(code, message, key);
    }
}
