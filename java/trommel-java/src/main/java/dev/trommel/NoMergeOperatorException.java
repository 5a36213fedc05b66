package dev.trommel;

/** The key space is open without its merge operator. */
public final class NoMergeOperatorException extends TrommelException {
    private static final long serialVersionUID = 1L;

    NoMergeOperatorException(int code, String message, byte[] key) {
        super(code, message, key);
    }
}
