package dev.trommel;

/** The key space was dropped. */
public final class KeyspaceDroppedException extends TrommelException {
    private static final long serialVersionUID = 1L;

    KeyspaceDroppedException(int code, String message, byte[] key) {
        super(code, message, key);
    }
}
