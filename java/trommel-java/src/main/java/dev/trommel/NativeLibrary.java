package dev.trommel;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.AtomicMoveNotSupportedException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Locale;
import java.util.Properties;

/**
 * Finds and loads the native library: the file that the system property names, else the one of
 * this system in the jar. That is copied to a folder of the user's own, by a name that says what
 * is in it; so a copy is made once, and a newer jar makes another.
 */
final class NativeLibrary {
    /** The system property that names a file to load instead. */
    static final String PROPERTY = "dev.trommel.library";

    private static final String WAY_OUT =
            "; name a library that was built for this system with -D" + PROPERTY + "=FILE";
    private static final int HASH_CHARACTERS = 32;

    private NativeLibrary() {}

    static void load() {
        String named = System.getProperty(PROPERTY);
        if (named != null) {
            loadFile(Path.of(named).toAbsolutePath(), "the property " + PROPERTY + " names it");
            return;
        }
        String system = system(System.getProperty("os.name"), System.getProperty("os.arch"));
        String resource = "native/" + system + "/" + fileName();
        byte[] library;
        try (InputStream input = NativeLibrary.class.getResourceAsStream(resource)) {
            if (input == null) {
                throw new UnsatisfiedLinkError(
                        "this jar of Trommel has no library for "
                                + system
                                + ": there is no dev/trommel/"
                                + resource
                                + WAY_OUT);
            }
            library = input.readAllBytes();
        } catch (IOException failure) {
            throw unusable("the library in the jar cannot be read", failure);
        }
        loadFile(copy(library, fileName()), "it was copied there from the jar");
    }

    /** The library is to be of the same version as the jar, which knows what it calls. */
    static void checkVersion(String ofLibrary) {
        String own = version();
        if (!own.equals(ofLibrary)) {
            throw new UnsatisfiedLinkError(
                    "the jar is Trommel "
                            + own
                            + ", and the native library is Trommel "
                            + ofLibrary
                            + ": use both of one version");
        }
    }

    /** The version of this jar. */
    static String version() {
        Properties properties = new Properties();
        try (InputStream input = NativeLibrary.class.getResourceAsStream("version.properties")) {
            if (input != null) {
                properties.load(input);
            }
        } catch (IOException failure) {
            throw unusable("version.properties in the jar cannot be read", failure);
        }
        return properties.getProperty("version", "unknown");
    }

    /** The name of a system, as its folder in the jar has it. */
    static String system(String osName, String osArch) {
        String name = osName.toLowerCase(Locale.ROOT);
        String os =
                name.contains("linux")
                        ? "linux"
                        : name.contains("mac") ? "macos" : name.contains("win") ? "windows" : name;
        String arch =
                switch (osArch.toLowerCase(Locale.ROOT)) {
                    case "amd64", "x86_64", "x86-64" -> "x86_64";
                    case "aarch64", "arm64" -> "aarch64";
                    default -> osArch;
                };
        return os + "-" + arch + (os.equals("linux") && isMusl() ? "-musl" : "");
    }

    private static String fileName() {
        return System.mapLibraryName("trommel_jni");
    }

    /** Whether this process runs on the C library musl, as that of Alpine. */
    private static boolean isMusl() {
        try {
            return Files.readString(Path.of("/proc/self/maps")).contains("/ld-musl-");
        } catch (IOException | RuntimeException failure) {
            // Without that file nothing says so, and most systems have another one.
            return false;
        }
    }

    private static void loadFile(Path file, String why) {
        try {
            System.load(file.toString());
        } catch (UnsatisfiedLinkError failure) {
            String message = file + " cannot be loaded (" + why + "): " + failure.getMessage();
            UnsatisfiedLinkError told = new UnsatisfiedLinkError(message + WAY_OUT);
            told.initCause(failure);
            throw told;
        }
    }

    private static Path copy(byte[] library, String fileName) {
        try {
            Path folder = folder();
            Path file = folder.resolve(hash(library) + "-" + fileName);
            if (Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS)
                    && Arrays.equals(Files.readAllBytes(file), library)) {
                return file;
            }
            Path copy = Files.createTempFile(folder, "copy", null);
            try {
                Files.write(copy, library);
                move(copy, file);
            } finally {
                Files.deleteIfExists(copy);
            }
            return file;
        } catch (IOException failure) {
            String where = System.getProperty("java.io.tmpdir");
            throw unusable("the library cannot be copied from the jar to " + where, failure);
        }
    }

    /** Others that copy the same at this moment see all of it or nothing. */
    private static void move(Path copy, Path file) throws IOException {
        try {
            Files.move(copy, file, StandardCopyOption.ATOMIC_MOVE);
        } catch (AtomicMoveNotSupportedException | FileAlreadyExistsException other) {
            Files.move(copy, file, StandardCopyOption.REPLACE_EXISTING);
        }
    }

    /** A folder that nobody else can write into: else others could put their code there. */
    private static Path folder() throws IOException {
        String user = System.getProperty("user.name", "").replaceAll("[^A-Za-z0-9_-]", "_");
        Path folder = Path.of(System.getProperty("java.io.tmpdir"), "trommel-" + user);
        try {
            if (!Files.getFileStore(folder.getParent()).supportsFileAttributeView("posix")) {
                // As on Windows, where the folder for temporary files is the user's own.
                return Files.createDirectories(folder);
            }
            var own = PosixFilePermissions.fromString("rwx------");
            try {
                Files.createDirectory(folder, PosixFilePermissions.asFileAttribute(own));
            } catch (FileAlreadyExistsException there) {
                // It is looked at below.
            }
            if (Files.isDirectory(folder, LinkOption.NOFOLLOW_LINKS)
                    && Files.getPosixFilePermissions(folder, LinkOption.NOFOLLOW_LINKS).equals(own)
                    && Files.getOwner(folder, LinkOption.NOFOLLOW_LINKS)
                            .getName()
                            .equals(System.getProperty("user.name"))) {
                return folder;
            }
        } catch (IOException failure) {
            // A new one may do.
        }
        return Files.createTempDirectory("trommel");
    }

    private static String hash(byte[] library) {
        try {
            byte[] hash = MessageDigest.getInstance("SHA-256").digest(library);
            return HexFormat.of().formatHex(hash).substring(0, HASH_CHARACTERS);
        } catch (NoSuchAlgorithmException failure) {
            throw new IllegalStateException("every Java has SHA-256", failure);
        }
    }

    private static UnsatisfiedLinkError unusable(String what, IOException failure) {
        UnsatisfiedLinkError error = new UnsatisfiedLinkError(what + ": " + failure + WAY_OUT);
        error.initCause(failure);
        return error;
    }
}
