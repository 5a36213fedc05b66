package dev.trommel.kafka;

import dev.trommel.Options;
import java.util.LinkedHashMap;
import java.util.Map;

/** Names of the configuration that stores of Trommel read from that of Kafka Streams. */
public final class TrommelConfig {
    /**
     * Options of the engine as text: {@code name=value}, one behind the other with white space or
     * semicolons between them, as in {@code "max_open_files=500 sync=50ms"}. Default: none.
     */
    public static final String OPTIONS = "trommel.options";

    /** Options of each key space (a store of a task has one), as {@link #OPTIONS}. */
    public static final String KEYSPACE_OPTIONS = "trommel.keyspace.options";

    /**
     * Bytes of the cache that all stores of an instance share, as a number or like
     * {@code 256MiB}. Default: the engine's.
     */
    public static final String CACHE_BYTES = "trommel.cache.bytes";

    /**
     * Whether the engine logs what stores write; {@code true} by default. Without a log writes
     * cost less, and a process that is killed replays what its last flush did not have.
     */
    public static final String LOG = "trommel.log";

    /**
     * Bytes of uncommitted writes of one store from which on they are written before the commit.
     * Under exactly-once a crash before that commit costs a full replay. Default: 64 MiB.
     */
    public static final String BUFFER_BYTES = "trommel.buffer.bytes";

    private static final long BUFFER_BYTES_DEFAULT = 64L << 20;
    private static final String BLOCK_CACHE_BYTES = "block_cache_bytes";
    private static final String GUARANTEE = "processing.guarantee";
    private static final String TRANSACTIONAL_STORES = "enable.transactional.statestores";
    private static final String CLIENT_SUPPLIER = "default.client.supplier";

    private final Map<String, ?> configs;

    TrommelConfig(Map<String, ?> configs) {
        this.configs = configs;
    }

    /** Options by which the engine is opened. */
    Options engineOptions() {
        Options options = options(OPTIONS);
        Object bytes = configs.get(CACHE_BYTES);
        if (bytes != null) {
            options = set(options, CACHE_BYTES, BLOCK_CACHE_BYTES, bytes.toString());
        }
        return options;
    }

    /** What is configured of them, to tell whether an open engine was opened by the same. */
    String engineText() {
        return configs.get(OPTIONS) + "; " + configs.get(CACHE_BYTES);
    }

    /** Options by which each key space is opened. */
    Options keyspaceOptions() {
        return set(options(KEYSPACE_OPTIONS), LOG, "log", String.valueOf(isTrue(LOG, true)));
    }

    /** From how many bytes on uncommitted writes are written. */
    long bufferBytes() {
        Object value = configs.get(BUFFER_BYTES);
        if (value == null) {
            return BUFFER_BYTES_DEFAULT;
        }
        try {
            long bytes = Long.parseLong(value.toString().trim());
            if (bytes > 0) {
                return bytes;
            }
        } catch (NumberFormatException notANumber) {
            // Said below.
        }
        throw new IllegalArgumentException(BUFFER_BYTES + " is '" + value
                + "'; it is a number of bytes from 1 on");
    }

    /** Whether the application runs under exactly-once. */
    boolean exactlyOnce() {
        return "exactly_once_v2".equals(String.valueOf(configs.get(GUARANTEE)));
    }

    /** Whether the runtime tells stores of each commit, also under exactly-once. */
    boolean runtimeTellsCommits() {
        return !exactlyOnce() || isTrue(TRANSACTIONAL_STORES, false);
    }

    /** Whether the configuration names the supplier of clients that tells stores of commits. */
    boolean namesClientSupplier() {
        Object named = configs.get(CLIENT_SUPPLIER);
        String name = named instanceof Class ? ((Class<?>) named).getName() : String.valueOf(named);
        return name.equals(TrommelClientSupplier.class.getName());
    }

    private boolean isTrue(String name, boolean otherwise) {
        Object value = configs.get(name);
        String text = value == null ? String.valueOf(otherwise) : value.toString().trim();
        if (text.equalsIgnoreCase("true") || text.equalsIgnoreCase("false")) {
            return Boolean.parseBoolean(text);
        }
        throw new IllegalArgumentException(name + " is '" + value + "'; it is true or false");
    }

    private Options options(String config) {
        Object value = configs.get(config);
        Options options = new Options();
        if (value == null) {
            return options;
        }
        for (Map.Entry<String, String> pair : pairs(config, value.toString()).entrySet()) {
            options = set(options, config, pair.getKey(), pair.getValue());
        }
        return options;
    }

    /** The pairs of a text. */
    static Map<String, String> pairs(String config, String text) {
        Map<String, String> pairs = new LinkedHashMap<>();
        for (String pair : text.trim().split("[\\s;]+")) {
            if (pair.isEmpty()) {
                continue;
            }
            int equals = pair.indexOf('=');
            if (equals <= 0) {
                throw new IllegalArgumentException(config + " has '" + pair
                        + "', which is not like name=value");
            }
            pairs.put(pair.substring(0, equals), pair.substring(equals + 1));
        }
        return pairs;
    }

    private static Options set(Options options, String config, String name, String value) {
        try {
            return options.set(name, value);
        } catch (RuntimeException refused) {
            throw new IllegalArgumentException(config + ": " + refused.getMessage(), refused);
        }
    }
}
