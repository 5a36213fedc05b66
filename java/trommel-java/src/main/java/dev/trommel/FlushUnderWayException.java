package dev.trommel;

/** Another thread runs a flush that must come first. Make the call again. */
public final class FlushUnderWayException extends TrommelException {
    private static final long serialVersionUID = 1L;

    FlushUnderWayException(int code, String message, byte[] key) {
        super(code, message, key);
    }
}
