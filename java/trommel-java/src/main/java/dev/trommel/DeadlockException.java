package dev.trommel;

/** Transactions wait for each other. Nothing was written: run it again. */
public final class DeadlockException extends TrommelException {
    private static final long serialVersionUID = 1L;

    DeadlockException(int code, String message, byte[] key) {
        super(code, message, key);
    }
}
