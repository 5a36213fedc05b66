package dev.trommel;

/** There is a key space of that name already. */
public final class KeyspaceExistsException extends TrommelException {
    private static final long serialVersionUID = 1L;

    KeyspaceExistsException(int code, String message, byte[] key) {
        super(code, message, key);
    }
}
