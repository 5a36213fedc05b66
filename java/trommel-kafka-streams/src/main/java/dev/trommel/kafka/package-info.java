/**
 * Trommel as the state store of Kafka Streams.
 *
 * <p>One line of the configuration gives all operators of the DSL stores of Trommel:
 * {@code dsl.store.suppliers.class = dev.trommel.kafka.TrommelDslStoreSuppliers}. Under
 * exactly-once a second one lets restarts go on without replay where the runtime itself does not
 * tell its stores of commits: {@code default.client.supplier =
 * dev.trommel.kafka.TrommelClientSupplier}.
 *
 * <pre>
 * put, delete --> buffer of what is not committed (readable)
 *                    |  a commit: rows, changelog offset, stream time, position: one atomic write
 *                    v
 * key space TASK/STORE   meta rows | data rows
 *                    |
 * engine         one for all tasks of an instance: STATE.DIR/APPLICATION.ID/trommel
 * </pre>
 *
 * <p>Invariant: what is on the disk is exactly the state at the offset that is stored with it, or
 * no offset is stored.
 */
package dev.trommel.kafka;
