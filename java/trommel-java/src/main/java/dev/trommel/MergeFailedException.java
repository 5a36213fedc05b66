package dev.trommel;

/** The merge operator makes no value of a key and its operands. */
public final class MergeFailedException extends TrommelException {
    private static final long serialVersionUID = 1L;

    MergeFailedException(int code, String message, byte[] key) {
        super(code, message, key);
    }
}
