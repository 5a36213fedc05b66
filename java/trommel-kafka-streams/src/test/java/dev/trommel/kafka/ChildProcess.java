package dev.trommel.kafka;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A process of Java whose output goes to a file. It does not outlive this one; should this one be
 * killed, the file {@code pids} beside the outputs says whom to end.
 */
final class ChildProcess {
    private static final int LAST_WORDS = 60;
    private static final int ROUNDS_A_SECOND = 20;
    private static final List<Process> STARTED = new ArrayList<>();

    static {
        Runtime.getRuntime().addShutdownHook(
                new Thread(() -> STARTED.forEach(Process::destroyForcibly)));
    }

    private final Process process;
    private final Path output;

    private ChildProcess(Process process, Path output) {
        this.process = process;
        this.output = output;
    }

    static ChildProcess start(Path output, int megabytes, Class<?> main, String... arguments)
            throws IOException {
        return start(output, megabytes, main.getName(), arguments);
    }

    static ChildProcess start(Path output, int megabytes, String main, String... arguments)
            throws IOException {
        List<String> command = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Xmx" + megabytes + "m", "-XX:+UseSerialGC",
                "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
                "-Dorg.slf4j.simpleLogger.showDateTime=true",
                "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
                "-Dorg.slf4j.simpleLogger.log.dev.trommel=info"));
        if (!Boolean.getBoolean("dev.trommel.measured")) {
            command.add("-XX:TieredStopAtLevel=1");
        }
        String library = System.getProperty("dev.trommel.library");
        if (library != null) {
            command.add("-Ddev.trommel.library=" + library);
        }
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), main));
        command.addAll(List.of(arguments));
        Process process = new ProcessBuilder(command).redirectErrorStream(true)
                .redirectOutput(output.toFile()).start();
        STARTED.add(process);
        Files.writeString(output.resolveSibling("pids"), process.pid() + "\n",
                StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        return new ChildProcess(process, output);
    }

    boolean isAlive() {
        return process.isAlive();
    }

    String output() {
        try {
            return new String(Files.readAllBytes(output), StandardCharsets.UTF_8);
        } catch (IOException problem) {
            throw new java.io.UncheckedIOException(problem);
        }
    }

    /** The end of its output, but for how much it had done when. */
    String lastWords() {
        List<String> lines = output().lines().filter(line -> !line.startsWith("PROCESSED"))
                .toList();
        int from = Math.max(0, lines.size() - LAST_WORDS);
        return "; its output ends with:\n" + String.join("\n", lines.subList(from, lines.size()));
    }

    /** The number behind a word in the last line that has it; 0 if none has. */
    long last(String word) {
        Matcher found = Pattern.compile("(?m)^" + word + " (\\d+)").matcher(output());
        long number = 0;
        while (found.find()) {
            number = Long.parseLong(found.group(1));
        }
        return number;
    }

    /** How many lines begin with a word. */
    int count(String word) {
        return (int) Pattern.compile("(?m)^" + word).matcher(output()).results().count();
    }

    boolean said(String word) {
        return count(word) > 0;
    }

    long pid() {
        return process.pid();
    }

    /** Halts it for a while: it neither ends nor answers. */
    void halt() throws IOException, InterruptedException {
        signal("STOP");
    }

    /** Lets it go on where it was. */
    void goOn() throws IOException, InterruptedException {
        signal("CONT");
    }

    private void signal(String name) throws IOException, InterruptedException {
        Process kill = new ProcessBuilder("kill", "-" + name, String.valueOf(process.pid()))
                .inheritIO().start();
        if (!kill.waitFor(10, TimeUnit.SECONDS) || kill.exitValue() != 0) {
            throw new IllegalStateException("kill -" + name + " failed");
        }
    }

    /** Ends it as a crash does. */
    void kill() throws InterruptedException {
        process.destroyForcibly();
        process.waitFor(10, TimeUnit.SECONDS);
    }

    /** Ends it as one wants to. */
    void end(int seconds) throws InterruptedException {
        process.destroy();
        if (!process.waitFor(seconds, TimeUnit.SECONDS)) {
            kill();
        }
    }

    /**
     * Waits until something holds; an error if it does not in time. Rounds are counted, so that
     * time in which this process is halted, too, does not count.
     */
    void await(String what, int seconds, BooleanSupplier holds) throws InterruptedException {
        for (int round = 0; !holds.getAsBoolean(); round++) {
            if (round > seconds * ROUNDS_A_SECOND) {
                throw new IllegalStateException(
                        "not within " + seconds + " s: " + what + lastWords());
            }
            Thread.sleep(1_000 / ROUNDS_A_SECOND);
        }
    }
}
