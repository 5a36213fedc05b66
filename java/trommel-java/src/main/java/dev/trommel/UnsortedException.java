package dev.trommel;

/** Keys that must ascend do not, or come twice. Nothing was written. */
public final class UnsortedException extends TrommelException {
    private static final long serialVersionUID = 1L;

    UnsortedException(int code, String message, byte[] key) {
        super(code, message, key);
    }
}
