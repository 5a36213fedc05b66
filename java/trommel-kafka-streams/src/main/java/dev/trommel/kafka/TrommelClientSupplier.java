package dev.trommel.kafka;

import java.util.Map;
import java.util.Objects;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.streams.KafkaClientSupplier;

/**
 * Clients for Kafka Streams whose producers tell stores of Trommel when a transaction is committed.
 *
 * <p>Under exactly-once Kafka Streams 4.3 tells its stores nothing at commits. With this class
 * stores learn of each one, and a restart on an old folder replays nothing. Either name it in the
 * configuration as {@code default.client.supplier}, or give it to the constructor of
 * {@code KafkaStreams}. Where the runtime itself tells its stores ({@code
 * enable.transactional.statestores} of 4.4) it is not needed, and does no harm.
 */
public final class TrommelClientSupplier implements KafkaClientSupplier {
    private final KafkaClientSupplier inner;

    /** Makes Kafka's own clients. */
    public TrommelClientSupplier() {
        this(new OwnClients());
    }

    /**
     * Makes clients by another supplier, and goes between its producers and Kafka Streams.
     *
     * @param inner the other supplier
     */
    public TrommelClientSupplier(KafkaClientSupplier inner) {
        this.inner = Objects.requireNonNull(inner, "inner");
    }

    /**
     * A producer. One with a transactional id tells stores of commits.
     *
     * @param config the producer's configuration
     * @return the producer
     */
    @Override
    public Producer<byte[], byte[]> getProducer(Map<String, Object> config) {
        Producer<byte[], byte[]> producer = inner.getProducer(config);
        Object id = config.get(ProducerConfig.TRANSACTIONAL_ID_CONFIG);
        if (id == null) {
            return producer;
        }
        OpenStores.hooked(id.toString());
        return new CommitTellingProducer(producer);
    }

    @Override
    public Admin getAdmin(Map<String, Object> config) {
        return inner.getAdmin(config);
    }

    @Override
    public Consumer<byte[], byte[]> getConsumer(Map<String, Object> config) {
        return inner.getConsumer(config);
    }

    @Override
    public Consumer<byte[], byte[]> getRestoreConsumer(Map<String, Object> config) {
        return inner.getRestoreConsumer(config);
    }

    @Override
    public Consumer<byte[], byte[]> getGlobalConsumer(Map<String, Object> config) {
        return inner.getGlobalConsumer(config);
    }

    /** Kafka's own clients, by public classes. */
    private static final class OwnClients implements KafkaClientSupplier {
        @Override
        public Admin getAdmin(Map<String, Object> config) {
            return Admin.create(config);
        }

        @Override
        public Producer<byte[], byte[]> getProducer(Map<String, Object> config) {
            return new KafkaProducer<>(config, new ByteArraySerializer(),
                    new ByteArraySerializer());
        }

        @Override
        public Consumer<byte[], byte[]> getConsumer(Map<String, Object> config) {
            return new KafkaConsumer<>(config, new ByteArrayDeserializer(),
                    new ByteArrayDeserializer());
        }

        @Override
        public Consumer<byte[], byte[]> getRestoreConsumer(Map<String, Object> config) {
            return getConsumer(config);
        }

        @Override
        public Consumer<byte[], byte[]> getGlobalConsumer(Map<String, Object> config) {
            return getConsumer(config);
        }
    }
}
