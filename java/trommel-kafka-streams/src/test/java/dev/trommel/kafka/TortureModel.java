package dev.trommel.kafka;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.Map;

/**
 * What outputs are to be, computed from the records that were sent. All values of a key of an
 * output are folded into one number, in their order. Joins of streams are folded without order:
 * when a record without match comes out depends on the clock.
 */
final class TortureModel {
    /** All values of one key of an output. */
    static final class Values {
        private static final int SHOWN_MAX = 150;

        long count;
        long hash;
        String shown = "";

        void add(String value, boolean isOrdered) {
            count++;
            if (shown.length() < SHOWN_MAX) {
                shown += " " + value;
            }
            long mixed = mix(value.hashCode() * 0x9E3779B97F4A7C15L + value.length());
            hash = (isOrdered ? hash * 31 : hash) + mixed;
        }

        private static long mix(long bits) {
            long once = (bits ^ (bits >>> 30)) * 0xBF58476D1CE4E5B9L;
            return once ^ (once >>> 27);
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Values same && same.count == count && same.hash == hash;
        }

        @Override
        public int hashCode() {
            return Long.hashCode(hash);
        }

        @Override
        public String toString() {
            return count + " values of hash " + Long.toHexString(hash) + ", first" + shown;
        }
    }

    /** A record of one side of the join that the other side may still meet. */
    private static final class Waiting {
        final String value;
        final long time;
        boolean met;

        Waiting(String value, long time) {
            this.value = value;
            this.time = time;
        }
    }

    private static final class OfKey {
        final Deque<Waiting> lefts = new ArrayDeque<>();
        final Deque<Waiting> rights = new ArrayDeque<>();
        long count;
        long window = -1;
        long windowCount;
        long sessionStart;
        long sessionEnd = Long.MIN_VALUE / 2;
        long sessionCount;
    }

    private final Map<String, Map<String, Values>> outputs = new HashMap<>();
    private final Map<String, OfKey> keys = new HashMap<>();
    private final Map<String, long[]> versions = new HashMap<>();

    /** Computes outputs of the first so many records. */
    TortureModel(Events events, long sent) {
        for (long number = 0; number < sent; number++) {
            Events.Event event = events.event(number);
            if (event.isOfTable()) {
                long[] both = versions.computeIfAbsent(event.key(), key -> new long[2]);
                both[event.kind() == Events.Kind.FIRST_TABLE ? 0 : 1]++;
            } else {
                happens(event, keys.computeIfAbsent(event.key(), key -> new OfKey()));
            }
        }
        keys.forEach((key, of) -> {
            of.lefts.forEach(left -> comesOutAlone(key, left));
        });
    }

    /** Values of all keys of an output. */
    Map<String, Values> output(String topic) {
        return outputs.getOrDefault(topic, Map.of());
    }

    /** How many values an output has. */
    long count(String topic) {
        return output(topic).values().stream().mapToLong(values -> values.count).sum();
    }

    /** How often each row of the two tables was set. */
    Map<String, long[]> versions() {
        return versions;
    }

    private void out(String topic, String key, String value) {
        outputs.computeIfAbsent(topic, one -> new HashMap<>())
                .computeIfAbsent(key, one -> new Values())
                .add(value, !topic.equals(Torture.JOINED));
    }

    private void happens(Events.Event event, OfKey of) {
        of.count++;
        out(Torture.COUNTS, event.key(), String.valueOf(of.count));
        long window = event.time() / Events.WINDOW_MILLIS * Events.WINDOW_MILLIS;
        of.windowCount = window == of.window ? of.windowCount + 1 : 1;
        of.window = window;
        out(Torture.WINDOWED_COUNTS, event.key() + "@" + window, String.valueOf(of.windowCount));
        session(event, of);
        join(event, of);
    }

    private void session(Events.Event event, OfKey of) {
        long time = event.time();
        if (time - of.sessionEnd <= Events.GAP_MILLIS) {
            out(Torture.SESSIONS, Events.session(event.key(), of.sessionStart, of.sessionEnd),
                    "null");
        } else {
            of.sessionStart = time;
            of.sessionCount = 0;
        }
        of.sessionEnd = time;
        of.sessionCount++;
        out(Torture.SESSIONS, Events.session(event.key(), of.sessionStart, time),
                String.valueOf(of.sessionCount));
    }

    private void join(Events.Event event, OfKey of) {
        boolean isLeft = event.kind() == Events.Kind.LEFT;
        forget(event, of);
        Waiting mine = new Waiting(event.value(), event.time());
        for (Waiting other : isLeft ? of.rights : of.lefts) {
            mine.met = true;
            other.met = true;
            out(Torture.JOINED, event.key(), isLeft ? mine.value + "+" + other.value
                    : other.value + "+" + mine.value);
        }
        (isLeft ? of.lefts : of.rights).add(mine);
    }

    /** Records that are too old to meet this one. */
    private void forget(Events.Event event, OfKey of) {
        long oldest = event.time() - Events.JOIN_MILLIS;
        while (!of.rights.isEmpty() && of.rights.peek().time < oldest) {
            of.rights.poll();
        }
        while (!of.lefts.isEmpty() && of.lefts.peek().time < oldest) {
            comesOutAlone(event.key(), of.lefts.poll());
        }
    }

    private void comesOutAlone(String key, Waiting left) {
        if (!left.met) {
            out(Torture.JOINED, key, left.value + "+null");
        }
    }
}
