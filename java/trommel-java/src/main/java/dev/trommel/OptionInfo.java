package dev.trommel;

/**
 * An option, as {@link Options#list} tells it.
 *
 * @param name its name
 * @param kind what kind of value it has
 * @param limits what its value may be
 * @param usual the text of its value if it is not set
 * @param help what it does, and what more of it costs
 * @param isOfKeyspaces whether a key space may have its own
 */
public record OptionInfo(
        String name,
        String kind,
        String limits,
        String usual,
        String help,
        boolean isOfKeyspaces) {}
