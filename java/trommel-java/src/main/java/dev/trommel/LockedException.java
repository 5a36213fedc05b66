package dev.trommel;

/** The store is open already, in this process or in another one. Close it there first. */
public final class LockedException extends TrommelException {
    private static final long serialVersionUID = 1L;

    LockedException(int code, String message, byte[] key) {
        super(code, message, key);
    }
}
