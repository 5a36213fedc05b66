package dev.trommel;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/**
 * Options of a store or a key space, by their names. What is not set is as the store has kept it,
 * or as it usually is. {@link #list} tells all of them.
 *
 * <p>Threads: one at a time, or any while none sets something.
 */
public final class Options {
    private static final int FIELDS = 6;

    private final Packed set = new Packed();

    /** Options of which none is set. */
    public Options() {
        this("");
    }

    private Options(String preset) {
        set.add(Packed.bytes(preset));
    }

    /**
     * Options for a kind of machine, from which one goes on.
     *
     * @param name "server", "small-device" or "many-stores"
     * @return the options
     * @throws OptionException there is no such preset
     */
    public static Options preset(String name) {
        Objects.requireNonNull(name, "name");
        Options options = new Options(name);
        check(options.set);
        return options;
    }

    /**
     * Sets an option. What the value may be together with others is checked where the options are
     * used.
     *
     * @param name its name, such as "write_buffer_bytes"
     * @param value a text such as "64MiB", a number, a {@link Boolean} or a {@link Duration}
     * @return these options
     * @throws OptionException there is no such option, or the value is none of it; nothing was set
     */
    public Options set(String name, Object value) {
        Objects.requireNonNull(name, "name");
        Objects.requireNonNull(value, "value");
        byte[] text = Packed.bytes(textOf(name, value));
        Packed one = new Packed();
        one.add(Packed.bytes(""));
        one.add(Packed.bytes(name));
        one.add(text);
        check(one);
        set.add(Packed.bytes(name));
        set.add(text);
        return this;
    }

    /**
     * The text of an option, as it is set or usually is.
     *
     * @param name its name
     * @return the text
     * @throws OptionException there is no such option
     */
    public String get(String name) {
        byte[] named = Packed.bytes(Objects.requireNonNull(name, "name"));
        return Packed.text(Native.optionText(set.bytes(), set.length(), named, named.length));
    }

    /**
     * All options there are.
     *
     * @return the options, in the order of their documents
     */
    public static List<OptionInfo> list() {
        List<String> texts = Packed.texts(Native.listOptions());
        List<OptionInfo> all = new ArrayList<>();
        for (int at = 0; at < texts.size(); at += FIELDS) {
            List<String> one = texts.subList(at, at + FIELDS);
            boolean isOfKeyspaces = Boolean.parseBoolean(one.get(5));
            all.add(
                    new OptionInfo(
                            one.get(0), one.get(1), one.get(2), one.get(3), one.get(4),
                            isOfKeyspaces));
        }
        return List.copyOf(all);
    }

    private static void check(Packed options) {
        Native.checkOptions(options.bytes(), options.length());
    }

    private static String textOf(String name, Object value) {
        if (value instanceof Duration time) {
            double seconds = time.getSeconds() + time.getNano() / 1e9;
            return seconds == Math.rint(seconds)
                    ? String.valueOf((long) seconds)
                    : String.valueOf(seconds);
        }
        if (value instanceof CharSequence || value instanceof Number || value instanceof Boolean) {
            return value.toString();
        }
        throw new IllegalArgumentException(
                "value: option "
                        + name
                        + " takes a text, a number, a Boolean or a Duration, not "
                        + value.getClass().getName());
    }

    /** As the native side takes them. */
    byte[] packed() {
        return set.toArray();
    }
}
