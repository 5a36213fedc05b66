package dev.trommel;

import java.util.List;

/**
 * What {@link Store#verify} has read, and what is damaged.
 *
 * @param tables how many tables were read
 * @param entries how many entries
 * @param bytes how many bytes
 * @param damage each damage, with file and offset; none: the store is sound
 */
public record VerifyReport(long tables, long entries, long bytes, List<String> damage) {
    /**
     * A report with a copy of the list.
     *
     * @param tables how many tables were read
     * @param entries how many entries
     * @param bytes how many bytes
     * @param damage each damage
     */
    public VerifyReport {
        damage = List.copyOf(damage);
    }

    /**
     * Whether nothing is damaged.
     *
     * @return whether
     */
    public boolean isSound() {
        return damage.isEmpty();
    }
}
