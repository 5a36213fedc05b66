package orders;

import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.LocalTime;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.apache.kafka.streams.state.QueryableStoreTypes;

/**
 * Counts the orders of each customer and of each minute. It shows the counts on its output and on
 * http://127.0.0.1:8080, with the number of records replayed since it started.
 */
public final class OrdersApp {
    static final String ORDERS = "orders";

    private static final int PORT = 8080;
    private static final int SHOWN = 20;

    private final KafkaStreams streams;
    private final AtomicLong replayed = new AtomicLong();

    private OrdersApp(Properties config) {
        StreamsBuilder builder = new StreamsBuilder();
        var orders = builder.<String, String>stream(ORDERS).groupByKey();
        orders.count(Materialized.as("orders-of-customers"));
        orders.windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofMinutes(1)))
                .count(Materialized.as("orders-of-minutes"));
        streams = new KafkaStreams(builder.build(config), config);
        streams.setGlobalStateRestoreListener(new CountReplayed());
    }

    /** Runs until it is stopped. */
    public static void main(String[] arguments) throws Exception {
        Properties config = new Properties();
        try (InputStream file = OrdersApp.class.getResourceAsStream("/application.properties")) {
            config.load(file);
        }
        OrdersApp app = new OrdersApp(config);
        Runtime.getRuntime().addShutdownHook(
                new Thread(() -> app.streams.close(Duration.ofSeconds(10))));
        app.streams.start();
        app.servePage();
        while (true) {
            Thread.sleep(1_000);
            System.out.println(app.line());
        }
    }

    /** A summary of the customers' counts. */
    private record Counted(long orders, long customers, List<KeyValue<String, Long>> first) {}

    private Counted counted() {
        long orders = 0;
        long customers = 0;
        List<KeyValue<String, Long>> first = new ArrayList<>();
        var store = streams.store(StoreQueryParameters.fromNameAndType("orders-of-customers",
                QueryableStoreTypes.<String, Long>keyValueStore()));
        try (var rows = store.all()) {
            while (rows.hasNext()) {
                KeyValue<String, Long> row = rows.next();
                orders += row.value;
                customers++;
                if (first.size() < SHOWN) {
                    first.add(row);
                }
            }
        }
        return new Counted(orders, customers, first);
    }

    private String line() {
        String now = LocalTime.now().truncatedTo(ChronoUnit.SECONDS).toString();
        try {
            Counted counted = counted();
            return String.format("%s  %,d orders of %,d customers; records replayed: %d", now,
                    counted.orders, counted.customers, replayed.get());
        } catch (InvalidStateStoreException notYet) {
            return now + "  starting: " + streams.state();
        }
    }

    private void servePage() throws IOException {
        HttpServer server = HttpServer.create(
                new InetSocketAddress(InetAddress.getLoopbackAddress(), PORT), 0);
        server.createContext("/", exchange -> {
            byte[] page = page().getBytes(StandardCharsets.UTF_8);
            exchange.getResponseHeaders().set("Content-Type", "text/html; charset=utf-8");
            exchange.sendResponseHeaders(200, page.length);
            try (var body = exchange.getResponseBody()) {
                body.write(page);
            }
        });
        server.start();
    }

    private String page() {
        StringBuilder page = new StringBuilder("<!doctype html><title>Orders</title>"
                + "<meta http-equiv=refresh content=1><h1>Orders</h1><p>" + line() + "</p>");
        try {
            page.append("<table><tr><th>customer<th>orders");
            counted().first.forEach(row -> page.append("<tr><td>").append(row.key)
                    .append("<td align=right>").append(row.value));
            page.append("</table>");
        } catch (InvalidStateStoreException notYet) {
            page.append("</table>");
        }
        return page.toString();
    }

    private final class CountReplayed implements StateRestoreListener {
        @Override
        public void onRestoreStart(TopicPartition from, String store, long first, long end) {}

        @Override
        public void onBatchRestored(TopicPartition from, String store, long end, long records) {
            replayed.addAndGet(records);
        }

        @Override
        public void onRestoreEnd(TopicPartition from, String store, long total) {}
    }
}
