package dev.trommel.kafka;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.trommel.DiskException;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Random;
import java.util.stream.Stream;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.apache.kafka.streams.processor.TaskId;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A disk that fills under a store. It takes a small file system, so root on Linux. */
class FullDiskTest {
    private static final TopicPartition CHANGELOG = Commits.CHANGELOG;
    private static final int VALUE_BYTES = 8 << 10;
    private static final TaskId TASK = new TaskId(0, 1);
    private static final TaskId OTHER_TASK = new TaskId(0, 2);

    @TempDir
    Path folder;
    private Path state;
    private TaskContext context;
    private final Random random = new Random(7);

    private static boolean run(String... command) throws IOException, InterruptedException {
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        process.getInputStream().readAllBytes();
        return process.waitFor() == 0;
    }

    @BeforeEach
    void mount() throws Exception {
        Path place = Files.createDirectory(folder.resolve("small"));
        boolean isMounted = Files.exists(Path.of("/proc/self/mounts"))
                && run("mount", "-t", "tmpfs", "-o", "size=64m", "trommel", place.toString());
        assumeTrue(isMounted, "no small file system can be mounted");
        state = place;
    }

    @AfterEach
    void unmount() throws Exception {
        if (state != null) {
            assertTrue(run("umount", "-l", state.toString()));
        }
    }

    private KeyValueBytes open() {
        return open(TASK);
    }

    private KeyValueBytes open(TaskId task) {
        context = new TaskContext(state, task).with("processing.guarantee", "exactly_once_v2")
                .with(TrommelConfig.BUFFER_BYTES, 4 * VALUE_BYTES);
        KeyValueBytes store = new KeyValueBytes("store");
        store.init(context, store);
        return store;
    }

    /** With a row, at the offset 1. */
    private KeyValueBytes openWithACommit() {
        return openWithACommit(TASK);
    }

    private KeyValueBytes openWithACommit(TaskId task) {
        KeyValueBytes store = open(task);
        store.committedOffset(CHANGELOG);
        store.put(key(0), value());
        store.commit(Map.of(CHANGELOG, 1L));
        return store;
    }

    /** All but a few bytes of the disk. */
    private Path fill() throws IOException {
        Path filling = state.resolve("filling");
        try (OutputStream file = Files.newOutputStream(filling)) {
            for (int bytes = 1 << 20; bytes > 0; bytes /= 2) {
                try {
                    while (true) {
                        file.write(new byte[bytes]);
                    }
                } catch (IOException full) {
                    // A smaller piece may go in.
                }
            }
        } catch (IOException full) {
            // As it is to be.
        }
        return filling;
    }

    private byte[] value() {
        byte[] value = new byte[VALUE_BYTES];
        random.nextBytes(value);
        return value;
    }

    private static Bytes key(int number) {
        return Bytes.wrap(new byte[] {(byte) number});
    }

    @Test
    void aCommitThatTheDiskRefusesGoesWithTheNextOne() throws IOException {
        KeyValueBytes store = openWithACommit();
        Path filling = fill();
        byte[] first = value();
        store.put(key(1), first);
        store.commit(Map.of(CHANGELOG, 2L));
        assertEquals(1L, store.committedOffset(CHANGELOG), "the disk is full");
        assertArrayEquals(first, store.get(key(1)), "it is still there for the task");
        byte[] second = value();
        store.put(key(2), second);
        Files.delete(filling);
        store.commit(Map.of(CHANGELOG, 3L));
        assertEquals(3L, store.committedOffset(CHANGELOG));
        store.close();
        store = open();
        assertEquals(3L, store.committedOffset(CHANGELOG));
        assertArrayEquals(first, store.get(key(1)));
        assertArrayEquals(second, store.get(key(2)));
        store.close();
    }

    @Test
    void restoredRowsThatTheDiskRefusesAreWrittenWhenThereIsRoom() throws IOException {
        restoreWhileTheDiskIsFull();
    }

    /** Before a run is made, the engine writes what it has in memory. */
    @Test
    void restoredRowsWaitForRoomForThoseOfOtherTasks() throws IOException {
        KeyValueBytes other = openWithACommit(OTHER_TASK);
        restoreWhileTheDiskIsFull();
        other.close();
    }

    /** Nothing is thrown, so that the thread of the runtime that restores lives on. */
    private void restoreWhileTheDiskIsFull() throws IOException {
        KeyValueBytes store = open();
        store.committedOffset(CHANGELOG);
        context.restore(key(0).get(), value());
        store.commit(Map.of(CHANGELOG, 1L));
        Path filling = fill();
        byte[] large = new byte[4 << 20];
        random.nextBytes(large);
        for (int number = 1; number < 6; number++) {
            context.restore(key(number).get(), large);
            store.commit(Map.of(CHANGELOG, 1L + number));
        }
        context.restore(key(6).get(), value());
        store.commit(Map.of(CHANGELOG, 7L));
        Files.delete(filling);
        store.commit(Map.of(CHANGELOG, 8L));
        store.close();
        store = open();
        assertEquals(8L, store.committedOffset(CHANGELOG));
        assertArrayEquals(large, store.get(key(1)));
        assertArrayEquals(large, store.get(key(5)));
        assertEquals(VALUE_BYTES, store.get(key(6)).length);
        store.close();
    }

    @Test
    void whatCannotBeCommittedDoesNotGrowWithoutEnd() throws IOException {
        KeyValueBytes store = openWithACommit();
        Path filling = fill();
        assertThrows(DiskException.class, () -> {
            for (int number = 1; number < 100; number++) {
                store.put(key(number), value());
                store.commit(Map.of(CHANGELOG, 1L + number));
            }
        });
        store.close();
        Files.delete(filling);
        KeyValueBytes again = open();
        assertEquals(1L, again.committedOffset(CHANGELOG), "the last commit that was written");
        again.close();
    }

    /** Else nobody closes it, and nobody can open its folder. */
    @Test
    void anEngineThatCannotDropWhatGoneTasksHadIsClosedAllTheSame() throws IOException {
        openWithACommit().close();
        Path task = context.folder();
        try (Stream<Path> files = Files.list(task)) {
            for (Path file : files.toList()) {
                Files.delete(file);
            }
        }
        Files.delete(task);
        Path filling = fill();
        assertThrows(ProcessorStateException.class, () -> open(OTHER_TASK), "it needs room, too");
        Files.delete(filling);
        open(OTHER_TASK).close();
        assertFalse(SharedEngine.isOpen(state.resolve(TaskContext.APPLICATION)));
    }
}
