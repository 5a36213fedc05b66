package dev.trommel;

import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.util.Arrays;
import java.util.Iterator;
import java.util.NoSuchElementException;

/**
 * The rows of a range, in the order of their keys or against it. They are read as of the moment
 * when the range was asked for, whatever is written meanwhile; those of a transaction in pieces,
 * where later pieces show what the transaction has written meanwhile.
 *
 * <p>Rows cross from the native side in pieces: a small one first, so that short ranges cost one
 * crossing, then up to 512 rows or 256 KiB at once. Rows that came to their end keep nothing.
 * Others keep what they read until {@link #close}, or until they cannot be reached any more. An
 * {@link OutOfMemoryError} skips no row: the next call goes on where it was.
 *
 * <p>Threads: one at a time, whichever. {@link #close} may come from another one.
 */
public final class Rows implements Iterator<Row>, AutoCloseable {
    static final int FIRST_ROWS = 16;
    static final int FIRST_BYTES = 4 << 10;

    private static final int ROWS_MAX = 512;
    private static final int BYTES_MAX = 256 << 10;
    /** Each piece is larger than the one before by this factor. */
    private static final int GROWTH = 4;
    /** Before the rows of the first piece is the handle of what is behind them. */
    private static final int HANDLE_BYTES = Long.BYTES;

    private static final byte[] NONE = {};

    /** What is read stays open for that long. */
    private final Readable source;

    private byte[] piece;
    private int at;
    private int rows = FIRST_ROWS;
    private int bytes = FIRST_BYTES;

    /** Frees what is behind the piece; null: nothing is. */
    private Cleaner.Cleanable rest;

    private Scan scan;
    private volatile boolean isClosed;

    /** Rows of a first piece. Requires: as the native library gives it; null: there are none. */
    Rows(Readable source, byte[] first) {
        this.source = source;
        piece = first == null ? NONE : first;
        if (first != null) {
            at = HANDLE_BYTES;
            long handle = Packed.longAt(first, 0);
            if (handle != 0) {
                scan = new Scan(handle);
                rest = Handles.CLEANER.register(this, scan);
            }
        }
    }

    /** What the native side reads. Its handle is used by one thread at a time. */
    private static final class Scan implements Runnable {
        private long handle;

        Scan(long handle) {
            this.handle = handle;
        }

        /** The next piece, without bytes at the end. Null: it was freed. */
        synchronized byte[] next(int rows, int bytes) {
            return handle == 0 ? null : Native.nextRows(handle, rows, bytes);
        }

        /** Frees it. */
        @Override
        public synchronized void run() {
            long freed = handle;
            handle = 0;
            if (freed != 0) {
                Native.freeRows(freed);
            }
        }
    }

    /**
     * Whether there is another row. It may read the next piece.
     *
     * @return whether there is
     * @throws ClosedException these rows, or the store, were closed
     * @throws CorruptException bytes of a file are wrong; rows before them came before
     */
    @Override
    public boolean hasNext() {
        checkOpen();
        return at < piece.length || (scan != null && fill());
    }

    /**
     * The next row.
     *
     * @return the row
     * @throws NoSuchElementException there is none
     * @throws ClosedException these rows, or the store, were closed
     * @throws CorruptException bytes of a file are wrong; rows before them came before
     */
    @Override
    public Row next() {
        if (!hasNext()) {
            throw new NoSuchElementException("there are no more rows");
        }
        int keyAt = at + 2 * Packed.LENGTH_BYTES;
        int valueAt = keyAt + Packed.intAt(piece, at);
        int end = valueAt + Packed.intAt(piece, at + Packed.LENGTH_BYTES);
        byte[] key = Arrays.copyOfRange(piece, keyAt, valueAt);
        Row row = new Row(key, Arrays.copyOfRange(piece, valueAt, end));
        // Last: a row for which there was no memory comes the next time.
        at = end;
        return row;
    }

    /** Frees what these rows read. Closing them again does nothing. */
    @Override
    public void close() {
        isClosed = true;
        Cleaner.Cleanable freed = rest;
        if (freed != null) {
            freed.clean();
        }
    }

    private void checkOpen() {
        if (isClosed) {
            throw Failures.closed("iterator of rows");
        }
    }

    /** Reads the next piece. False: there is none. */
    private boolean fill() {
        byte[] next;
        rows = Math.min(rows * GROWTH, ROWS_MAX);
        bytes = Math.min(bytes * GROWTH, BYTES_MAX);
        try {
            next = scan.next(rows, bytes);
        } catch (TrommelException failure) {
            end();
            throw failure;
        }
        if (next == null) {
            throw Failures.closed("iterator of rows");
        }
        piece = next;
        at = 0;
        if (next.length == 0) {
            end();
        }
        Reference.reachabilityFence(source);
        return next.length > 0;
    }

    /** All rows have come. */
    private void end() {
        piece = NONE;
        at = 0;
        scan = null;
        rest.clean();
        rest = null;
    }
}
