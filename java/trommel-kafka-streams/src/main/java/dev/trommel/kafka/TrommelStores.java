package dev.trommel.kafka;

import java.time.Duration;
import java.util.Objects;
import java.util.function.Function;
import java.util.function.Supplier;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.state.HeadersBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowStore;

/**
 * Suppliers of stores, as {@code org.apache.kafka.streams.state.Stores} has them: give them to
 * {@code Materialized.as}, to {@code StreamJoined}, or to builders of {@code Stores}.
 *
 * <p>Versioned stores are not among them: the public interface of a restore gives keys and values
 * without timestamps, of which a versioned store is made. Use {@code
 * Stores.persistentVersionedKeyValueStore} for those tables.
 */
public final class TrommelStores {
    private TrommelStores() {}

    /**
     * A key-value store.
     *
     * @param name name of the store
     * @return its supplier
     */
    public static KeyValueBytesStoreSupplier keyValueStore(String name) {
        return new KeyValues(name, KeyValueBytes::new);
    }

    /**
     * A key-value store whose values have timestamps; operators of the DSL take this one.
     *
     * @param name name of the store
     * @return its supplier
     */
    public static KeyValueBytesStoreSupplier timestampedKeyValueStore(String name) {
        return new KeyValues(name, KeyValueBytes.Timestamped::new);
    }

    /**
     * A key-value store whose values have timestamps and headers.
     *
     * @param name name of the store
     * @return its supplier
     */
    public static KeyValueBytesStoreSupplier timestampedKeyValueStoreWithHeaders(String name) {
        return new KeyValuesWithHeaders(name, KeyValueBytes.WithHeaders::new);
    }

    /**
     * A window store.
     *
     * @param name name of the store
     * @param retentionPeriod how long windows are kept, in stream time; not shorter than a window
     * @param windowSize size of a window
     * @param retainDuplicates whether several values of one key and start are kept, as joins want
     * @return its supplier
     * @throws IllegalArgumentException if a duration is negative, or a window longer than retention
     */
    public static WindowBytesStoreSupplier windowStore(
            String name, Duration retentionPeriod, Duration windowSize, boolean retainDuplicates) {
        return new Windows(new WindowShape(Objects.requireNonNull(name, "name"), retentionPeriod,
                windowSize, retainDuplicates), WindowBytes::new);
    }

    /**
     * A window store whose values have timestamps.
     *
     * @param name name of the store
     * @param retentionPeriod how long windows are kept, in stream time; not shorter than a window
     * @param windowSize size of a window
     * @param retainDuplicates whether several values of one key and start are kept
     * @return its supplier
     * @throws IllegalArgumentException if a duration is negative, or a window longer than retention
     */
    public static WindowBytesStoreSupplier timestampedWindowStore(
            String name, Duration retentionPeriod, Duration windowSize, boolean retainDuplicates) {
        return new Windows(new WindowShape(Objects.requireNonNull(name, "name"), retentionPeriod,
                windowSize, retainDuplicates), WindowBytes.Timestamped::new);
    }

    /**
     * A window store whose values have timestamps and headers.
     *
     * @param name name of the store
     * @param retentionPeriod how long windows are kept, in stream time; not shorter than a window
     * @param windowSize size of a window
     * @param retainDuplicates whether several values of one key and start are kept
     * @return its supplier
     * @throws IllegalArgumentException if a duration is negative, or a window longer than retention
     */
    public static WindowBytesStoreSupplier timestampedWindowStoreWithHeaders(
            String name, Duration retentionPeriod, Duration windowSize, boolean retainDuplicates) {
        return new WindowsWithHeaders(new WindowShape(Objects.requireNonNull(name, "name"),
                retentionPeriod, windowSize, retainDuplicates), WindowBytes.WithHeaders::new);
    }

    /**
     * A session store.
     *
     * @param name name of the store
     * @param retentionPeriod how long sessions are kept, in stream time
     * @return its supplier
     * @throws IllegalArgumentException if the retention is negative
     */
    public static SessionBytesStoreSupplier sessionStore(String name, Duration retentionPeriod) {
        long retention = retention(name, retentionPeriod);
        return new Sessions(name, retention, () -> new SessionBytes(name, retention));
    }

    /**
     * A session store whose values have headers.
     *
     * @param name name of the store
     * @param retentionPeriod how long sessions are kept, in stream time
     * @return its supplier
     * @throws IllegalArgumentException if the retention is negative
     */
    public static SessionBytesStoreSupplier sessionStoreWithHeaders(
            String name, Duration retentionPeriod) {
        long retention = retention(name, retentionPeriod);
        return new SessionsWithHeaders(name, retention,
                () -> new SessionBytes.WithHeaders(name, retention));
    }

    private static long retention(String name, Duration retentionPeriod) {
        Objects.requireNonNull(name, "name");
        if (retentionPeriod.isNegative()) {
            throw new IllegalArgumentException("store " + name + ": retention " + retentionPeriod
                    + " cannot be negative");
        }
        return retentionPeriod.toMillis();
    }

    private static class KeyValues implements KeyValueBytesStoreSupplier {
        private final String name;
        private final Function<String, KeyValueBytes> make;

        KeyValues(String name, Function<String, KeyValueBytes> make) {
            this.name = Objects.requireNonNull(name, "name");
            this.make = make;
        }

        @Override
        public String name() {
            return name;
        }

        @Override
        public KeyValueStore<Bytes, byte[]> get() {
            return make.apply(name);
        }

        @Override
        public String metricsScope() {
            return "trommel";
        }
    }

    private static final class KeyValuesWithHeaders extends KeyValues
            implements HeadersBytesStoreSupplier {
        KeyValuesWithHeaders(String name, Function<String, KeyValueBytes> make) {
            super(name, make);
        }
    }

    private static class Windows implements WindowBytesStoreSupplier {
        private final WindowShape shape;
        private final Function<WindowShape, WindowBytes> make;

        Windows(WindowShape shape, Function<WindowShape, WindowBytes> make) {
            this.shape = shape;
            this.make = make;
        }

        @Override
        public String name() {
            return shape.name;
        }

        @Override
        public WindowStore<Bytes, byte[]> get() {
            return make.apply(shape);
        }

        @Override
        public String metricsScope() {
            return "trommel-window";
        }

        @Override
        public long segmentIntervalMs() {
            return shape.segmentInterval;
        }

        @Override
        public long windowSize() {
            return shape.windowSize;
        }

        @Override
        public boolean retainDuplicates() {
            return shape.retainDuplicates;
        }

        @Override
        public long retentionPeriod() {
            return shape.retention;
        }
    }

    private static final class WindowsWithHeaders extends Windows
            implements HeadersBytesStoreSupplier {
        WindowsWithHeaders(WindowShape shape, Function<WindowShape, WindowBytes> make) {
            super(shape, make);
        }
    }

    private static class Sessions implements SessionBytesStoreSupplier {
        private final String name;
        private final long retention;
        private final Supplier<SessionBytes> make;

        Sessions(String name, long retention, Supplier<SessionBytes> make) {
            this.name = name;
            this.retention = retention;
            this.make = make;
        }

        @Override
        public String name() {
            return name;
        }

        @Override
        public SessionStore<Bytes, byte[]> get() {
            return make.get();
        }

        @Override
        public String metricsScope() {
            return "trommel-session";
        }

        @Override
        public long segmentIntervalMs() {
            return WindowShape.segmentInterval(retention);
        }

        @Override
        public long retentionPeriod() {
            return retention;
        }
    }

    private static final class SessionsWithHeaders extends Sessions
            implements HeadersBytesStoreSupplier {
        SessionsWithHeaders(String name, long retention, Supplier<SessionBytes> make) {
            super(name, retention, make);
        }
    }
}
