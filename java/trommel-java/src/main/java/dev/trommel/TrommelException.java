package dev.trommel;

/**
 * Something went wrong in the store. The message says what, where, and what to do. What programs
 * handle has a class of its own; wrong arguments are an {@link IllegalArgumentException} or a
 * {@link NullPointerException} that names the argument.
 */
public class TrommelException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** The number of its kind. */
    private final int code;

    /** What it is about, or null. */
    private final byte[] key;

    TrommelException(int code, String message, byte[] key) {
        super(message);
        this.code = code;
        this.key = key;
    }

    /**
     * The number of this kind of error, which no other kind ever has, in whatever language.
     *
     * @return the number
     */
    public final int code() {
        return code;
    }

    /**
     * The key that it is about, as of a conflict.
     *
     * @return a copy of the key; null if it is about none
     */
    public final byte[] key() {
        return key == null ? null : key.clone();
    }
}
