package dev.trommel;

import static dev.trommel.Bytes.bytes;
import static dev.trommel.Bytes.key;

import java.lang.ref.Reference;
import java.nio.file.Path;
import java.util.function.Supplier;

/** A program whose memory is used up each time when it goes on with rows. All rows are to come. */
final class Hoarding {
    private static final int SMALL = Rows.FIRST_ROWS;
    private static final int LARGE = 4;
    private static final int VALUE_BYTES = 8 << 20;
    private static final int HOARDED_BYTES = 64 << 10;
    /** So much is left for whatever else the program does, and too little for a large value. */
    private static final int LEFT_BYTES = VALUE_BYTES / 4;

    private Hoarding() {}

    public static void main(String[] arguments) {
        try (Store store = Store.open(Path.of(arguments[0]))) {
            for (int number = 0; number < SMALL + LARGE; number++) {
                store.put(key(number), number < SMALL ? bytes("x") : new byte[VALUE_BYTES]);
            }
            try (Rows rows = store.range(null, null)) {
                for (int number = 0; number < SMALL + LARGE; number++) {
                    goOn(rows, number);
                }
                check(!rows.hasNext(), "there are more rows than were put");
            }
        }
    }

    /** Crossing the border and copying out of the piece each need memory for the value. */
    private static void goOn(Rows rows, int number) {
        boolean isLarge = number >= SMALL;
        check(!isLarge || isRefused(rows::hasNext), "memory for a piece with row " + number);
        check(rows.hasNext(), "no row " + number);
        check(!isLarge || isRefused(rows::next), "memory for a copy of row " + number);
        byte[] key = rows.next().key();
        check(Bytes.number(key) == number, Bytes.number(key) + " came for row " + number);
    }

    private static boolean isRefused(Supplier<?> work) {
        byte[][] hoard = new byte[(int) (Runtime.getRuntime().maxMemory() / HOARDED_BYTES)][];
        try {
            for (int place = 0; place < hoard.length; place++) {
                hoard[place] = new byte[HOARDED_BYTES];
            }
        } catch (OutOfMemoryError full) {
            // As it should be.
        }
        // Nothing may be made before something is free.
        for (int place = 0; place < LEFT_BYTES / HOARDED_BYTES; place++) {
            hoard[place] = null;
        }
        try {
            work.get();
            return false;
        } catch (OutOfMemoryError refused) {
            return true;
        } finally {
            Reference.reachabilityFence(hoard);
        }
    }

    private static void check(boolean isSo, String otherwise) {
        if (!isSo) {
            throw new AssertionError(otherwise);
        }
    }
}
