package dev.trommel;

/** What a transaction's commit makes sure of. */
public enum Isolation {
    /** All that was read is as it was: transactions are as if they ran one after the other. */
    SERIALIZABLE,

    /**
     * What it writes was written by nobody else since it began. Two transactions that each read
     * what the other writes may both commit.
     */
    SNAPSHOT
}
