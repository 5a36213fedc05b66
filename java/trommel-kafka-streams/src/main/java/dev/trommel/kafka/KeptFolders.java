package dev.trommel.kafka;

import java.lang.ref.WeakReference;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;

/**
 * Folders of tasks whose rows stay although Kafka Streams deletes the folder. Under exactly-once it
 * does so whenever a task is not closed in good order, as after a pause so long that others took
 * over, since stores of other kinds may have rows of the aborted transaction then. Ours have not:
 * what is not committed was never written.
 *
 * <pre>
 * granted     the folder had its generation when it was opened, or a commit was told
 * withdrawn   writes whose transaction may not be committed were written, or the state is corrupt
 * taken       the folder was made anew, with the same generation; unless a transaction is committed
 *             meanwhile it is not granted again, so that a store which cannot be read is restored
 * </pre>
 *
 * <p>Invariant: a grant is of one instance of {@code KafkaStreams}, and ends with it. So whatever
 * is deleted while no instance runs, as by {@code cleanUp}, is gone.
 */
final class KeptFolders {
    /** Nobody needs the rows of a task that has been elsewhere for longer. */
    private static final long KEPT_NANOS = TimeUnit.MINUTES.toNanos(10);

    private static final Map<Path, Folder> FOLDERS = new ConcurrentHashMap<>();

    private enum State {
        GRANTED, WITHDRAWN, TAKEN
    }

    /** Of an instance, told by its metrics: each instance has an object of its own. */
    private record Folder(
            State state, byte[] generation, WeakReference<Object> instance, long since) {
        boolean isOf(Object other) {
            return other != null && instance.get() == other;
        }

        boolean isGranted() {
            return state == State.GRANTED && instance.get() != null
                    && System.nanoTime() - since < KEPT_NANOS;
        }
    }

    private KeptFolders() {}

    private static Folder folder(State state, byte[] generation, Object instance) {
        return new Folder(state, generation, new WeakReference<>(instance), System.nanoTime());
    }

    /** A folder that is there is opened. */
    static void opened(Path path, byte[] generation, Object instance) {
        if (instance != null) {
            Folder granted = folder(State.GRANTED, generation, instance);
            FOLDERS.merge(path, granted, (before, now) ->
                    before.state == State.TAKEN && before.isOf(instance) ? before : now);
        }
    }

    /** What is written is committed. Nothing, if the grant was withdrawn since the opening. */
    static void grant(Path path) {
        FOLDERS.computeIfPresent(path, (same, before) -> before.state == State.WITHDRAWN ? before
                : folder(State.GRANTED, before.generation, before.instance.get()));
    }

    /** What is written may not be committed. */
    static void withdraw(Path path) {
        FOLDERS.computeIfPresent(path, (same, before) ->
                folder(State.WITHDRAWN, before.generation, before.instance.get()));
    }

    /** The generation that a deleted folder had; null if its rows are to go. */
    static byte[] take(Path path, Object instance) {
        Folder before = FOLDERS.remove(path);
        if (before == null || !before.isGranted() || !before.isOf(instance)) {
            return null;
        }
        FOLDERS.put(path, folder(State.TAKEN, before.generation, instance));
        return before.generation;
    }

    /** Whether the rows of a folder that is gone may be asked for again. */
    static boolean isKept(Path path) {
        Folder folder = FOLDERS.get(path);
        return folder != null && folder.isGranted();
    }
}
