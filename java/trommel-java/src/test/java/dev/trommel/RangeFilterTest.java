package dev.trommel;

import static dev.trommel.Bytes.bytes;
import static dev.trommel.Bytes.key;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;

/** Filters alone. */
final class RangeFilterTest {
    private static final int COUNT = 50_000;

    /** Random keys, as sorted bytes. */
    private static List<byte[]> keys() {
        TreeSet<Integer> numbers = new TreeSet<>();
        Random random = new Random(7);
        while (numbers.size() < COUNT) {
            numbers.add(random.nextInt(Integer.MAX_VALUE));
        }
        List<byte[]> keys = new ArrayList<>();
        numbers.forEach(number -> keys.add(key(number)));
        return keys;
    }

    @Test
    void falseMeansThatNoSuchKeyWasAdded() {
        List<byte[]> keys = keys();
        for (String kind : RangeFilter.kinds()) {
            RangeFilter filter = RangeFilter.build(keys, 14, kind);
            assertEquals(kind, filter.kind());
            assertTrue(filter.sizeBytes() > 0);
            RangeFilter read = RangeFilter.fromBytes(filter.toBytes());
            assertArrayEquals(filter.toBytes(), read.toBytes());
            for (byte[] key : keys) {
                assertTrue(filter.mayContain(key) && read.mayContain(key), kind);
                assertTrue(filter.mayContainRange(key, Bounds.closed(key, key).to), kind);
            }
        }
    }

    @Test
    void mostOtherKeysAndShortRangesAreSurelyNotThere() {
        RangeFilter filter = RangeFilter.build(keys().toArray(new byte[0][]), 16);
        assertTrue(filter.knowsRanges());
        Random random = new Random(8);
        int keysFound = 0;
        int rangesFound = 0;
        for (int tries = 0; tries < 10_000; tries++) {
            int number = random.nextInt(Integer.MAX_VALUE - 10);
            keysFound += filter.mayContain(key(number)) ? 1 : 0;
            rangesFound += filter.mayContainRange(key(number), key(number + 8)) ? 1 : 0;
        }
        assertTrue(keysFound < 300 && rangesFound < 300, keysFound + ", " + rangesFound);
        assertTrue(filter.mayContainRange(null, null));
        assertTrue(filter.mayContainRange(null, key(Integer.MAX_VALUE)));
        assertFalse(filter.mayContainRange(key(9), key(9)));
        assertFalse(filter.mayContainRange(key(9), key(8)));
    }

    @Test
    void whatMakesNoFilterIsRefused() {
        List<byte[]> descending = List.of(bytes("b"), bytes("a"));
        UnsortedException unsorted =
                assertThrows(UnsortedException.class, () -> RangeFilter.build(descending, 12));
        assertArrayEquals(bytes("a"), unsorted.key());
        List<byte[]> one = List.of(bytes("a"));
        for (double bits : new double[] {0, -1, 65, Double.NaN, Double.POSITIVE_INFINITY}) {
            assertThrows(IllegalArgumentException.class, () -> RangeFilter.build(one, bits));
        }
        IllegalArgumentException unknown =
                assertThrows(
                        IllegalArgumentException.class, () -> RangeFilter.build(one, 12, "sieve"));
        assertTrue(unknown.getMessage().contains("cell"), unknown.getMessage());
        assertFalse(RangeFilter.build(List.of(), 12).mayContain(bytes("a")));
    }

    @Test
    void damagedBytesAreNoFilter() {
        byte[] sound = RangeFilter.build(keys().subList(0, 300), 12).toBytes();
        for (int at = 0; at < sound.length; at++) {
            byte[] damaged = sound.clone();
            damaged[at] ^= 0x20;
            assertThrows(CorruptException.class, () -> RangeFilter.fromBytes(damaged));
        }
        for (int length = 0; length < 40; length++) {
            byte[] cut = java.util.Arrays.copyOf(sound, length);
            assertThrows(CorruptException.class, () -> RangeFilter.fromBytes(cut));
        }
    }
}
