package dev.trommel.kafka;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.concurrent.atomic.AtomicLongArray;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecords;

/**
 * How long the rounds of a stream thread take, from when it has records to when it asks for the
 * next ones: what makes an instance late. A class of times is 5 % wide.
 */
final class LoopTimes {
    private static final double WIDTH = Math.log(1.05);
    private static final int CLASSES = 600;

    private final AtomicLongArray counts = new AtomicLongArray(CLASSES);

    /** The consumer, whose times between polls are noted. */
    @SuppressWarnings("unchecked")
    Consumer<byte[], byte[]> timed(Consumer<byte[], byte[]> consumer) {
        long[] answeredAt = {0};
        return (Consumer<byte[], byte[]>) Proxy.newProxyInstance(
                LoopTimes.class.getClassLoader(), new Class<?>[] {Consumer.class},
                (proxy, method, arguments) -> {
                    boolean isPoll = method.getName().equals("poll");
                    if (isPoll && answeredAt[0] != 0) {
                        note(System.nanoTime() - answeredAt[0]);
                        answeredAt[0] = 0;
                    }
                    try {
                        Object result = method.invoke(consumer, arguments);
                        if (isPoll && !((ConsumerRecords<?, ?>) result).isEmpty()) {
                            answeredAt[0] = System.nanoTime();
                        }
                        return result;
                    } catch (InvocationTargetException problem) {
                        throw problem.getCause();
                    }
                });
    }

    private void note(long nanos) {
        int at = (int) (Math.log(Math.max(1, nanos)) / WIDTH);
        counts.incrementAndGet(Math.min(at, CLASSES - 1));
    }

    /** Microseconds that a part of all rounds took at most. */
    private long micros(double part) {
        long all = 0;
        for (int at = 0; at < CLASSES; at++) {
            all += counts.get(at);
        }
        long seen = 0;
        for (int at = 0; at < CLASSES; at++) {
            seen += counts.get(at);
            if (seen > 0 && seen >= part * all) {
                return (long) (Math.exp((at + 1) * WIDTH) / 1000);
            }
        }
        return 0;
    }

    /** Microseconds: half of all rounds, 99 %, the longest. */
    @Override
    public String toString() {
        return micros(0.5) + " " + micros(0.99) + " " + micros(1);
    }
}
