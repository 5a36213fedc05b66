package dev.trommel;

/** There is no such option, or its value makes no sense; or a name makes none. */
public final class OptionException extends TrommelException {
    private static final long serialVersionUID = 1L;

    OptionException(int code, String message, byte[] key) {
        super(code, message, key);
    }
}
