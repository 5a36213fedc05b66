package dev.trommel;

/** There is no key space of that name. */
public final class NoKeyspaceException extends TrommelException {
    private static final long serialVersionUID = 1L;

    NoKeyspaceException(int code, String message, byte[] key) {
        super(code, message, key);
    }
}
