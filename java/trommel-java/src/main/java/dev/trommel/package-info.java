/**
 * An embedded, persistent key-value store. Before it opens a file, it asks one small filter in
 * memory which sorted runs may hold a key or a range. So misses and empty ranges cost nearly
 * nothing, and hits read one block.
 *
 * <p>{@link dev.trommel.Store#open(java.nio.file.Path) Store.open} is where to begin. Keys and
 * values are bytes; keys are in the order of their unsigned bytes.
 */
package dev.trommel;
