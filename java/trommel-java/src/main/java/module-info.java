/** Trommel: an embedded key-value store, and its range filters alone. */
module dev.trommel {
    exports dev.trommel;
}
