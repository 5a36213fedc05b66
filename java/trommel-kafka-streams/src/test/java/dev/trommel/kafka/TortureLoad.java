package dev.trommel.kafka;

import java.time.Duration;
import java.util.HashMap;
import java.util.Map;

import java.util.function.LongSupplier;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Sends events at a rate, each once and in order, whatever happens to brokers: so one request at a
 * time, as a broker that becomes leader and knows nothing of a producer takes any number first. It
 * waits while the application is far behind.
 */
final class TortureLoad implements AutoCloseable {
    /** Keys that only end what waits for time to pass begin so; nobody compares them. */
    static final String END = "end-";

    private static final int BEHIND_MAX = 40_000;
    private static final int TICK_MILLIS = 50;
    private static final int DELIVERY_MILLIS = 600_000;
    private static final long END_STEP_MILLIS = 10 * 60_000;

    private final KafkaProducer<String, String> producer;
    private final Events events;
    private final int rate;
    private final LongSupplier done;
    private final Map<String, Long> versions = new HashMap<>();
    private final Thread sender = new Thread(this::run, "load");
    private volatile boolean stopped;
    private volatile long sent;
    private volatile long sentEvents;
    private volatile Exception problem;
    private int ends;

    /** Sends so many records a second, while {@code done} of the stream's events follow. */
    TortureLoad(String servers, Events events, int rate, LongSupplier done) {
        producer = new KafkaProducer<>(Map.of("bootstrap.servers", servers, "linger.ms", 20,
                "acks", "all", "max.in.flight.requests.per.connection", 1,
                "delivery.timeout.ms", DELIVERY_MILLIS,
                "max.block.ms", DELIVERY_MILLIS), new StringSerializer(), new StringSerializer());
        this.events = events;
        this.rate = rate;
        this.done = done;
        sender.start();
    }

    private void run() {
        double owed = 0;
        try {
            while (!stopped) {
                Thread.sleep(TICK_MILLIS);
                if (sentEvents - done.getAsLong() > BEHIND_MAX) {
                    continue;
                }
                owed += rate * TICK_MILLIS / 1000.0;
                for (; owed >= 1; owed--) {
                    send(events.event(sent));
                    sent++;
                }
            }
            producer.flush();
        } catch (Exception ended) {
            problem = ended;
        }
    }

    private void send(Events.Event event) {
        String topic = switch (event.kind()) {
            case FIRST_TABLE -> Torture.FIRST_TABLE;
            case SECOND_TABLE -> Torture.SECOND_TABLE;
            default -> Torture.EVENTS;
        };
        String value = event.value();
        if (event.isOfTable()) {
            value = String.valueOf(versions.merge(event.kind() + event.key(), 1L, Long::sum));
        } else {
            sentEvents++;
        }
        post(new ProducerRecord<>(topic, null, event.time(), event.key(), value));
    }

    private void post(ProducerRecord<String, String> record) {
        producer.send(record, (metadata, refused) -> {
            if (refused != null) {
                problem = refused;
            }
        });
    }

    /** Ends the load; all that it sent is there then. */
    void stop() throws Exception {
        stopped = true;
        sender.join(DELIVERY_MILLIS);
        requireFine();
    }

    /** Lets time pass in each partition, so that records without match come out. */
    void letTimePass() {
        ends++;
        long time = events.event(sent).time() + ends * END_STEP_MILLIS;
        for (int partition = 0; partition < Torture.PARTITIONS; partition++) {
            String key = END + partition + "-" + ends;
            post(new ProducerRecord<>(Torture.EVENTS, partition, time, key,
                    ends % 2 == 0 ? "l" : "r"));
        }
        producer.flush();
    }

    /** Throws if a record may not have been sent. */
    void requireFine() {
        if (problem != null) {
            throw new IllegalStateException("records may be missing in the input", problem);
        }
    }

    long sent() {
        return sent;
    }

    /** Events of the stream that nobody has seen counted. */
    long behind() {
        return sentEvents - done.getAsLong();
    }

    @Override
    public void close() {
        stopped = true;
        producer.close(Duration.ofSeconds(5));
    }
}
