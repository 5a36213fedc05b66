package dev.trommel.kafka;

import dev.trommel.DiskException;
import dev.trommel.StoppedException;
import dev.trommel.WriteBatch;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.apache.kafka.streams.processor.BatchingStateRestoreCallback;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.Query;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What all stores share: opening, commits, restoring.
 *
 * <pre>
 * init    generation of the folder = that of the key space? if not, the key space begins anew
 * put     into the buffer
 * commit  buffer, stream time, position, offset: one atomic write; by the runtime or our producer
 * close   what is not committed is gone: it belongs to a transaction that was not, either
 * </pre>
 */
abstract class BytesStore implements StateStore {
    private static final Logger LOG = LoggerFactory.getLogger(BytesStore.class);

    private final String name;
    private final Set<TopicPartition> changelogs = ConcurrentHashMap.newKeySet();
    private volatile boolean open;
    private volatile Thread writer;
    private StateStoreContext context;
    private TrommelConfig config;
    private StoreRows rows;
    private String space;
    private Path folder;
    private volatile Position position = Position.emptyPosition();
    private long bufferBytes;
    private boolean exactlyOnce;
    private boolean applied;
    private Map<TopicPartition, Long> stagedOffsets = Map.of();

    BytesStore(String name) {
        this.name = name;
    }

    /** The row of a key of the changelog; null: it has expired, and is not kept. */
    abstract byte[] restoredRow(byte[] changelogKey);

    /** Puts what a kind of store has beside rows, offset and position into a batch. */
    abstract void stageMore(WriteBatch batch);

    /** Puts what rows up to now say of the time into a batch, if a kind of store has that. */
    abstract void stageTime(WriteBatch batch);

    /** Whether {@link #stageMore} has something to put. */
    abstract boolean hasMore();

    /** Reads what {@link #stageMore} wrote. */
    abstract void readMore(StoreRows from);

    @Override
    public final String name() {
        return name;
    }

    @Override
    public final void init(StateStoreContext given, StateStore root) {
        context = given;
        config = new TrommelConfig(given.appConfigs());
        bufferBytes = config.bufferBytes();
        exactlyOnce = config.exactlyOnce();
        changelogs.clear();
        writer = null;
        folder = given.stateDir().toPath().toAbsolutePath();
        space = spaceName(folder);
        SharedEngine engine = SharedEngine.acquire(application(folder), config);
        try {
            rows = StoreRows.open(engine, space, Generation.of(folder, instance()), config);
            applied = rows.hasOffsets();
            position = Numbers.position(rows.meta(RowKeys.POSITION));
            readMore(rows);
        } catch (RuntimeException problem) {
            engine.release(space);
            throw problem instanceof ProcessorStateException ? problem
                    : new ProcessorStateException("Store " + name + " of task " + given.taskId()
                            + " cannot be opened in " + engine + ": " + problem.getMessage(),
                            problem);
        }
        open = true;
        onOpen();
        warnIfNobodyTellsCommits();
        if (root != null) {
            given.register(root, new Restoring());
        }
    }

    /** The folder of an application, in which are those of tasks and named topologies. */
    private static Path application(Path folder) {
        Path parent = folder.getParent();
        return isNamedTopology(parent) ? parent.getParent() : parent;
    }

    private static boolean isNamedTopology(Path folder) {
        String name = String.valueOf(folder.getFileName());
        return name.length() > 4 && name.startsWith("__") && name.endsWith("__");
    }

    /** The name of the key space: the task's folder within that of the application, the store's. */
    private String spaceName(Path folder) {
        String task = folder.getFileName().toString();
        String within = isNamedTopology(folder.getParent())
                ? folder.getParent().getFileName() + "/" + task : task;
        return within + "/" + name.replace("%", "%25").replace("/", "%2F");
    }

    private void warnIfNobodyTellsCommits() {
        boolean told = config.runtimeTellsCommits() || config.namesClientSupplier()
                || OpenStores.isHooked(context.applicationId());
        if (!told && OpenStores.firstWarning(context.applicationId())) {
            LOG.warn("Kafka Streams does not tell its stores of commits under exactly-once, so a"
                    + " killed instance of {} replays the changelog when it starts again. To go on"
                    + " without replay add: default.client.supplier={}",
                    context.applicationId(), TrommelClientSupplier.class.getName());
        }
    }

    final StateStoreContext context() {
        return context;
    }

    final StoreRows rows() {
        if (!open) {
            throw new InvalidStateStoreException("Store " + name + " is closed.");
        }
        return rows;
    }

    final SharedEngine engine() {
        return rows.engine();
    }

    /** Whether the last put was made on the calling thread. */
    final boolean isWrittenByThisThread() {
        return open && writer == Thread.currentThread();
    }

    /** Sets a row for the task at work; null deletes it. */
    final void write(byte[] row, byte[] value) {
        StoreRows to = rows();
        writer = Thread.currentThread();
        applied = true;
        to.put(row, value);
        advancePosition();
        if (to.uncommittedBytes() > bufferBytes) {
            spill();
        }
    }

    /** Notes which record the task is at. */
    final void advancePosition() {
        context.recordMetadata().ifPresent(record -> {
            if (record.topic() != null) {
                synchronized (position) {
                    position.withComponent(record.topic(), record.partition(), record.offset());
                }
            }
        });
    }

    /**
     * Writes what is not committed, as it is too much. At-least-once replays it from an older
     * offset. Under exactly-once the rows are then no committed state, so they have no offset.
     */
    private void spill() {
        WriteBatch batch = new WriteBatch();
        if (exactlyOnce && writer != null) {
            LOG.warn("Store {} of task {} has more than {} bytes of uncommitted writes, and writes"
                    + " them before the commit. A crash until then costs a full replay. A larger"
                    + " {} or more frequent commits avoid it.", name, context.taskId(),
                    bufferBytes, TrommelConfig.BUFFER_BYTES);
            rows.stageNoOffsets(batch);
            rows.offsetsGone();
        }
        stage(batch, Map.of());
        engine().write(batch);
        staged();
    }

    /** Puts a commit into a batch. {@link #staged} is called when it is written. */
    final void stage(WriteBatch batch, Map<TopicPartition, Long> offsets) {
        boolean changed = rows.hasUncommitted();
        if (hasMore()) {
            stageMore(batch);
        }
        rows.stageRows(batch);
        if (changed) {
            rows.stageMeta(batch, RowKeys.POSITION, Numbers.bytes(position));
        }
        rows.stageOffsets(batch, offsets);
        stagedOffsets = offsets;
    }

    /** Puts a commit of restored rows behind them. A later one deletes what has expired. */
    private void stageRestored(WriteBatch batch, Map<TopicPartition, Long> offsets) {
        stageTime(batch);
        rows.stageOffsets(batch, offsets);
    }

    /** What was staged is written, and its transaction is committed. */
    final void told() {
        staged();
        KeptFolders.grant(folder);
    }

    /** Whose task it is. Only under exactly-once the runtime deletes folders while it runs. */
    private Object instance() {
        return exactlyOnce ? context.metrics() : null;
    }

    /** What was staged is written. */
    void staged() {
        rows.committed(stagedOffsets);
        stagedOffsets = Map.of();
    }

    /**
     * Writes what is not committed together with offsets. No offsets for a store that has a
     * changelog say that its state is corrupt: then it begins anew.
     */
    @Override
    public final void commit(Map<TopicPartition, Long> offsets) {
        StoreRows to = rows();
        if (offsets.isEmpty() && !changelogs.isEmpty() && !isGlobal()) {
            LOG.info("The state of store {} of task {} is corrupt: its rows are dropped", name,
                    context.taskId());
            KeptFolders.withdraw(folder);
            beginAnew(to);
            return;
        }
        if (exactlyOnce && writer != null && to.hasUncommitted()) {
            // A task that begins again after a commit of unknown outcome is told to commit, too.
            KeptFolders.withdraw(folder);
        }
        Map<TopicPartition, Long> kept = applied ? offsets : Map.of();
        if (!applied && !offsets.isEmpty() && !isUnknown(offsets)) {
            LOG.info("Store {} of task {} has no rows, and takes no offset of another kind of"
                    + " store: it is restored from {}", name, context.taskId(), offsets.keySet());
        }
        boolean isChanged = to.hasUncommitted() || to.hasRestored() || hasMore();
        if (!isChanged && to.hasOffsets(kept)) {
            return;
        }
        boolean isRestoring = writer == null && !to.hasUncommitted();
        if (isRestoring && to.defer(batch -> stageRestored(batch, kept))) {
            to.committed(kept);
            return;
        }
        writeCommit(kept);
    }

    /**
     * Writes a commit. What the disk refuses goes with the next one, as long as it is not too much.
     * Kafka Streams does not get over what a commit throws while it restores: its thread for that
     * may die, and tasks wait for it in vain, for minutes.
     */
    private void writeCommit(Map<TopicPartition, Long> offsets) {
        try {
            WriteBatch batch = new WriteBatch();
            stage(batch, offsets);
            engine().write(batch);
            staged();
        } catch (DiskException | StoppedException refused) {
            if (rows.uncommittedBytes() > bufferBytes) {
                throw refused;
            }
            LOG.error("A commit of store {} of task {} could not be written; it is tried again with"
                    + " the next one. Until then a restart replays what it had. {}", name,
                    context.taskId(), refused.getMessage());
        }
    }

    private static boolean isUnknown(Map<TopicPartition, Long> offsets) {
        return offsets.values().stream()
                .allMatch(offset -> offset == null || offset == StoreRows.OFFSET_UNKNOWN);
    }

    /**
     * The offset that the rows are the state at. Rows without one may be of a transaction that was
     * not committed: under exactly-once they are dropped. An empty store says that its offset is
     * unknown, so that all is restored and nothing else of the task is wiped.
     */
    @Override
    public final Long committedOffset(TopicPartition partition) {
        StoreRows from = rows();
        if (changelogs.add(partition)) {
            OpenStores.add(partition, this);
        }
        Long offset = from.offset(partition);
        if (isGlobal()) {
            return offset != null && offset == StoreRows.OFFSET_UNKNOWN ? null : offset;
        }
        if (offset == null && exactlyOnce && from.hasStored()) {
            LOG.info("Store {} of task {} has rows of no known offset: they are dropped, and"
                    + " restored from {}", name, context.taskId(), partition);
            beginAnew(from);
        }
        if (offset != null || from.hasStored()) {
            return offset;
        }
        sayIfOthersHaveRows();
        return StoreRows.OFFSET_UNKNOWN;
    }

    /** Whoever changed to these stores wants to know why all is restored. */
    private void sayIfOthersHaveRows() {
        // Those of key-value stores, of windows.
        for (Path others : List.of(folder.resolve("rocksdb").resolve(name),
                folder.resolve(name))) {
            if (!Files.exists(others)) {
                continue;
            }
            LOG.info("Store {} of task {} has no rows yet, and {} has rows of another kind of"
                    + " store: all is restored from the changelog. That folder is for whoever goes"
                    + " back; else it may be deleted.", name, context.taskId(), others);
        }
    }

    private void beginAnew(StoreRows all) {
        all.dropAll();
        applied = false;
        position = Position.emptyPosition();
        readMore(all);
    }

    private boolean isGlobal() {
        return context.taskId().subtopology() < 0;
    }

    /** Offsets are kept with the rows. */
    @Override
    @Deprecated
    public final boolean managesOffsets() {
        return true;
    }

    @Override
    public final void close() {
        if (!open) {
            return;
        }
        writeRestored();
        open = false;
        changelogs.forEach(changelog -> OpenStores.remove(changelog, this));
        onClose();
        rows.engine().release(space);
    }

    /** What is restored is committed, so it is kept. Without it more is restored once more. */
    private void writeRestored() {
        try {
            rows.settle();
        } catch (RuntimeException problem) {
            LOG.error("Restored rows of store {} of task {} could not be written, and are to be"
                    + " restored again", name, context.taskId(), problem);
            rows.dropRestored();
        }
    }

    /** More to do at opening. */
    void onOpen() {}

    /** More to do at closing. */
    void onClose() {}

    @Override
    public final boolean persistent() {
        return true;
    }

    @Override
    public final boolean isOpen() {
        return open;
    }

    @Override
    public final Position getPosition() {
        return position;
    }

    /**
     * Bytes that wait for a commit. Kafka Streams from 4.4 on asks for it, to commit in time.
     *
     * @return bytes, about
     */
    public final long approximateNumUncommittedBytes() {
        return open ? rows.uncommittedBytes() + rows.restoredBytes() : 0;
    }

    @Override
    public final <R> QueryResult<R> query(
            Query<R> query, PositionBound bound, QueryConfig queryConfig) {
        return Queries.answer(this, query, bound, queryConfig);
    }

    /** Takes rows of the changelog. They are committed, so they may be written without offset. */
    private final class Restoring implements BatchingStateRestoreCallback {
        @Override
        public void restoreAll(Collection<KeyValue<byte[], byte[]>> records) {
            StoreRows to = rows();
            writer = null;
            boolean isAllCommitted = !to.hasUncommitted();
            for (KeyValue<byte[], byte[]> record : records) {
                byte[] row = record.key == null ? null : restoredRow(record.key);
                if (row != null && isAllCommitted) {
                    to.restore(row, record.value);
                } else if (row != null) {
                    to.put(row, record.value);
                }
            }
            applied |= !records.isEmpty();
            to.limitRestored();
            if (to.uncommittedBytes() > bufferBytes) {
                spill();
            }
        }
    }

    /** Whether bounds of keys are the wrong way round, which is said in the log. */
    static boolean areReversed(Bytes from, Bytes to) {
        if (from == null || to == null || from.compareTo(to) <= 0) {
            return false;
        }
        LOG.warn("A range from {} to {} is empty: its end is before its beginning. Serializers may"
                + " not keep the order, as those of negative numbers do not.", from, to);
        return true;
    }
}
