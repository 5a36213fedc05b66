package dev.trommel;

/** Makes the exceptions of what the native library tells, which calls it. */
final class Failures {
    static final int CLOSED = 9;
    private static final int ARGUMENT = 1000;
    private static final int IN_USE = 1001;
    private static final int NO_MEMORY = 1002;

    private Failures() {}

    /** The exception of a code. {@code key}: what it is about, or null. */
    static Throwable of(int code, byte[] message, byte[] key, int keyspace) {
        String text = Packed.text(message);
        return switch (code) {
            case ARGUMENT -> new IllegalArgumentException(text);
            case IN_USE -> new IllegalStateException(text);
            case NO_MEMORY -> new OutOfMemoryError(text);
            default -> ofStore(code, text, key);
        };
    }

    private static TrommelException ofStore(int code, String text, byte[] key) {
        return switch (code) {
            case 1 -> new DiskException(code, text, key);
            case 2 -> new CorruptException(code, text, key);
            case 3 -> new FileMissingException(code, text, key);
            case 4 -> new NotAStoreException(code, text, key);
            case 5 -> new NotEmptyException(code, text, key);
            case 6 -> new MissingException(code, text, key);
            case 7 -> new VersionException(code, text, key);
            case 8 -> new LockedException(code, text, key);
            case 9 -> new ClosedException(code, text, key);
            case 11 -> new KeyTooLongException(code, text, key);
            case 12 -> new ValueTooLongException(code, text, key);
            case 13 -> new BatchTooLongException(code, text, key);
            case 14 -> new UnsortedException(code, text, key);
            case 15 -> new InvertedRangeException(code, text, key);
            case 16 -> new OptionException(code, text, key);
            case 17 -> new StoppedException(code, text, key);
            case 18 -> new PanickedException(code, text, key);
            case 19 -> new FlushUnderWayException(code, text, key);
            case 22 -> new NoKeyspaceException(code, text, key);
            case 23 -> new KeyspaceExistsException(code, text, key);
            case 24 -> new KeyspaceDroppedException(code, text, key);
            case 25 -> new ConflictException(code, text, key);
            case 26 -> new NoCounterException(code, text, key);
            case 27 -> new LockTimeoutException(code, text, key);
            case 28 -> new DeadlockException(code, text, key);
            case 29 -> new NoMergeOperatorException(code, text, key);
            case 30 -> new MergeFailedException(code, text, key);
            case 31 -> new GoneException(code, text, key);
            default -> new TrommelException(code, text, key);
        };
    }

    static ClosedException closed(String what) {
        String text = "the " + what + " was closed, or has ended: make a new one";
        return new ClosedException(CLOSED, text, null);
    }
}
