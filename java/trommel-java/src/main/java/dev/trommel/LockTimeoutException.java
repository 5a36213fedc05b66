package dev.trommel;

/** A transaction has kept a key locked for too long. Nothing was written. */
public final class LockTimeoutException extends TrommelException {
    private static final long serialVersionUID = 1L;

    LockTimeoutException(int code, String message, byte[] key) {
        super(code, message, key);
    }
}
