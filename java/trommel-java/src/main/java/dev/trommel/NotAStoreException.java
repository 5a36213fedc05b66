package dev.trommel;

/** The folder holds files, but no store. Name another folder. */
public final class NotAStoreException extends TrommelException {
    private static final long serialVersionUID = 1L;

    NotAStoreException(int code, String message, byte[] key) {
        super(code, message, key);
    }
}
