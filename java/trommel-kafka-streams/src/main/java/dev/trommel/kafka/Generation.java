package dev.trommel.kafka;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.SecureRandom;
import java.util.HexFormat;
import org.apache.kafka.streams.errors.ProcessorStateException;

/**
 * A random number in a file of a task's folder, which its key spaces have too. Kafka Streams wipes
 * corrupt state by deleting the folder, while our rows are elsewhere. So if the file is gone or
 * another one, the rows are of a state that was wiped.
 */
final class Generation {
    static final String FILE = "trommel.generation";

    private static final int NUMBER_BYTES = 16;
    private static final SecureRandom RANDOM = new SecureRandom();

    private Generation() {}

    /**
     * The generation of a folder; a new one if it has none, or the one that it had before the
     * runtime deleted it, if its rows are kept.
     *
     * @param instance whose task it is; null if rows of deleted folders are to go
     * @throws ProcessorStateException if the file cannot be read or written
     */
    static byte[] of(Path folder, Object instance) {
        Path file = folder.resolve(FILE);
        try {
            // Two tasks never share a folder, but global stores and tests may be on two threads.
            synchronized (Generation.class) {
                byte[] number = read(file);
                if (number != null) {
                    KeptFolders.opened(folder, number, instance);
                    return number;
                }
                byte[] kept = KeptFolders.take(folder, instance);
                number = write(file, kept != null ? kept : random());
                KeptFolders.opened(folder, number, instance);
                return number;
            }
        } catch (IOException problem) {
            throw new ProcessorStateException("The file " + file + " cannot be read or written: "
                    + problem + ". Make the folder writable for this user.", problem);
        }
    }

    /** What a file has; null if it is not there or not whole. */
    private static byte[] read(Path file) throws IOException {
        if (!Files.exists(file)) {
            return null;
        }
        String text = new String(Files.readAllBytes(file), StandardCharsets.US_ASCII).trim();
        try {
            byte[] number = HexFormat.of().parseHex(text);
            return number.length == NUMBER_BYTES ? number : null;
        } catch (IllegalArgumentException notHex) {
            return null;
        }
    }

    private static byte[] random() {
        byte[] number = new byte[NUMBER_BYTES];
        RANDOM.nextBytes(number);
        return number;
    }

    private static byte[] write(Path file, byte[] number) throws IOException {
        Files.createDirectories(file.getParent());
        Path unfinished = file.resolveSibling(FILE + ".tmp");
        Files.writeString(unfinished, HexFormat.of().formatHex(number));
        Files.move(unfinished, file, StandardCopyOption.ATOMIC_MOVE,
                StandardCopyOption.REPLACE_EXISTING);
        return number;
    }
}
