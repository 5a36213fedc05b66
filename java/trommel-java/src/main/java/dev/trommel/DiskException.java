package dev.trommel;

/** The disk refused. Make room or repair it, then make the call again. */
public final class DiskException extends TrommelException {
    private static final long serialVersionUID = 1L;

    DiskException(int code, String message, byte[] key) {
        super(code, message, key);
    }
}
