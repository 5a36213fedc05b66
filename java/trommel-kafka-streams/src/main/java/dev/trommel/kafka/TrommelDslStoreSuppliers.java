package dev.trommel.kafka;

import org.apache.kafka.streams.state.DslKeyValueParams;
import org.apache.kafka.streams.state.DslSessionParams;
import org.apache.kafka.streams.state.DslStoreSuppliers;
import org.apache.kafka.streams.state.DslWindowParams;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;

/**
 * Stores of Trommel for operators of the DSL. Name it in the configuration as {@code
 * dsl.store.suppliers.class}; joins of streams want that configuration in a {@code TopologyConfig}
 * that the {@code StreamsBuilder} is made with.
 */
public final class TrommelDslStoreSuppliers implements DslStoreSuppliers {
    /** Kafka Streams makes one by this constructor. */
    public TrommelDslStoreSuppliers() {}

    /**
     * The key-value store of an operator.
     *
     * @param params name and format
     * @return its supplier
     */
    @Override
    public KeyValueBytesStoreSupplier keyValueStore(DslKeyValueParams params) {
        switch (params.dslStoreFormat()) {
            case HEADERS:
                return TrommelStores.timestampedKeyValueStoreWithHeaders(params.name());
            case TIMESTAMPED:
                return TrommelStores.timestampedKeyValueStore(params.name());
            default:
                return TrommelStores.keyValueStore(params.name());
        }
    }

    /**
     * The window store of an operator.
     *
     * @param params name, retention, size, duplicates and format
     * @return its supplier
     */
    @Override
    public WindowBytesStoreSupplier windowStore(DslWindowParams params) {
        if (params.dslStoreFormat() == null) {
            return timestamped(params);
        }
        switch (params.dslStoreFormat()) {
            case HEADERS:
                return TrommelStores.timestampedWindowStoreWithHeaders(params.name(),
                        params.retentionPeriod(), params.windowSize(), params.retainDuplicates());
            case TIMESTAMPED:
                return timestamped(params);
            default:
                return TrommelStores.windowStore(params.name(), params.retentionPeriod(),
                        params.windowSize(), params.retainDuplicates());
        }
    }

    private static WindowBytesStoreSupplier timestamped(DslWindowParams params) {
        return TrommelStores.timestampedWindowStore(params.name(), params.retentionPeriod(),
                params.windowSize(), params.retainDuplicates());
    }

    /**
     * The session store of an operator.
     *
     * @param params name, retention and format
     * @return its supplier
     */
    @Override
    public SessionBytesStoreSupplier sessionStore(DslSessionParams params) {
        if ("HEADERS".equals(String.valueOf(params.storeFormat()))) {
            return TrommelStores.sessionStoreWithHeaders(params.name(), params.retentionPeriod());
        }
        return TrommelStores.sessionStore(params.name(), params.retentionPeriod());
    }
}
