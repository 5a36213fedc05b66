package dev.trommel;

/** The store was closed, or what was used has ended: a snapshot, a transaction, rows. */
public final class ClosedException extends TrommelException {
    private static final long serialVersionUID = 1L;

    ClosedException(int code, String message, byte[] key) {
        super(code, message, key);
    }
}
