package dev.trommel;

/** The folder is for a new store, but has files. Name another folder. */
public final class NotEmptyException extends TrommelException {
    private static final long serialVersionUID = 1L;

    NotEmptyException(int code, String message, byte[] key) {
        super(code, message, key);
    }
}
