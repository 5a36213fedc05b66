package dev.trommel.kafka;

import java.util.SplittableRandom;

/**
 * What is sent to a tortured application: record {@code n} is a function of the seed and n, so that
 * the truth is computed from how many were sent. Times ascend, so nothing is ever late.
 */
final class Events {
    static final long WINDOW_MILLIS = 60_000;
    static final long GAP_MILLIS = 20_000;
    static final long JOIN_MILLIS = 15_000;

    private static final long HOUR_MILLIS = 3_600_000;
    private static final long STEP_MILLIS = 15;
    /** Brokers forget what is days old: records, and what producers last sent. */
    private static final long BEFORE_NOW_MILLIS = 12 * HOUR_MILLIS;
    private static final int HOT_KEYS = 100;
    private static final int COLD_KEYS = 3_000;
    private static final int TABLE_KEYS = 1_000;

    /** Which topic a record goes to. */
    enum Kind {
        LEFT, RIGHT, FIRST_TABLE, SECOND_TABLE
    }

    /** A record, but for the version that rows of tables have as value. */
    record Event(Kind kind, String key, long number, long time) {
        boolean isOfTable() {
            return kind == Kind.FIRST_TABLE || kind == Kind.SECOND_TABLE;
        }

        /** The value of a record of the stream. */
        String value() {
            return (kind == Kind.LEFT ? "l" : "r") + number;
        }
    }

    private final long seed;
    private final long firstTime;

    Events(long seed) {
        this.seed = seed;
        firstTime = System.currentTimeMillis() / HOUR_MILLIS * HOUR_MILLIS - BEFORE_NOW_MILLIS;
    }

    /** Half of the stream is of few keys, so that windows and sessions have more than one. */
    Event event(long number) {
        SplittableRandom random = new SplittableRandom(seed * 1_000_003 + number);
        long time = firstTime + number * STEP_MILLIS;
        int kind = random.nextInt(8);
        if (kind >= 6) {
            return new Event(kind == 6 ? Kind.FIRST_TABLE : Kind.SECOND_TABLE,
                    "row-" + random.nextInt(TABLE_KEYS), number, time);
        }
        String key = random.nextBoolean() ? "hot-" + random.nextInt(HOT_KEYS)
                : "cold-" + random.nextInt(COLD_KEYS);
        return new Event(kind < 3 ? Kind.LEFT : Kind.RIGHT, key, number, time);
    }

    static boolean isLeft(String value) {
        return value.startsWith("l");
    }

    static String session(String key, long start, long end) {
        return key + "@" + start + "-" + end;
    }
}
