package dev.trommel.kafka;

import java.util.Map;
import org.apache.kafka.streams.state.RocksDBConfigSetter;
import org.rocksdb.BlockBasedTableConfig;
import org.rocksdb.Cache;
import org.rocksdb.LRUCache;
import org.rocksdb.Options;

/**
 * Default stores that share a cache, as ours do. Memory for writes is as Kafka Streams has it:
 * three buffers of 16 MiB for each store.
 */
public final class SharedCache implements RocksDBConfigSetter {
    /** Name of the configuration: MiB of cache. */
    static final String MEBIBYTES = "comparison.cache.mebibytes";

    private static Cache cache;

    /** Made by its name. */
    public SharedCache() {}

    @Override
    public void setConfig(String store, Options options, Map<String, Object> configs) {
        BlockBasedTableConfig tables = (BlockBasedTableConfig) options.tableFormatConfig();
        tables.setBlockCache(cache(configs));
        options.setTableFormatConfig(tables);
    }

    private static synchronized Cache cache(Map<String, Object> configs) {
        if (cache == null) {
            cache = new LRUCache(Long.parseLong(configs.get(MEBIBYTES).toString()) << 20);
        }
        return cache;
    }

    @Override
    public void close(String store, Options options) {
        // The cache is of all stores.
    }
}
