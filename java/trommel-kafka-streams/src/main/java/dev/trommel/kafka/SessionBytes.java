package dev.trommel.kafka;

import java.nio.ByteBuffer;
import java.util.Objects;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.state.HeadersBytesStore;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.SessionStore;

/** A session store of bytes. Keys of its changelog are: key, end i64, start i64. */
class SessionBytes extends SegmentedBytes implements SessionStore<Bytes, byte[]> {
    private static final int SUFFIX_SIZE = 2 * Long.BYTES;

    SessionBytes(String name, long retention) {
        super(name, retention, WindowShape.segmentInterval(retention), SUFFIX_SIZE);
    }

    /** Values have headers in front. */
    static final class WithHeaders extends SessionBytes implements HeadersBytesStore {
        WithHeaders(String name, long retention) {
            super(name, retention);
        }
    }

    private static byte[] changelogKey(byte[] key, long start, long end) {
        return ByteBuffer.allocate(key.length + SUFFIX_SIZE)
                .put(key).putLong(end).putLong(start).array();
    }

    private static byte[] changelogKey(Windowed<Bytes> session) {
        Objects.requireNonNull(session, "sessionKey cannot be null");
        return changelogKey(keyBytes(session.key()), session.window().start(),
                session.window().end());
    }

    private static byte[] keyBytes(Bytes key) {
        return Objects.requireNonNull(key, "key cannot be null").get();
    }

    @Override
    final long timeOf(byte[] key) {
        return ByteBuffer.wrap(key).getLong(key.length - SUFFIX_SIZE);
    }

    @Override
    final int duplicateOf(byte[] key) {
        return 0;
    }

    private static long startOf(byte[] key) {
        return ByteBuffer.wrap(key).getLong(key.length - Long.BYTES);
    }

    @Override
    public final void put(Windowed<Bytes> session, byte[] aggregate) {
        writeKept(changelogKey(session), aggregate);
    }

    @Override
    public final void remove(Windowed<Bytes> session) {
        writeKept(changelogKey(session), null);
    }

    @Override
    public final byte[] fetchSession(Bytes key, long start, long end) {
        return getLive(changelogKey(keyBytes(key), start, end));
    }

    @Override
    public final KeyValueIterator<Windowed<Bytes>, byte[]> findSessions(
            long earliestEnd, long latestEnd) {
        Asked asked = new Asked(null, null, earliestEnd, latestEnd, Long.MAX_VALUE);
        return find(asked, oldestKeptTime(), false);
    }

    @Override
    public final KeyValueIterator<Windowed<Bytes>, byte[]> findSessions(
            Bytes key, long earliestEnd, long latestStart) {
        keyBytes(key);
        return find(new Asked(key, key, earliestEnd, Long.MAX_VALUE, latestStart), false);
    }

    @Override
    public final KeyValueIterator<Windowed<Bytes>, byte[]> backwardFindSessions(
            Bytes key, long earliestEnd, long latestStart) {
        keyBytes(key);
        return find(new Asked(key, key, earliestEnd, Long.MAX_VALUE, latestStart), true);
    }

    @Override
    public final KeyValueIterator<Windowed<Bytes>, byte[]> findSessions(
            Bytes keyFrom, Bytes keyTo, long earliestEnd, long latestStart) {
        return find(new Asked(keyFrom, keyTo, earliestEnd, Long.MAX_VALUE, latestStart), false);
    }

    @Override
    public final KeyValueIterator<Windowed<Bytes>, byte[]> backwardFindSessions(
            Bytes keyFrom, Bytes keyTo, long earliestEnd, long latestStart) {
        return find(new Asked(keyFrom, keyTo, earliestEnd, Long.MAX_VALUE, latestStart), true);
    }

    @Override
    public final KeyValueIterator<Windowed<Bytes>, byte[]> fetch(Bytes key) {
        return findSessions(key, 0, Long.MAX_VALUE);
    }

    @Override
    public final KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetch(Bytes key) {
        return backwardFindSessions(key, 0, Long.MAX_VALUE);
    }

    @Override
    public final KeyValueIterator<Windowed<Bytes>, byte[]> fetch(Bytes keyFrom, Bytes keyTo) {
        return findSessions(keyFrom, keyTo, 0, Long.MAX_VALUE);
    }

    @Override
    public final KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetch(
            Bytes keyFrom, Bytes keyTo) {
        return backwardFindSessions(keyFrom, keyTo, 0, Long.MAX_VALUE);
    }

    private KeyValueIterator<Windowed<Bytes>, byte[]> find(Asked asked, boolean reverse) {
        return find(asked, oldestLiveTime(), reverse);
    }

    private KeyValueIterator<Windowed<Bytes>, byte[]> find(
            Asked asked, long shownFrom, boolean reverse) {
        rows();
        long earliest = Math.max(asked.earliestEnd, shownFrom);
        long latest = Math.min(asked.latestEnd, streamTime());
        if (areReversed(asked.keyFrom, asked.keyTo) || earliest > latest) {
            return StateIterator.noWindows();
        }
        RowCursor found = between(earliest, latest, asked.first(earliest), asked.end(latest),
                reverse);
        return found == null ? StateIterator.noWindows()
                : new Sessions(this, found, asked, earliest, latest);
    }

    /** Which sessions somebody asks for. */
    private static final class Asked {
        final Bytes keyFrom;
        final Bytes keyTo;
        final long earliestEnd;
        final long latestEnd;
        final long latestStart;

        Asked(Bytes keyFrom, Bytes keyTo, long earliestEnd, long latestEnd, long latestStart) {
            this.keyFrom = keyFrom;
            this.keyTo = keyTo;
            this.earliestEnd = earliestEnd;
            this.latestEnd = latestEnd;
            this.latestStart = latestStart;
        }

        private boolean isOneKey() {
            return keyFrom != null && keyFrom.equals(keyTo);
        }

        byte[] first(long earliest) {
            if (isOneKey()) {
                return changelogKey(keyFrom.get(), 0, earliest);
            }
            return keyFrom == null ? null : keyFrom.get();
        }

        byte[] end(long latest) {
            byte[] suffix = changelogKey(new byte[0], Long.MAX_VALUE, latest);
            if (isOneKey()) {
                return RowKeys.successor(changelogKey(keyTo.get(), Long.MAX_VALUE, latest));
            }
            return keyTo == null ? null : endOf(keyTo.get(), suffix);
        }
    }

    /** Sessions of one key or several. */
    private static final class Sessions extends StateIterator<Windowed<Bytes>> {
        private final SessionBytes store;
        private final Asked asked;
        private final long earliest;
        private final long latest;

        Sessions(SessionBytes store, RowCursor cursor, Asked asked, long earliest, long latest) {
            super(store, cursor);
            this.store = store;
            this.asked = asked;
            this.earliest = earliest;
            this.latest = latest;
        }

        @Override
        Windowed<Bytes> keyOf(byte[] row) {
            byte[] found = RowKeys.segmentKey(row);
            long end = store.timeOf(found);
            long start = startOf(found);
            if (end < earliest || end > latest || start > asked.latestStart) {
                return null;
            }
            Bytes key = Bytes.wrap(store.keyOf(found));
            boolean isAsked = (asked.keyFrom == null || key.compareTo(asked.keyFrom) >= 0)
                    && (asked.keyTo == null || key.compareTo(asked.keyTo) <= 0);
            return isAsked ? new Windowed<>(key, new SessionWindow(start, end)) : null;
        }
    }
}
