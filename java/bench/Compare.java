import com.sun.management.OperatingSystemMXBean;
import dev.trommel.Options;
import dev.trommel.Row;
import dev.trommel.Rows;
import dev.trommel.Store;
import dev.trommel.WriteBatch;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.TreeMap;
import org.rocksdb.BlockBasedTableConfig;
import org.rocksdb.BloomFilter;
import org.rocksdb.CompressionType;
import org.rocksdb.FlushOptions;
import org.rocksdb.LRUCache;
import org.rocksdb.LiveFileMetaData;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;
import org.rocksdb.RocksIterator;

/**
 * Compares Trommel with RocksDB. Keys are 16 random bytes, values 100; there is no compression, the
 * write buffer has 16 MiB, the cache 256 MiB; RocksDB's Bloom filters have 12 bits for each key.
 * Before reads everything is compacted; the shapes that come of it are printed. Rounds of both
 * engines take turns; what is printed is the median of the rounds, in nanoseconds of CPU time of
 * the calling thread for each key, range or row. "At rest" counts the CPU time of all threads until
 * no flush or merge is due.
 */
public final class Compare {
    private static final int KEY_BYTES = 16;
    private static final int VALUE_BYTES = 100;
    private static final int BATCH = 1000;
    private static final long BUFFER_BYTES = 16 << 20;
    private static final long CACHE_BYTES = 256 << 20;
    private static final int BLOOM_BITS = 12;
    /** Of the first 8 bytes of a key: so wide are short ranges. */
    private static final long SHORT_RANGE = 1L << 30;

    /** What the package is to reach: the greatest part of RocksDB's time. */
    private static final Map<String, Double> TARGETS =
            Map.of(
                    "put one by one", 1.0,
                    "get, hit", 0.6,
                    "get, miss", 0.6,
                    "empty short range", 0.35,
                    "row of a full scan", 0.7);

    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    private static final OperatingSystemMXBean PROCESS =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    /** So that nothing is optimized away. */
    private static long sink;

    private Compare() {}

    /** An engine, with what both can do. */
    private interface Engine extends AutoCloseable {
        String name();

        void put(byte[] key, byte[] value) throws Exception;

        void putBatch(List<byte[]> keys, byte[] value) throws Exception;

        void rest() throws Exception;

        void compact() throws Exception;

        String shape() throws Exception;

        byte[] get(byte[] key) throws Exception;

        List<byte[]> getMany(List<byte[]> keys) throws Exception;

        /** How many rows a range has. */
        int range(byte[] from, byte[] to) throws Exception;

        int scan() throws Exception;

        @Override
        void close();
    }

    private static final class Trommel implements Engine {
        private final Store store;

        Trommel(Path path) {
            Options options =
                    new Options()
                            .set("write_buffer_bytes", BUFFER_BYTES)
                            .set("block_cache_bytes", CACHE_BYTES)
                            .set("compression", "none");
            store = Store.open(path, options);
        }

        @Override
        public String name() {
            return "trommel";
        }

        @Override
        public void put(byte[] key, byte[] value) {
            store.put(key, value);
        }

        @Override
        public void putBatch(List<byte[]> keys, byte[] value) {
            WriteBatch batch = new WriteBatch();
            keys.forEach(key -> batch.put(key, value));
            store.write(batch);
        }

        @Override
        public void rest() {
            store.flush();
            store.settle();
        }

        @Override
        public void compact() {
            store.compact();
        }

        @Override
        public String shape() {
            Map<String, Object> stats = store.stats();
            return "runs by level " + stats.get("runs") + ", bytes " + stats.get("table_bytes");
        }

        @Override
        public byte[] get(byte[] key) {
            return store.get(key);
        }

        @Override
        public List<byte[]> getMany(List<byte[]> keys) {
            return store.getMany(keys);
        }

        @Override
        public int range(byte[] from, byte[] to) {
            Rows rows = store.rangeOrNull(from, to, false);
            if (rows == null) {
                return 0;
            }
            int count = 0;
            for (; rows.hasNext(); count++) {
                sink += rows.next().value().length;
            }
            return count;
        }

        @Override
        public int scan() {
            int count = 0;
            for (Row row : store) {
                sink += row.key().length + row.value().length;
                count++;
            }
            return count;
        }

        @Override
        public void close() {
            store.close();
        }
    }

    private static final class Rocks implements Engine {
        private final org.rocksdb.Options options = new org.rocksdb.Options();
        private final org.rocksdb.WriteOptions writes = new org.rocksdb.WriteOptions();
        private final RocksDB store;

        Rocks(Path path) throws RocksDBException {
            BlockBasedTableConfig tables =
                    new BlockBasedTableConfig()
                            .setFilterPolicy(new BloomFilter(BLOOM_BITS))
                            .setBlockCache(new LRUCache(CACHE_BYTES));
            options.setCreateIfMissing(true)
                    .setWriteBufferSize(BUFFER_BYTES)
                    .setCompressionType(CompressionType.NO_COMPRESSION)
                    .setMaxBackgroundJobs(2)
                    .setTableFormatConfig(tables);
            store = RocksDB.open(options, path.toString());
        }

        @Override
        public String name() {
            return "rocksdb";
        }

        @Override
        public void put(byte[] key, byte[] value) throws RocksDBException {
            store.put(writes, key, value);
        }

        @Override
        public void putBatch(List<byte[]> keys, byte[] value) throws RocksDBException {
            try (org.rocksdb.WriteBatch batch = new org.rocksdb.WriteBatch()) {
                for (byte[] key : keys) {
                    batch.put(key, value);
                }
                store.write(writes, batch);
            }
        }

        @Override
        public void rest() throws Exception {
            try (FlushOptions flush = new FlushOptions().setWaitForFlush(true)) {
                store.flush(flush);
            }
            List<String> due =
                    List.of(
                            "rocksdb.num-running-compactions",
                            "rocksdb.compaction-pending",
                            "rocksdb.num-running-flushes");
            for (int still = 0; still < 5; ) {
                boolean isBusy = false;
                for (String property : due) {
                    isBusy |= store.getLongProperty(property) != 0;
                }
                still = isBusy ? 0 : still + 1;
                Thread.sleep(10);
            }
        }

        @Override
        public void compact() throws RocksDBException {
            store.compactRange();
        }

        @Override
        public String shape() {
            Map<Integer, Integer> files = new TreeMap<>();
            long bytes = 0;
            for (LiveFileMetaData file : store.getLiveFilesMetaData()) {
                files.merge(file.level(), 1, Integer::sum);
                bytes += file.size();
            }
            return "files by level " + files + ", bytes " + bytes;
        }

        @Override
        public byte[] get(byte[] key) throws RocksDBException {
            return store.get(key);
        }

        @Override
        public List<byte[]> getMany(List<byte[]> keys) throws RocksDBException {
            return store.multiGetAsList(keys);
        }

        @Override
        public int range(byte[] from, byte[] to) {
            int count = 0;
            try (RocksIterator rows = store.newIterator()) {
                rows.seek(from);
                while (rows.isValid() && Arrays.compareUnsigned(rows.key(), to) < 0) {
                    sink += rows.value().length;
                    count++;
                    rows.next();
                }
            }
            return count;
        }

        @Override
        public int scan() {
            int count = 0;
            try (RocksIterator rows = store.newIterator()) {
                for (rows.seekToFirst(); rows.isValid(); rows.next()) {
                    sink += rows.key().length + rows.value().length;
                    count++;
                }
            }
            return count;
        }

        @Override
        public void close() {
            store.close();
            writes.close();
            options.close();
        }
    }

    private interface Opener {
        Engine open(Path path) throws Exception;
    }

    /** A piece of work, and how many steps it has. */
    private interface Work {
        long run() throws Exception;
    }

    /** Nanoseconds of this thread for each step. */
    private static double timed(Work work) throws Exception {
        long begun = THREADS.getCurrentThreadCpuTime();
        long steps = work.run();
        return (THREADS.getCurrentThreadCpuTime() - begun) / (double) steps;
    }

    private static byte[] key(SplittableRandom random) {
        long first = random.nextLong();
        return ByteBuffer.allocate(KEY_BYTES).putLong(first).putLong(random.nextLong()).array();
    }

    private static List<byte[]> keys(long seed, int count) {
        SplittableRandom random = new SplittableRandom(seed);
        List<byte[]> keys = new ArrayList<>(count);
        for (int number = 0; number < count; number++) {
            keys.add(key(random));
        }
        return keys;
    }

    private static byte[] rangeEnd(byte[] from) {
        byte[] end = from.clone();
        ByteBuffer buffer = ByteBuffer.wrap(end);
        return buffer.putLong(0, buffer.getLong(0) + SHORT_RANGE).array();
    }

    /** One round of an engine: what each row took. */
    private static Map<String, Double> round(Opener opener, List<byte[]> keys, boolean isShown)
            throws Exception {
        Map<String, Double> took = new LinkedHashMap<>();
        Path folder = Files.createTempDirectory("compare");
        try {
            byte[] value = new byte[VALUE_BYTES];
            new SplittableRandom(3).nextBytes(value);
            try (Engine engine = opener.open(folder.resolve("batches"))) {
                took.put("put in batches of 1000", timed(() -> putBatches(engine, keys, value)));
            }
            try (Engine engine = opener.open(folder.resolve("single"))) {
                long begun = PROCESS.getProcessCpuTime();
                took.put("put one by one", timed(() -> putAll(engine, keys, value)));
                engine.rest();
                long all = PROCESS.getProcessCpuTime() - begun;
                took.put("put one by one, at rest", all / (double) keys.size());
                String loaded = engine.shape();
                engine.compact();
                engine.rest();
                if (isShown) {
                    System.out.println(engine.name() + ", loaded: " + loaded);
                    System.out.println(engine.name() + ", compacted: " + engine.shape());
                }
                reads(engine, keys, took);
            }
        } finally {
            remove(folder);
        }
        return took;
    }

    private static long putAll(Engine engine, List<byte[]> keys, byte[] value) throws Exception {
        for (byte[] key : keys) {
            engine.put(key, value);
        }
        return keys.size();
    }

    private static long putBatches(Engine engine, List<byte[]> keys, byte[] value)
            throws Exception {
        for (int at = 0; at < keys.size(); at += BATCH) {
            engine.putBatch(keys.subList(at, Math.min(at + BATCH, keys.size())), value);
        }
        return keys.size();
    }

    private static void reads(Engine engine, List<byte[]> keys, Map<String, Double> took)
            throws Exception {
        List<byte[]> others = keys(2, keys.size());
        // The order is not that of the writes.
        List<byte[]> shuffled = new ArrayList<>(keys);
        java.util.Collections.shuffle(shuffled, new java.util.Random(4));
        engine.scan();
        took.put("get, hit", timed(() -> getAll(engine, shuffled, shuffled.size())));
        took.put("get, miss", timed(() -> getAll(engine, others, 0)));
        took.put("get of 1000 at once, hit", timed(() -> getBatches(engine, shuffled)));
        took.put("empty short range", timed(() -> ranges(engine, others, 0)));
        took.put("short range of one row", timed(() -> ranges(engine, shuffled, keys.size())));
        took.put("row of a full scan", timed(() -> expect(engine.scan(), keys.size())));
    }

    private static long getAll(Engine engine, List<byte[]> keys, int expected) throws Exception {
        int found = 0;
        for (byte[] key : keys) {
            found += engine.get(key) == null ? 0 : 1;
        }
        expect(found, expected);
        return keys.size();
    }

    private static long getBatches(Engine engine, List<byte[]> keys) throws Exception {
        int found = 0;
        for (int at = 0; at < keys.size(); at += BATCH) {
            List<byte[]> some = keys.subList(at, Math.min(at + BATCH, keys.size()));
            for (byte[] value : engine.getMany(some)) {
                found += value == null ? 0 : 1;
            }
        }
        return expect(found, keys.size());
    }

    private static long ranges(Engine engine, List<byte[]> from, int expected) throws Exception {
        int rows = 0;
        for (byte[] key : from) {
            rows += engine.range(key, rangeEnd(key));
        }
        // A neighbour by chance may be in a range.
        if (rows < expected || rows > expected + from.size() / 100 + 2) {
            throw new IllegalStateException(rows + " rows, not " + expected);
        }
        return from.size();
    }

    private static long expect(int found, int expected) {
        if (found != expected) {
            throw new IllegalStateException(found + " are there, not " + expected);
        }
        return found;
    }

    private static void remove(Path folder) throws IOException {
        try (var files = Files.walk(folder)) {
            for (Path path : files.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(path);
            }
        }
    }

    private static double median(List<Map<String, Double>> rounds, String row) {
        double[] sorted = rounds.stream().mapToDouble(round -> round.get(row)).sorted().toArray();
        int middle = sorted.length / 2;
        return sorted.length % 2 == 1
                ? sorted[middle]
                : (sorted[middle - 1] + sorted[middle]) / 2;
    }

    private static int argument(String[] arguments, String name, int usual) {
        int at = Arrays.asList(arguments).indexOf(name);
        return at < 0 ? usual : Integer.parseInt(arguments[at + 1]);
    }

    /**
     * Prints the table.
     *
     * @param arguments "--keys" and "--rounds", each with a number
     * @throws Exception something went wrong
     */
    public static void main(String[] arguments) throws Exception {
        int count = argument(arguments, "--keys", 1_000_000);
        int rounds = argument(arguments, "--rounds", 3);
        RocksDB.loadLibrary();
        List<byte[]> keys = keys(1, count);
        // Both are compiled by then.
        List<byte[]> few = keys.subList(0, Math.min(count, 50_000));
        round(Trommel::new, few, false);
        round(Rocks::new, few, false);
        List<Map<String, Double>> own = new ArrayList<>();
        List<Map<String, Double>> other = new ArrayList<>();
        for (int turn = 0; turn < rounds; turn++) {
            own.add(round(Trommel::new, keys, turn == 0));
            other.add(round(Rocks::new, keys, turn == 0));
        }
        System.out.printf("%d keys, %d rounds, ns of CPU%n", count, rounds);
        System.out.println("| | trommel | rocksdbjni | ratio | target |");
        System.out.println("|---|---|---|---|---|");
        for (String row : own.get(0).keySet()) {
            double mine = median(own, row);
            double theirs = median(other, row);
            Double target = TARGETS.get(row);
            String told = target == null ? "" : "at most " + target;
            if (target != null && mine / theirs > target) {
                told += ", MISSED";
            }
            System.out.printf(
                    "| %s | %.0f | %.0f | %.2f | %s |%n",
                    row, mine, theirs, mine / theirs, told);
        }
        if (sink == 0) {
            throw new IllegalStateException("nothing was read");
        }
    }
}
