package dev.trommel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** How processes of their own find the native library. */
@Timeout(120)
final class LibraryTest {
    @TempDir Path folder;

    private record Run(int status, String output) {}

    /** Runs the program that opens a store and ends. */
    private Run run(String... properties) throws Exception {
        List<String> command = Processes.java();
        command.addAll(1, List.of(properties));
        command.addAll(List.of(Ending.class.getName(), folder.resolve("store").toString(), "exit"));
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        byte[] output = process.getInputStream().readAllBytes();
        return new Run(process.waitFor(), new String(output, StandardCharsets.UTF_8));
    }

    @Test
    void itIsCopiedOnceToAFolderOfOnesOwn() throws Exception {
        Path temporary = Files.createDirectory(folder.resolve("tmp"));
        String property = "-Djava.io.tmpdir=" + temporary;
        for (int times = 0; times < 2; times++) {
            Run run = run(property);
            assertEquals(0, run.status(), run.output());
            List<Path> files = files(temporary);
            assertEquals(1, files.size(), files.toString());
            assertTrue(files.get(0).toString().contains("trommel_jni"), files.toString());
        }
        // A file that is not what its name says is replaced.
        Path copy = files(temporary).get(0);
        long size = Files.size(copy);
        Files.writeString(copy, "damaged");
        assertEquals(0, run(property).status());
        assertEquals(size, Files.size(copy));
        // A folder that others can write into is not taken.
        Files.setPosixFilePermissions(
                copy.getParent(),
                PosixFilePermissions.fromString("rwxrwxrwx"));
        assertEquals(0, run(property).status());
        assertEquals(2, files(temporary).size(), "it has made another one");
    }

    private static List<Path> files(Path folder) throws Exception {
        try (var files = Files.walk(folder)) {
            return new ArrayList<>(
                    files.filter(Files::isRegularFile)
                            .filter(file -> !file.toString().contains("hsperfdata"))
                            .toList());
        }
    }

    @Test
    void aFileThatIsNamedIsTaken() throws Exception {
        Path none = folder.resolve("none.so");
        Run missing = run("-Ddev.trommel.library=" + none);
        assertEquals(1, missing.status());
        assertTrue(missing.output().contains(none.toString()), missing.output());
        assertTrue(missing.output().contains("the property dev.trommel.library"));
        Files.writeString(none, "no library");
        Run wrong = run("-Ddev.trommel.library=" + none);
        assertEquals(1, wrong.status());
        assertTrue(wrong.output().contains("cannot be loaded"), wrong.output());
    }

    @Test
    void aSystemThatTheJarDoesNotKnowIsTold() throws Exception {
        Run run = run("-Dos.arch=abacus");
        assertEquals(1, run.status());
        assertTrue(run.output().contains("has no library for "), run.output());
        assertTrue(run.output().contains("-abacus"), run.output());
        assertTrue(run.output().contains("-Ddev.trommel.library=FILE"), run.output());
    }
}
