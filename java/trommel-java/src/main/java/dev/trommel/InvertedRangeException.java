package dev.trommel;

/** A range to delete ends before it begins. Nothing was written. */
public final class InvertedRangeException extends TrommelException {
    private static final long serialVersionUID = 1L;

    InvertedRangeException(int code, String message, byte[] key) {
        super(code, message, key);
    }
}
