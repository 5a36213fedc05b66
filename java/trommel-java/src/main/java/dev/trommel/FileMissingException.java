package dev.trommel;

/** A file that is needed is missing. Restore it from a copy. */
public final class FileMissingException extends TrommelException {
    private static final long serialVersionUID = 1L;

    FileMissingException(int code, String message, byte[] key) {
        super(code, message, key);
    }
}
