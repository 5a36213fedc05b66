package dev.trommel;

import static dev.trommel.Bytes.bytes;
import static dev.trommel.Bytes.text;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Options by name, and the native library. */
final class OptionsTest {
    @TempDir Path folder;

    @Test
    void valuesAreTexts() {
        Options options =
                new Options()
                        .set("write_buffer_bytes", "16MiB")
                        .set("block_cache_bytes", 1 << 20)
                        .set("create_if_missing", true)
                        .set("sync", Duration.ofMillis(1500))
                        .set("lock_timeout", Duration.ofSeconds(2));
        assertEquals("16MiB", options.get("write_buffer_bytes"));
        assertEquals("1MiB", options.get("block_cache_bytes"));
        assertEquals("true", options.get("create_if_missing"));
        assertEquals("1.5", options.get("sync"));
        assertEquals("2", options.get("lock_timeout"));
        try (Store store = Store.open(folder.resolve("store"), options)) {
            store.put(bytes("k"), bytes("v"));
            assertEquals("v", text(store.get(bytes("k"))));
        }
    }

    @Test
    void whatMakesNoSenseIsRefusedAtOnce() {
        Options options = new Options();
        OptionException unknown =
                assertThrows(OptionException.class, () -> options.set("write_bufer_bytes", 1));
        assertTrue(unknown.getMessage().contains("write_bufer_bytes"), unknown.getMessage());
        assertEquals(16, unknown.code());
        assertThrows(OptionException.class, () -> options.set("sync", "sometimes"));
        assertThrows(OptionException.class, () -> options.get("no such"));
        assertThrows(OptionException.class, () -> Options.preset("mainframe"));
        assertThrows(NullPointerException.class, () -> options.set("sync", null));
        assertThrows(IllegalArgumentException.class, () -> options.set("sync", List.of()));
        assertEquals(new Options().get("sync"), options.get("sync"));
    }

    @Test
    void presetsAreWhereOneBegins() {
        for (String preset : List.of("server", "small-device", "many-stores")) {
            Options options = Options.preset(preset).set("sync", "never");
            Path path = folder.resolve(preset);
            try (Store store = Store.open(path, options)) {
                store.put(bytes("k"), bytes("v"));
            }
        }
        String usual = new Options().get("write_buffer_bytes");
        String small = Options.preset("small-device").get("write_buffer_bytes");
        assertTrue(!usual.equals(small), small);
    }

    @Test
    void optionsOfTheWholeStoreAreNoneOfKeyspaces() {
        try (Store store = Store.open(folder.resolve("store"))) {
            Options whole = new Options().set("sync", "always");
            assertThrows(OptionException.class, () -> store.keyspace("k", whole));
            Options own = new Options().set("bits_per_key", 10);
            assertEquals("own", store.keyspace("own", own).name());
            assertThrows(OptionException.class, () -> store.keyspace(""));
        }
    }

    @Test
    void allOptionsAreListed() {
        List<OptionInfo> all = Options.list();
        assertTrue(all.size() > 20);
        for (OptionInfo option : all) {
            assertTrue(!option.name().isEmpty() && !option.help().isEmpty(), option.toString());
            assertEquals(option.usual(), new Options().get(option.name()), option.name());
        }
        assertTrue(all.stream().anyMatch(OptionInfo::isOfKeyspaces));
        assertTrue(all.stream().anyMatch(option -> !option.isOfKeyspaces()));
    }

    @Test
    void systemsHaveNames() {
        String own = NativeLibrary.system("Linux", "amd64");
        assertTrue(own.startsWith("linux-x86_64"), own);
        assertEquals("macos-aarch64", NativeLibrary.system("Mac OS X", "aarch64"));
        assertEquals("windows-x86_64", NativeLibrary.system("Windows 11", "amd64"));
    }

    @Test
    void theLibraryIsOfTheVersionOfTheJar() {
        String own = NativeLibrary.version();
        assertEquals(own, text(Native.version()));
        NativeLibrary.checkVersion(own);
        UnsatisfiedLinkError other =
                assertThrows(
                        UnsatisfiedLinkError.class, () -> NativeLibrary.checkVersion("0.0.1"));
        assertTrue(other.getMessage().contains("0.0.1"), other.getMessage());
        assertTrue(other.getMessage().contains(own), other.getMessage());
    }
}
