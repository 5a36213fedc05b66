package dev.trommel.kafka;

import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.kafka.common.TopicPartition;

/** Stores of this process that are open, by the changelog partition that the runtime named. */
final class OpenStores {
    private static final Map<TopicPartition, List<BytesStore>> BY_CHANGELOG =
            new ConcurrentHashMap<>();
    private static final Set<String> HOOKED_PRODUCERS = ConcurrentHashMap.newKeySet();
    private static final Set<String> WARNED_APPLICATIONS = ConcurrentHashMap.newKeySet();

    private OpenStores() {}

    static void add(TopicPartition changelog, BytesStore store) {
        BY_CHANGELOG.compute(changelog, (partition, stores) -> {
            List<BytesStore> all = stores == null ? new CopyOnWriteArrayList<>() : stores;
            if (!all.contains(store)) {
                all.add(store);
            }
            return all;
        });
    }

    static void remove(TopicPartition changelog, BytesStore store) {
        BY_CHANGELOG.computeIfPresent(changelog, (partition, stores) -> {
            stores.remove(store);
            return stores.isEmpty() ? null : stores;
        });
    }

    /** Open stores of a changelog partition: more than one if a process runs several instances. */
    static Collection<BytesStore> of(TopicPartition changelog) {
        return BY_CHANGELOG.getOrDefault(changelog, List.of());
    }

    /** Notes that a producer tells stores of commits. Its id begins with its application's. */
    static void hooked(String transactionalId) {
        HOOKED_PRODUCERS.add(transactionalId);
    }

    static boolean isHooked(String application) {
        return HOOKED_PRODUCERS.stream().anyMatch(id -> id.startsWith(application + "-"));
    }

    /** True once for each application. */
    static boolean firstWarning(String application) {
        return WARNED_APPLICATIONS.add(application);
    }
}
