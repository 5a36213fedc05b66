package dev.trommel;

/**
 * How many entries a range has, by what the store knows without reading it. Old values and
 * deletions count until they are merged.
 *
 * @param least there are no fewer entries; of keys there may be fewer
 * @param estimate about so many
 * @param most there are no more entries, and so no more keys
 */
public record Count(long least, long estimate, long most) {}
