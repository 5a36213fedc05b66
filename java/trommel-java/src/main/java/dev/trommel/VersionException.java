package dev.trommel;

/** Another version of Trommel wrote this. */
public final class VersionException extends TrommelException {
    private static final long serialVersionUID = 1L;

    VersionException(int code, String message, byte[] key) {
        super(code, message, key);
    }
}
