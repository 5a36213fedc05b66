package dev.trommel;

import static dev.trommel.Bytes.bytes;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Random;
import java.util.TreeMap;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Random work, and the same on a map: they never differ. */
final class ModelTest {
    private static final int STEPS = 3000;
    private static final int KEYS = 400;

    @TempDir Path folder;

    private Random random;
    private Store store;
    private Keyspace words;
    /** Of the default key space, and of the other one. */
    private NavigableMap<byte[], byte[]> model = new TreeMap<>(Arrays::compareUnsigned);

    private NavigableMap<byte[], byte[]> otherModel = new TreeMap<>(Arrays::compareUnsigned);

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4})
    void storesAreAsMapsAre(long seed) {
        random = new Random(seed);
        open();
        for (int step = 0; step < STEPS; step++) {
            step();
        }
        assertSame(store, model);
        assertSame(words, otherModel);
        store.close();
    }

    private void open() {
        // So small that runs are written and merged all the time.
        Options options = new Options().set("write_buffer_bytes", "64KiB");
        store = Store.open(folder.resolve("store"), options);
        words = store.keyspace("words");
    }

    private void step() {
        switch (random.nextInt(20)) {
            case 0, 1, 2, 3 -> put();
            case 4, 5 -> {
                byte[] key = key();
                store.delete(key);
                model.remove(key);
            }
            case 6, 7, 8 -> {
                byte[] key = key();
                assertArrayEquals(model.get(key), store.get(key));
                assertEquals(model.containsKey(key), store.containsKey(key));
            }
            case 9, 10, 11 -> range(store, model);
            case 12 -> deleteRange();
            case 13, 14 -> batch();
            case 15, 16 -> transaction();
            case 17 -> snapshot();
            case 18 -> getMany();
            default -> rest();
        }
    }

    private byte[] key() {
        return bytes("key " + random.nextInt(KEYS));
    }

    private byte[] value() {
        byte[] value = new byte[random.nextInt(20) == 0 ? 3000 : random.nextInt(60)];
        random.nextBytes(value);
        return value;
    }

    private void put() {
        byte[] key = key();
        byte[] value = value();
        if (random.nextBoolean()) {
            store.put(key, value);
            model.put(key, value);
        } else {
            assertArrayEquals(model.putIfAbsent(key, value), store.putIfAbsent(key, value));
        }
    }

    private void range(Readable readable, NavigableMap<byte[], byte[]> expected) {
        byte[] from = random.nextInt(10) == 0 ? null : key();
        byte[] to = random.nextInt(10) == 0 ? null : key();
        boolean isReverse = random.nextBoolean();
        NavigableMap<byte[], byte[]> part = part(expected, from, to);
        Rows rows = readable.rangeOrNull(from, to, isReverse);
        assertEquals(part.isEmpty(), rows == null);
        if (rows != null) {
            var entries = (isReverse ? part.descendingMap() : part).entrySet().iterator();
            assertRows(rows, entries);
        }
    }

    private static NavigableMap<byte[], byte[]> part(
            NavigableMap<byte[], byte[]> map, byte[] from, byte[] to) {
        if (from != null && to != null && Arrays.compareUnsigned(from, to) > 0) {
            return new TreeMap<>(map.comparator());
        }
        NavigableMap<byte[], byte[]> part = from == null ? map : map.tailMap(from, true);
        return to == null ? part : part.headMap(to, false);
    }

    private static void assertRows(Rows rows, Iterator<Map.Entry<byte[], byte[]>> entries) {
        while (entries.hasNext()) {
            Map.Entry<byte[], byte[]> entry = entries.next();
            assertEquals(new Row(entry.getKey(), entry.getValue()), rows.next());
        }
        assertEquals(false, rows.hasNext());
    }

    private static void assertSame(Readable readable, NavigableMap<byte[], byte[]> map) {
        assertRows(readable.range(null, null), map.entrySet().iterator());
        assertRows(readable.rangeReverse(null, null), map.descendingMap().entrySet().iterator());
    }

    private void deleteRange() {
        byte[] from = key();
        byte[] to = Arrays.copyOf(from, from.length + 1);
        to[from.length] = '5';
        store.deleteRange(from, to);
        part(model, from, to).clear();
    }

    private void batch() {
        WriteBatch batch = new WriteBatch();
        for (int writes = random.nextInt(20); writes > 0; writes--) {
            byte[] key = key();
            byte[] value = value();
            switch (random.nextInt(4)) {
                case 0 -> {
                    batch.put(words, key, value);
                    otherModel.put(key, value);
                }
                case 1 -> {
                    batch.delete(words, key);
                    otherModel.remove(key);
                }
                case 2 -> {
                    batch.put(key, value);
                    model.put(key, value);
                }
                default -> {
                    batch.delete(key);
                    model.remove(key);
                }
            }
        }
        store.write(batch);
    }

    private void transaction() {
        NavigableMap<byte[], byte[]> inside = new TreeMap<>(model);
        NavigableMap<byte[], byte[]> there = new TreeMap<>(otherModel);
        try (Transaction transaction = store.transaction()) {
            for (int steps = random.nextInt(10); steps > 0; steps--) {
                byte[] key = key();
                byte[] value = value();
                assertArrayEquals(inside.get(key), transaction.get(key));
                transaction.put(key, value);
                inside.put(key, value);
                transaction.of(words).delete(key);
                there.remove(key);
                range(transaction, inside);
                range(transaction.of(words), there);
            }
            if (random.nextBoolean()) {
                transaction.commit();
                model = inside;
                otherModel = there;
            }
        }
    }

    private void snapshot() {
        NavigableMap<byte[], byte[]> before = new TreeMap<>(model);
        try (Snapshot snapshot = store.snapshot()) {
            for (int writes = 0; writes < 5; writes++) {
                put();
            }
            range(snapshot, before);
            range(snapshot.of(words), otherModel);
        }
    }

    private void getMany() {
        List<byte[]> keys = new ArrayList<>();
        for (int count = random.nextInt(30); count > 0; count--) {
            keys.add(key());
        }
        List<byte[]> values = store.getMany(keys);
        for (int place = 0; place < keys.size(); place++) {
            assertArrayEquals(model.get(keys.get(place)), values.get(place));
        }
    }

    private void rest() {
        switch (random.nextInt(8)) {
            case 0 -> store.flush();
            case 1 -> words.compact();
            case 2 -> {
                store.close();
                open();
            }
            default -> assertSame(store, model);
        }
    }
}
