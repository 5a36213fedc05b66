package dev.trommel.kafka;

import java.time.Duration;

/** What a window store is made from. */
final class WindowShape {
    /** Windows are deleted by segments, of which a retention has about two. */
    private static final long SEGMENT_INTERVAL_MIN = 60_000;

    final String name;
    final long retention;
    final long segmentInterval;
    final long windowSize;
    final boolean retainDuplicates;

    WindowShape(String name, Duration retention, Duration windowSize, boolean retainDuplicates) {
        this.name = name;
        this.retention = retention.toMillis();
        this.segmentInterval = segmentInterval(this.retention);
        this.windowSize = windowSize.toMillis();
        this.retainDuplicates = retainDuplicates;
        if (this.retention < 0 || this.windowSize < 0) {
            throw new IllegalArgumentException("store " + name + ": retention " + retention
                    + " and size of windows " + windowSize + " cannot be negative");
        }
        if (this.windowSize > this.retention) {
            throw new IllegalArgumentException("store " + name + ": retention " + retention
                    + " cannot be shorter than a window, which is " + windowSize);
        }
    }

    static long segmentInterval(long retention) {
        return Math.max(retention / 2, SEGMENT_INTERVAL_MIN);
    }
}
