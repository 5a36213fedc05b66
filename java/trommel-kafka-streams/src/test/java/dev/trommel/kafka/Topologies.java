package dev.trommel.kafka;

import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TopologyConfig;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.TimeWindows;

/** What instances do, by name. */
final class Topologies {
    private Topologies() {}

    static StreamsBuilder named(String name, Properties config) {
        StreamsBuilder builder =
                new StreamsBuilder(new TopologyConfig(new StreamsConfig(config)));
        switch (name) {
            case "story" -> story(builder);
            case "mixed" -> mixed(builder);
            case "torture" -> torture(builder);
            case "count" -> builder.stream(config.getProperty("input")).groupByKey().count();
            case "windowed" -> builder.stream(config.getProperty("input")).groupByKey()
                    .windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofMinutes(1))).count();
            case "join" -> join(builder, config.getProperty("input"));
            default -> throw new IllegalArgumentException("no topology " + name);
        }
        return builder;
    }

    /** Counts, counts of windows, and a table whose source is its changelog. */
    private static void story(StreamsBuilder builder) {
        var input = builder.<String, String>stream(Story.INPUT).groupByKey();
        input.count().toStream().mapValues(String::valueOf).to(Story.COUNTS);
        input.windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofHours(1))).count()
                .toStream((window, count) -> window.key()).mapValues(String::valueOf)
                .to(Story.WINDOWED_COUNTS);
        builder.<String, String>table(Story.TABLE, Materialized.as("names"))
                .toStream().to(Story.TABLE_CHANGES);
    }

    /** One task with a store of ours, chosen by itself, and one of the configuration. */
    private static void mixed(StreamsBuilder builder) {
        var input = builder.<String, String>stream(Story.INPUT).groupByKey();
        input.count(Materialized.as(TrommelStores.timestampedKeyValueStore("ours")))
                .toStream().mapValues(String::valueOf).to(Story.MIXED_COUNTS);
        input.windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofHours(1)))
                .count(Materialized.as("theirs"))
                .toStream((window, count) -> window.key()).mapValues(String::valueOf)
                .to(Story.MIXED_WINDOWED_COUNTS);
    }

    /** A join whose state is small. */
    private static void join(StreamsBuilder builder, String input) {
        builder.<String, String>stream(input + "-left").join(
                builder.<String, String>stream(input + "-right"), (one, other) -> one,
                JoinWindows.ofTimeDifferenceWithNoGrace(Duration.ofSeconds(10)));
    }

    /**
     * Everything with state. What comes of {@code EVENTS} depends on their order within a
     * partition alone, so it can be computed. Of the two tables' join the last change can, and
     * that each change is by one.
     */
    private static void torture(StreamsBuilder builder) {
        KStream<String, String> events = builder.stream(Torture.EVENTS);
        var grouped = events.groupByKey();
        grouped.count().toStream().mapValues(String::valueOf).to(Torture.COUNTS);
        grouped.windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofMillis(Events.WINDOW_MILLIS)))
                .count().toStream((window, count) -> window.key() + "@" + window.window().start())
                .mapValues(String::valueOf).to(Torture.WINDOWED_COUNTS);
        grouped.windowedBy(SessionWindows.ofInactivityGapWithNoGrace(
                        Duration.ofMillis(Events.GAP_MILLIS)))
                .count()
                .toStream((window, count) -> Events.session(window.key(),
                        window.window().start(), window.window().end()))
                .mapValues(String::valueOf).to(Torture.SESSIONS);
        KStream<String, String> left = events.filter((key, value) -> Events.isLeft(value));
        KStream<String, String> right = events.filter((key, value) -> !Events.isLeft(value));
        left.leftJoin(right, (one, other) -> one + "+" + other,
                        JoinWindows.ofTimeDifferenceWithNoGrace(
                                Duration.ofMillis(Events.JOIN_MILLIS)))
                .to(Torture.JOINED);
        KTable<String, String> first = builder.table(Torture.FIRST_TABLE);
        KTable<String, String> second = builder.<String, String>stream(Torture.SECOND_TABLE)
                .toTable();
        first.join(second, (one, other) -> one + "+" + other)
                .toStream().to(Torture.TABLES_JOINED);
    }
}
