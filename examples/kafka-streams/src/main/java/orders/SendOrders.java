package orders;

import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ThreadLocalRandom;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.serialization.StringSerializer;

/** Creates the topic of orders, and sends orders continuously. */
public final class SendOrders {
    private static final int PARTITIONS = 4;
    private static final int CUSTOMERS = 5_000;
    private static final int ORDERS_EACH_TICK = 50;
    private static final int TICK_MILLIS = 25;

    private SendOrders() {}

    /** Runs until it is stopped. */
    public static void main(String[] arguments) throws Exception {
        String servers = "127.0.0.1:9092";
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", servers))) {
            admin.createTopics(List.of(new NewTopic(OrdersApp.ORDERS, PARTITIONS, (short) 1)))
                    .all().get();
        } catch (ExecutionException problem) {
            if (!(problem.getCause() instanceof TopicExistsException)) {
                throw problem;
            }
        }
        System.out.println("sends orders");
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(
                Map.of("bootstrap.servers", servers, "linger.ms", 5),
                new StringSerializer(), new StringSerializer())) {
            while (true) {
                for (int order = 0; order < ORDERS_EACH_TICK; order++) {
                    int customer = ThreadLocalRandom.current().nextInt(CUSTOMERS);
                    producer.send(new ProducerRecord<>(OrdersApp.ORDERS,
                            String.format("customer-%05d", customer), "1 drum"));
                }
                Thread.sleep(TICK_MILLIS);
            }
        }
    }
}
