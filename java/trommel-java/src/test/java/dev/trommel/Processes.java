package dev.trommel;

import java.io.File;
import java.net.URI;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Processes of their own. */
final class Processes {
    private Processes() {}

    /** The command that runs a class of the package or of its tests: its name is to come. */
    static List<String> java() {
        String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
        String classes = location(Store.class) + File.pathSeparator + location(Processes.class);
        return new ArrayList<>(List.of(java, "-Xmx64m", "-cp", classes));
    }

    private static String location(Class<?> of) {
        var source = of.getProtectionDomain().getCodeSource();
        return Path.of(URI.create(source.getLocation().toString())).toString();
    }
}
