// Trommel: an embedded, persistent key-value store. Made by cbindgen from crates/c/src: do not
// edit.
//
// Handles. A store, a snapshot, a scan and so on are handles: pointers to what only the library
// knows. Each has a function that frees it, which takes NULL, too. A handle may outlive its store:
// after trommel_close its calls give TROMMEL_CLOSED, and it is still to be freed.
//
// Pointers. A handle must come from this library, and not be freed yet. Where a length stands
// beside a pointer, so many bytes must be there; NULL is allowed with a length of 0. Texts (`char
// *`) are in UTF-8 and end with a zero; paths are as the system has them. Where NULL is not allowed
// it is told as an error (TROMMEL_ARGUMENT), unless a function says otherwise. Nothing else can be
// checked.
//
// Errors. A call that can fail takes a place for an error as its last argument: see trommel_error.
// It gives true, or a handle; after an error false, or NULL. Results are set only if all went well.
//
// Threads. Each function says who may call it at once with others on the same handle: "any", any
// threads; "one at a time", they must take turns.
//
// Forks. A child process must not use what its parent opened: calls give TROMMEL_FORKED.

#ifndef TROMMEL_H
#define TROMMEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The length of a value that is not there.
#define TROMMEL_ABSENT SIZE_MAX

// `from` is excluded from the range.
#define TROMMEL_FROM_EXCLUDED 1

// `to` is included in the range.
#define TROMMEL_TO_INCLUDED 2

// The range has all keys that begin with `from`; `to` is NULL.
#define TROMMEL_PREFIX 4

// For scans: from the last key to the first.
#define TROMMEL_REVERSE 8

// For scans: values are not read, and are empty.
#define TROMMEL_KEYS_ONLY 16

// There are no more changes now.
#define TROMMEL_CHANGE_NONE 0

// The key was set to this value.
#define TROMMEL_CHANGE_PUT 1

// The key was deleted.
#define TROMMEL_CHANGE_DELETE 2

// All keys at or after this key and before `value` were deleted.
#define TROMMEL_CHANGE_DELETE_RANGE 3

// The key was set to this value until `expiry`.
#define TROMMEL_CHANGE_PUT_WITH_EXPIRY 4

// The operand `value` was merged into the key's value.
#define TROMMEL_CHANGE_MERGE 5

// No error.
#define TROMMEL_OK 0

// The disk failed. Make room or repair the disk, then repeat the call.
#define TROMMEL_IO 1

// Bytes of a file are corrupt. Restore the file, or repair the store.
#define TROMMEL_CORRUPT 2

// A file that the store needs is missing.
#define TROMMEL_FILE_MISSING 3

// The folder holds files, but no store.
#define TROMMEL_NOT_A_STORE 4

// The folder is for a new store, but has files.
#define TROMMEL_NOT_EMPTY 5

// The folder holds no store, and the call must not create one.
#define TROMMEL_MISSING 6

// The store was written by an incompatible version of Trommel.
#define TROMMEL_VERSION 7

// The store is open already, in another process or in this one.
#define TROMMEL_LOCKED 8

// The store was closed.
#define TROMMEL_CLOSED 9

// This process is a forked child of the process that opened the store.
#define TROMMEL_FORKED 10

// A key is too long.
#define TROMMEL_KEY_TOO_LONG 11

// A value is too long.
#define TROMMEL_VALUE_TOO_LONG 12

// A batch is too long.
#define TROMMEL_BATCH_TOO_LONG 13

// Keys that must ascend do not ascend.
#define TROMMEL_UNSORTED 14

// A range to delete ends before it begins.
#define TROMMEL_INVERTED_RANGE 15

// An option or a name is invalid.
#define TROMMEL_OPTION 16

// Background work failed, and writes wait for it. The store retries it.
#define TROMMEL_STOPPED 17

// A thread of the store panicked. No acknowledged write is lost.
#define TROMMEL_PANICKED 18

// A flush that must come first is running. Repeat the call.
#define TROMMEL_FLUSH_UNDER_WAY 19

// Packed writes are malformed.
#define TROMMEL_MALFORMED 20

// The caller stopped the call.
#define TROMMEL_CANCELLED 21

// There is no key space with this name.
#define TROMMEL_NO_KEYSPACE 22

// There is already a key space with this name.
#define TROMMEL_KEYSPACE_EXISTS 23

// The key space was dropped.
#define TROMMEL_KEYSPACE_DROPPED 24

// Others have written a key since it was read. Nothing was written.
#define TROMMEL_CONFLICT 25

// The value of a counter is not a number of 8 bytes.
#define TROMMEL_NO_COUNTER 26

// A transaction has held the lock of a key for too long.
#define TROMMEL_LOCK_TIMEOUT 27

// The holder of a key's lock waits for this transaction. End the transaction, and run it again.
#define TROMMEL_DEADLOCK 28

// The key space was opened without the merge operator that a key needs.
#define TROMMEL_NO_MERGE_OPERATOR 29

// The merge operator failed for a key.
#define TROMMEL_MERGE_FAILED 30

// Changes, or a file that a follower needs, no longer exist.
#define TROMMEL_GONE 31

// A file needs a feature that this library was built without.
#define TROMMEL_FEATURE_MISSING 32

// An argument is invalid: NULL where it is not allowed, an unknown flag, a key space of another
// store. Nothing was done.
#define TROMMEL_ARGUMENT 1000

// The library panicked, which is a bug in it. The handles of the call can still be freed. Any
// other use of handles that the call modifies may give wrong answers.
#define TROMMEL_BUG 1001

// The bytes are not a filter of this kind.
#define TROMMEL_NO_FILTER 1002

// The transaction has ended.
#define TROMMEL_ENDED 1003

// The transaction is in use, by a scan that is not freed or by a call of another thread.
#define TROMMEL_IN_USE 1004

// The ABI version that this header declares. trommel_abi_version returns that of the library.
#define TROMMEL_ABI_VERSION 1

// Everything that a transaction has read is unchanged when it commits. Transactions act as if they
// ran one after the other.
#define TROMMEL_SERIALIZABLE 0

// Nobody else has written, since the transaction began, what it writes.
#define TROMMEL_SNAPSHOT_ISOLATION 1

// A folder of backups of one store. It is locked until the handle is freed.
//
// Threads: any, at once; no call may run during or after freeing it.
typedef struct trommel_backups trommel_backups;

// Writes that are applied atomically: readers see all of them or none, and so does recovery. Of
// two writes of a key, the later one wins.
//
// Threads: one at a time, not always the same one.
typedef struct trommel_batch trommel_batch;

// A feed of committed writes, in commit order.
//
// Threads: one at a time, not always the same one.
typedef struct trommel_changes trommel_changes;

// An open store.
//
// Threads: any, at once; no call may run during or after freeing it.
typedef struct trommel_db trommel_db;

// The reason why a call failed. A call that can fail sets the place of its last argument: to NULL
// on success, otherwise to an error, which the caller must free. The previous content of the place
// is ignored. With NULL as the argument, the error is not reported.
//
// Threads: any, at once; no call may run during or after freeing it.
typedef struct trommel_error trommel_error;

// A filter of some keys. It errs in one direction only: "no" proves that a key is not there.
//
// Threads: any, at once; no call may run during or after freeing it.
typedef struct trommel_filter trommel_filter;

// Builds a filter from keys in ascending order.
//
// Threads: one at a time, not always the same one.
typedef struct trommel_filter_builder trommel_filter_builder;

// A follower of a store. It shows the store at one moment; trommel_follower_catch_up advances it.
// Take a snapshot to read.
//
// Threads: any, at once; no call may run during or after freeing it.
typedef struct trommel_follower trommel_follower;

// A key space of a store. NULL stands for the default key space, which every store has.
//
// Threads: any, at once; no call may run during or after freeing it.
typedef struct trommel_keyspace trommel_keyspace;

// All key spaces of a followed store at one moment.
//
// Threads: any, at once; no call may run during or after freeing it.
typedef struct trommel_moment trommel_moment;

// A list of names.
//
// Threads: any, at once; no call may run during or after freeing it.
typedef struct trommel_names trommel_names;

// Options, of which some are set; all others have their defaults. Calls copy them.
//
// Threads: one at a time; any at once while none sets an option.
typedef struct trommel_options trommel_options;

// A savepoint, to which the writes of a transaction can roll back.
//
// Threads: any, at once; no call may run during or after freeing it.
typedef struct trommel_savepoint trommel_savepoint;

// The rows of a range, as of the moment when the scan began.
//
// Threads: one at a time, not always the same one.
typedef struct trommel_scan trommel_scan;

// A snapshot of all key spaces of a store, or of one key space of a followed store. NULL as a key
// space means the default one; for a follower's snapshot, its own.
//
// Merges keep what a snapshot sees, so free it soon.
//
// Threads: any, at once; no call may run during or after freeing it.
typedef struct trommel_snapshot trommel_snapshot;

// Reads of one moment and writes on top of them. Its reads see its own writes. Freed without a
// commit, it writes nothing.
//
// Threads: any, at once; but during a commit nobody else may use it. No call may run during or
// after freeing it.
typedef struct trommel_transaction trommel_transaction;

// The bytes of a value in the store's memory; nothing is copied. It keeps a block of a table, or a
// memtable, in memory, so free it soon. It may outlive its store.
//
// Threads: any, at once; no call may run during or after freeing it.
typedef struct trommel_value trommel_value;

// A committed write. Its pointers are valid until the next call on the feed.
typedef struct trommel_change {
  // Its sequence number: greater than those of all earlier writes.
  uint64_t sequence;
  // When the value expires, in milliseconds since the start of 1970; 0: never.
  uint64_t expiry;
  // The key.
  const void *key;
  // The length of the key in bytes.
  size_t key_len;
  // The value, the operand, or the end of the range, depending on `kind`.
  const void *value;
  // The length of the value in bytes.
  size_t value_len;
  // The name of its key space, not terminated by a zero. NULL: the key space was dropped before.
  const char *keyspace_name;
  // The length of the name in bytes.
  size_t keyspace_name_len;
  // The number of its key space; 0 is the default one.
  uint32_t keyspace;
  // The kind of change: one of the constants above.
  uint32_t kind;
  // Whether it is the last change of a batch. A new feed can begin after it.
  bool ends_batch;
} trommel_change;

// Bytes of the caller.
typedef struct trommel_bytes {
  // The first byte. NULL only if there are none.
  const void *data;
  // The number of bytes.
  size_t len;
} trommel_bytes;

// How far a follower lags behind.
typedef struct trommel_staleness {
  // The number of the newest write that reads see.
  uint64_t sequence;
  // Milliseconds since the follower's last successful look.
  uint64_t since_look;
  // Milliseconds since a look last found something new.
  uint64_t since_news;
} trommel_staleness;

// A range of keys, at or after `from` and before `to`. NULL with a length of 0: no bound on that
// side. Flags of the call may change that. Where a call takes a range, NULL means all keys.
typedef struct trommel_range {
  // The first key, or the common prefix of all keys.
  const void *from;
  // The length of `from` in bytes.
  size_t from_len;
  // The end of the range, exclusive.
  const void *to;
  // The length of `to` in bytes.
  size_t to_len;
} trommel_range;

// Bounds and an estimate of the entries in a range, without reading the range.
typedef struct trommel_count {
  // The least number of entries. (There may be fewer keys.)
  uint64_t least;
  // The estimated number of entries.
  uint64_t estimate;
  // The greatest number of entries, and so of keys.
  uint64_t most;
} trommel_count;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Opens the backups in a folder, which is created if it does not exist. Free the handle with
// trommel_backups_free.
//
// Threads: any. Errors: TROMMEL_LOCKED, TROMMEL_IO.
struct trommel_backups *trommel_backups_open(const char *folder, struct trommel_error **error);

// Stores all writes that are visible now as a new generation. `number`: NULL, or set to its
// number.
//
// Threads: any; calls that change the backups wait for each other. Errors: TROMMEL_IO: no
// generation was made.
bool trommel_backups_create(const struct trommel_backups *backups,
                            const struct trommel_db *db,
                            uint64_t *number,
                            struct trommel_error **error);

// Returns all generations, oldest first, as JSON: a list of objects with "number", "sequence",
// "milliseconds" (since the start of 1970), "files" and "bytes". Free it with trommel_text_free.
//
// Threads: any. Errors: TROMMEL_CORRUPT, TROMMEL_IO.
char *trommel_backups_list(const struct trommel_backups *backups, struct trommel_error **error);

// Reads and checks everything in a generation. Returns a report as JSON; free it with
// trommel_text_free. `damages`: NULL, or set to the length of its list "damage"; 0: it is sound.
//
// Threads: any. Errors: TROMMEL_FILE_MISSING, there is no such generation; TROMMEL_IO.
char *trommel_backups_verify(const struct trommel_backups *backups,
                             uint64_t number,
                             size_t *damages,
                             struct trommel_error **error);

// Makes a store of a generation, in a folder that is empty or does not exist.
//
// Threads: any. Errors: TROMMEL_FILE_MISSING, there is no such generation; TROMMEL_NOT_EMPTY,
// TROMMEL_CORRUPT, TROMMEL_IO.
bool trommel_backups_restore(const struct trommel_backups *backups,
                             uint64_t number,
                             const char *folder,
                             struct trommel_error **error);

// Removes all generations except the newest `keep`, and the data that only they needed. `removed`:
// NULL, or set to the number of removed generations.
//
// Threads: any. Errors: TROMMEL_IO: something is left, and the next call removes it.
bool trommel_backups_prune(const struct trommel_backups *backups,
                           size_t keep,
                           size_t *removed,
                           struct trommel_error **error);

// Frees the handle, and releases the lock of the folder. Does nothing for NULL.
//
// Threads: one; no other call may use the handle during or after this one.
void trommel_backups_free(struct trommel_backups *backups);

// Creates an empty batch. Free it with trommel_batch_free.
//
// Threads: any.
struct trommel_batch *trommel_batch_new(void);

// Creates a batch of packed writes into the default key space. Each write begins with a byte: 1
// put, 2 delete, 3 delete range, 4 put with expiry, 5 merge. Then follow the lengths of its key
// and of its value, its key and its value. A length has 4 bytes, little-endian. The value of a
// range deletion is the range's end; a deletion has no value. The value of a put with expiry
// begins with the time to live in nanoseconds, in 8 bytes, little-endian.
//
// Threads: any. Errors: TROMMEL_MALFORMED.
struct trommel_batch *trommel_batch_from_packed(const void *data,
                                                size_t len,
                                                struct trommel_error **error);

// Sets the value of a key.
//
// Threads: one at a time. Errors: TROMMEL_ARGUMENT. Lengths are checked when the batch is written.
bool trommel_batch_put(struct trommel_batch *batch,
                       const struct trommel_keyspace *keyspace,
                       const void *key,
                       size_t key_len,
                       const void *value,
                       size_t value_len,
                       struct trommel_error **error);

// Sets the value of a key for `milliseconds` after the batch is written.
//
// Threads: one at a time. Errors: as of trommel_batch_put.
bool trommel_batch_put_ttl(struct trommel_batch *batch,
                           const struct trommel_keyspace *keyspace,
                           const void *key,
                           size_t key_len,
                           const void *value,
                           size_t value_len,
                           uint64_t milliseconds,
                           struct trommel_error **error);

// Merges an operand into the value of a key, like trommel_merge.
//
// Threads: one at a time. Errors: as of trommel_batch_put.
bool trommel_batch_merge(struct trommel_batch *batch,
                         const struct trommel_keyspace *keyspace,
                         const void *key,
                         size_t key_len,
                         const void *operand,
                         size_t operand_len,
                         struct trommel_error **error);

// Deletes a key.
//
// Threads: one at a time. Errors: as of trommel_batch_put.
bool trommel_batch_delete(struct trommel_batch *batch,
                          const struct trommel_keyspace *keyspace,
                          const void *key,
                          size_t key_len,
                          struct trommel_error **error);

// Deletes all keys at or after `from` and before `to`. If `from` is greater than `to`, writing the
// batch is an error.
//
// Threads: one at a time. Errors: as of trommel_batch_put.
bool trommel_batch_delete_range(struct trommel_batch *batch,
                                const struct trommel_keyspace *keyspace,
                                const void *from,
                                size_t from_len,
                                const void *to,
                                size_t to_len,
                                struct trommel_error **error);

// Adds a condition: the batch is written only if the key then has this value, or, for NULL with a
// length of 0, no value. Otherwise writing it returns TROMMEL_CONFLICT and writes nothing. Writes
// of the batch itself do not count.
//
// Threads: one at a time. Errors: as of trommel_batch_put.
bool trommel_batch_only_if(struct trommel_batch *batch,
                           const struct trommel_keyspace *keyspace,
                           const void *key,
                           size_t key_len,
                           const void *value,
                           size_t value_len,
                           struct trommel_error **error);

// Returns the number of writes; 0 for NULL.
//
// Threads: one at a time.
size_t trommel_batch_count(const struct trommel_batch *batch);

// Removes all writes and conditions from the batch.
//
// Threads: one at a time.
void trommel_batch_clear(struct trommel_batch *batch);

// Frees a batch. Does nothing for NULL.
//
// Threads: one; no other call may use the handle during or after this one.
void trommel_batch_free(struct trommel_batch *batch);

// Applies a batch. `synced`: it is on disk when this returns, whatever the options say. The batch
// is empty afterwards, even after an error.
//
// Threads: any for a store; one at a time for a batch. Errors: TROMMEL_CONFLICT,
// TROMMEL_KEY_TOO_LONG, TROMMEL_VALUE_TOO_LONG, TROMMEL_BATCH_TOO_LONG, TROMMEL_INVERTED_RANGE,
// TROMMEL_LOCK_TIMEOUT, TROMMEL_KEYSPACE_DROPPED: nothing was written. TROMMEL_IO,
// TROMMEL_STOPPED: the batch is not visible now, and after a crash it is there as a whole or not
// at all. TROMMEL_ARGUMENT: the batch is unchanged.
bool trommel_write(const struct trommel_db *db,
                   struct trommel_batch *batch,
                   bool synced,
                   struct trommel_error **error);

// Returns a feed of all durable writes after this sequence number, in all key spaces.
// trommel_snapshot_sequence returns a number to begin with. With the option "kept_log_bytes" the
// store keeps its logs for feeds. Free it with trommel_changes_free.
//
// Threads: any. Errors: TROMMEL_GONE.
struct trommel_changes *trommel_changes_since(const struct trommel_db *db,
                                              uint64_t sequence,
                                              struct trommel_error **error);

// Returns the next change. `kind` is TROMMEL_CHANGE_NONE if there are no more changes now: ask
// again later.
//
// Threads: one at a time. Errors: TROMMEL_GONE, TROMMEL_CORRUPT, TROMMEL_IO, TROMMEL_CLOSED. No
// change is skipped; the next call tries again.
bool trommel_changes_next(struct trommel_changes *changes,
                          struct trommel_change *change,
                          struct trommel_error **error);

// Frees a feed. Does nothing for NULL.
//
// Threads: one; no other call may use the handle during or after this one.
void trommel_changes_free(struct trommel_changes *changes);

// Opens the store in a folder, or creates it. `options`: NULL for the defaults. Close the store
// with trommel_close, then free the handle with trommel_db_free.
//
// Threads: any. Errors: TROMMEL_LOCKED, TROMMEL_NOT_A_STORE, TROMMEL_VERSION, TROMMEL_CORRUPT,
// TROMMEL_OPTION, TROMMEL_IO.
struct trommel_db *trommel_open(const char *folder,
                                const struct trommel_options *options,
                                struct trommel_error **error);

// Closes a store: waits for running calls, makes all writes durable, and ends background work. The
// folder can then be opened again. All other handles of the store return TROMMEL_CLOSED from then
// on. They, and this one, must still be freed. Closing it again does nothing.
//
// Threads: any, at once with all other calls. Errors: whatever kept writes from becoming durable;
// the store is closed all the same. TROMMEL_FORKED.
bool trommel_close(struct trommel_db *db, struct trommel_error **error);

// Frees the handle of a store. If the store is open, closes it without reporting errors. Does
// nothing for NULL.
//
// Threads: one; no other call may use the handle during or after this one.
void trommel_db_free(struct trommel_db *db);

// Makes all writes so far durable.
//
// Threads: any.
bool trommel_sync(const struct trommel_db *db, struct trommel_error **error);

// Flushes the memtables of every key space to runs on disk.
//
// Threads: any.
bool trommel_flush(const struct trommel_db *db, struct trommel_error **error);

// Merges each key space into one run.
//
// Threads: any.
bool trommel_compact(const struct trommel_db *db, struct trommel_error **error);

// Waits until no flush and no merge is due.
//
// Threads: any.
bool trommel_settle(const struct trommel_db *db, struct trommel_error **error);

// Returns the code of an error: one of the constants above. TROMMEL_OK for NULL.
//
// Threads: any.
uint32_t trommel_error_code(const struct trommel_error *error);

// Returns what went wrong, where, and what to do: a text in UTF-8 that ends with a zero and lives
// as long as the error. An empty text for NULL.
//
// Threads: any.
const char *trommel_error_message(const struct trommel_error *error);

// Returns the key that an error is about, such as that of a conflict; it lives as long as the
// error. NULL and a length of 0: the error is about no key.
//
// Threads: any.
const void *trommel_error_key(const struct trommel_error *error, size_t *len);

// Returns the number of that key's key space; 0 is the default one.
//
// Threads: any.
uint32_t trommel_error_keyspace(const struct trommel_error *error);

// Returns whether bytes are corrupt or a file is missing, for this call or for background work.
// trommel_verify reports all damage; trommel_repair repairs it.
//
// Threads: any.
bool trommel_error_tells_of_damage(const struct trommel_error *error);

// Frees an error. Does nothing for NULL.
//
// Threads: one; no other call may use the handle during or after this one.
void trommel_error_free(struct trommel_error *error);

// Panics inside the library, for tests of bindings. Returns false and TROMMEL_BUG.
//
// Threads: any.
bool trommel_test_panic(struct trommel_error **error);

// Returns the names of the kinds of filters. Free them with trommel_names_free.
//
// Threads: any.
struct trommel_names *trommel_filter_kinds(struct trommel_error **error);

// Returns whether filters of a kind answer for ranges. Others say "maybe" to every range of more
// than one key. False for an unknown kind.
//
// Threads: any.
bool trommel_filter_kind_knows_ranges(const char *kind);

// Creates a builder of a filter of a kind, with 1 to 64 bits per key. `options`: NULL for the
// defaults; only options of filters matter. Free it with trommel_filter_builder_free.
//
// Threads: any. Errors: TROMMEL_ARGUMENT: the kind is unknown.
struct trommel_filter_builder *trommel_filter_builder_new(const char *kind,
                                                          double bits_per_key,
                                                          const struct trommel_options *options,
                                                          struct trommel_error **error);

// Adds a key, which must not be less than the previous one. Equal keys count once.
//
// Threads: one at a time. Errors: TROMMEL_UNSORTED: the key was not added, and the builder is
// unchanged. TROMMEL_ARGUMENT: the builder is finished.
bool trommel_filter_builder_add(struct trommel_filter_builder *builder,
                                const void *key,
                                size_t key_len,
                                struct trommel_error **error);

// Returns the filter's bytes, for trommel_filter_read. The builder is then finished, and must
// still be freed.
//
// Threads: one at a time. Errors: TROMMEL_ARGUMENT: it was already finished.
struct trommel_value *trommel_filter_builder_finish(struct trommel_filter_builder *builder,
                                                    struct trommel_error **error);

// Frees a builder. Does nothing for NULL.
//
// Threads: one; no other call may use the handle during or after this one.
void trommel_filter_builder_free(struct trommel_filter_builder *builder);

// Returns the bytes of a filter of an array of keys in ascending order.
//
// Threads: any. Errors: TROMMEL_UNSORTED, from kinds that need the order; TROMMEL_ARGUMENT: the
// kind is unknown.
struct trommel_value *trommel_filter_build(const char *kind,
                                           double bits_per_key,
                                           const struct trommel_bytes *keys,
                                           size_t count,
                                           struct trommel_error **error);

// Reads a filter of a kind from its bytes, which it copies. `kind`: NULL to detect it from the
// bytes. Bytes of any origin are safe, but they need a checksum of their owner's. Damaged bytes
// may give a filter with wrong answers. Free it with trommel_filter_free.
//
// Threads: any. Errors: TROMMEL_NO_FILTER: the bytes are no such filter. TROMMEL_ARGUMENT: the
// kind is unknown.
struct trommel_filter *trommel_filter_read(const char *kind,
                                           const void *data,
                                           size_t len,
                                           struct trommel_error **error);

// Returns false if the key is certainly not there, and true if it may be. True for a NULL filter
// or an invalid key.
//
// Threads: any.
bool trommel_filter_may_contain(const struct trommel_filter *filter,
                                const void *key,
                                size_t key_len);

// Returns false if certainly no key from `from` to `to`, both included, is there, and true if one
// may be. NULL with a length of 0 means no bound on that side. True for a NULL filter; false for a
// range that ends before it begins.
//
// Threads: any.
bool trommel_filter_may_contain_range(const struct trommel_filter *filter,
                                      const void *from,
                                      size_t from_len,
                                      const void *to,
                                      size_t to_len);

// Returns the name of its kind, which lives as long as the filter. NULL for NULL.
//
// Threads: any.
const char *trommel_filter_kind(const struct trommel_filter *filter);

// Returns its size in bytes; 0 for NULL.
//
// Threads: any.
size_t trommel_filter_size(const struct trommel_filter *filter);

// Frees a filter. Does nothing for NULL.
//
// Threads: one; no other call may use the handle during or after this one.
void trommel_filter_free(struct trommel_filter *filter);

// Follows a store that another process writes, or none. `options`: NULL for the defaults.
// `interval`: how often a thread catches up, in milliseconds; 0: only calls do.
//
// Threads: any. Errors: TROMMEL_MISSING, TROMMEL_NOT_A_STORE, TROMMEL_VERSION, TROMMEL_CORRUPT,
// TROMMEL_FILE_MISSING.
struct trommel_follower *trommel_follow(const char *folder,
                                        const struct trommel_options *options,
                                        uint64_t interval,
                                        struct trommel_error **error);

// Advances to what the writer has made visible since. `moved`: NULL, or set to whether anything
// was new.
//
// Threads: any. Errors: TROMMEL_CORRUPT, TROMMEL_FILE_MISSING, TROMMEL_IO: the follower stays
// where it was, and the next call tries again.
bool trommel_follower_catch_up(const struct trommel_follower *follower,
                               bool *moved,
                               struct trommel_error **error);

// Returns how far it lags behind. `failure`: NULL, or set to why the last look failed: a text to
// be freed with trommel_text_free, or NULL if it succeeded.
//
// Threads: any.
bool trommel_follower_staleness(const struct trommel_follower *follower,
                                struct trommel_staleness *staleness,
                                char **failure,
                                struct trommel_error **error);

// Returns a key space as the follower shows it now. `keyspace`: its name; NULL: the default one.
// Free it with trommel_snapshot_free.
//
// Threads: any. Errors: TROMMEL_NO_KEYSPACE: it does not exist, or not yet.
struct trommel_snapshot *trommel_follower_snapshot(const struct trommel_follower *follower,
                                                   const char *keyspace,
                                                   struct trommel_error **error);

// Returns the names of its key spaces, the default one first. Free them with trommel_names_free.
//
// Threads: any.
struct trommel_names *trommel_follower_keyspaces(const struct trommel_follower *follower,
                                                 struct trommel_error **error);

// Returns the current moment of all key spaces. Free it with trommel_moment_free.
//
// Threads: any.
struct trommel_moment *trommel_follower_moment(const struct trommel_follower *follower,
                                               struct trommel_error **error);

// Returns the number of the last write that a moment sees; 0 for NULL.
//
// Threads: any.
uint64_t trommel_moment_sequence(const struct trommel_moment *moment);

// Returns a key space at that moment. `keyspace`: its name; NULL: the default one. Free it with
// trommel_snapshot_free.
//
// Threads: any. Errors: TROMMEL_NO_KEYSPACE.
struct trommel_snapshot *trommel_moment_snapshot(const struct trommel_moment *moment,
                                                 const char *keyspace,
                                                 struct trommel_error **error);

// Frees a moment. Does nothing for NULL.
//
// Threads: one; no other call may use the handle during or after this one.
void trommel_moment_free(struct trommel_moment *moment);

// Returns the follower's statistics of a key space, as JSON. `keyspace`: its name; NULL: the
// default one. Free it with trommel_text_free.
//
// Threads: any. Errors: TROMMEL_NO_KEYSPACE.
char *trommel_follower_stats(const struct trommel_follower *follower,
                             const char *keyspace,
                             struct trommel_error **error);

// Verifies the current moment, like trommel_verify.
//
// Threads: any. Errors: as of trommel_verify; TROMMEL_GONE.
char *trommel_follower_verify(const struct trommel_follower *follower,
                              size_t *damages,
                              struct trommel_error **error);

// Makes an independent store of the current moment in a folder that is empty or does not exist.
// Files are copied.
//
// Threads: any. Errors: TROMMEL_NOT_EMPTY, TROMMEL_GONE, TROMMEL_IO.
bool trommel_follower_checkpoint(const struct trommel_follower *follower,
                                 const char *folder,
                                 struct trommel_error **error);

// Closes a follower. Its snapshots and scans return TROMMEL_CLOSED from then on. The handle must
// still be freed.
//
// Threads: any, at once with all other calls.
bool trommel_follower_close(const struct trommel_follower *follower, struct trommel_error **error);

// Closes a follower and frees its handle. Does nothing for NULL.
//
// Threads: one; no other call may use the handle during or after this one.
void trommel_follower_free(struct trommel_follower *follower);

// Opens the key space with this name, or creates it. `options`: NULL for none; the store keeps
// them. Free the handle with trommel_keyspace_free.
//
// Threads: any. Errors: TROMMEL_OPTION: the name or an option is invalid.
struct trommel_keyspace *trommel_keyspace_make(const struct trommel_db *db,
                                               const char *name,
                                               const struct trommel_options *options,
                                               struct trommel_error **error);

// Opens the key space with this name. Free the handle with trommel_keyspace_free.
//
// Threads: any. Errors: TROMMEL_NO_KEYSPACE.
struct trommel_keyspace *trommel_keyspace_open(const struct trommel_db *db,
                                               const char *name,
                                               struct trommel_error **error);

// Returns its current name. Free it with trommel_text_free.
//
// Threads: any.
char *trommel_keyspace_name(const struct trommel_keyspace *keyspace, struct trommel_error **error);

// Frees a handle; the key space stays. Does nothing for NULL.
//
// Threads: one; no other call may use the handle during or after this one.
void trommel_keyspace_free(struct trommel_keyspace *keyspace);

// Returns the names of all key spaces, the default one first. Free them with trommel_names_free.
//
// Threads: any.
struct trommel_names *trommel_keyspaces(const struct trommel_db *db, struct trommel_error **error);

// Drops a key space with everything in it. Its handles, snapshots and scans return
// TROMMEL_KEYSPACE_DROPPED from then on.
//
// Threads: any. Errors: TROMMEL_NO_KEYSPACE; TROMMEL_OPTION: it is the default one.
bool trommel_keyspace_drop(const struct trommel_db *db,
                           const char *name,
                           struct trommel_error **error);

// Renames a key space. Its handles stay valid.
//
// Threads: any. Errors: TROMMEL_NO_KEYSPACE, TROMMEL_KEYSPACE_EXISTS; TROMMEL_OPTION: it is the
// default one, or the new name is invalid.
bool trommel_keyspace_rename(const struct trommel_db *db,
                             const char *from,
                             const char *to,
                             struct trommel_error **error);

// Returns the ABI version for which the library was built. A program must not use a library with
// another version than its own TROMMEL_ABI_VERSION.
//
// Threads: any.
uint32_t trommel_abi_version(void);

// Returns the version of Trommel, such as "0.2.0". The text lives as long as the program.
//
// Threads: any.
const char *trommel_version(void);

// Creates options of which none is set. Free them with trommel_options_free.
//
// Threads: any.
struct trommel_options *trommel_options_new(void);

// Creates options from a preset for a kind of machine: "server", "small-device" or "many-stores".
//
// Threads: any. Errors: TROMMEL_OPTION: there is no such preset.
struct trommel_options *trommel_options_preset(const char *name, struct trommel_error **error);

// Sets an option from its text, such as "write_buffer_bytes" and "64MiB". trommel_options_list
// names all options.
//
// Threads: one at a time. Errors: TROMMEL_OPTION: there is no such option, or the text is no value
// of it; then nothing is set. Limits of values are checked where the options are used.
bool trommel_options_set(struct trommel_options *options,
                         const char *name,
                         const char *value,
                         struct trommel_error **error);

// Makes an option hold for one opening only, while the store keeps its own value.
//
// Threads: one at a time. Errors: TROMMEL_OPTION: there is no such option.
bool trommel_options_for_now(struct trommel_options *options,
                             const char *name,
                             struct trommel_error **error);

// Returns the text of an option: as set, or its default. Free it with trommel_text_free.
//
// Threads: one at a time. Errors: TROMMEL_OPTION: there is no such option.
char *trommel_options_get(const struct trommel_options *options,
                          const char *name,
                          struct trommel_error **error);

// Returns all options as JSON: a list of objects with "name", "kind", "limits", "default", "help"
// and "of_keyspace". The last one says whether a key space may have its own value. Free it with
// trommel_text_free.
//
// Threads: any.
char *trommel_options_list(struct trommel_error **error);

// Frees options. Does nothing for NULL.
//
// Threads: one; no other call may use the handle during or after this one.
void trommel_options_free(struct trommel_options *options);

// Returns the value of a key: a handle to be freed with trommel_value_free, or NULL if the key has
// no value. Nothing is copied.
//
// Threads: any. Errors: TROMMEL_IO, TROMMEL_CORRUPT, TROMMEL_CLOSED.
bool trommel_get(const struct trommel_db *db,
                 const struct trommel_keyspace *keyspace,
                 const void *key,
                 size_t key_len,
                 struct trommel_value **value,
                 struct trommel_error **error);

// Copies the value of a key into a buffer. `len`: set to its length, or to TROMMEL_ABSENT if the
// key has no value. If the value is longer than the buffer's capacity, nothing is copied: repeat
// the call with a larger buffer.
//
// Threads: any. Errors: as of trommel_get.
bool trommel_get_into(const struct trommel_db *db,
                      const struct trommel_keyspace *keyspace,
                      const void *key,
                      size_t key_len,
                      void *buffer,
                      size_t capacity,
                      size_t *len,
                      struct trommel_error **error);

// Returns the values of several keys at one moment, in the order of the keys. Each is a handle to
// be freed, or NULL if that key has no value. `values` has room for `count`. It takes less time
// per key than single gets.
//
// Threads: any. Errors: that of the first key that cannot be read; then no value is returned.
bool trommel_multi_get(const struct trommel_db *db,
                       const struct trommel_keyspace *keyspace,
                       const struct trommel_bytes *keys,
                       size_t count,
                       struct trommel_value **values,
                       struct trommel_error **error);

// Like trommel_multi_get, but copies the values one behind the other into a buffer. `lens`, with
// room for `count`: set to the length of each value, or to TROMMEL_ABSENT. `len`: set to the
// length of all values. If that exceeds the buffer's capacity, no value is copied: repeat the call
// with a larger buffer.
//
// Threads: any. Errors: as of trommel_multi_get.
bool trommel_multi_get_into(const struct trommel_db *db,
                            const struct trommel_keyspace *keyspace,
                            const struct trommel_bytes *keys,
                            size_t count,
                            void *buffer,
                            size_t capacity,
                            size_t *lens,
                            size_t *len,
                            struct trommel_error **error);

// Returns whether a range may have a key. False proves that it has none. `flags`: the flags of the
// range. No block of a table is read.
//
// Threads: any. Errors: TROMMEL_CLOSED.
bool trommel_may_contain_range(const struct trommel_db *db,
                               const struct trommel_keyspace *keyspace,
                               const struct trommel_range *range,
                               uint32_t flags,
                               bool *may,
                               struct trommel_error **error);

// Estimates the number of entries in a range. No block of a table is read. Old values and
// tombstones count until they are merged.
//
// Threads: any. Errors: TROMMEL_CLOSED.
bool trommel_approximate_count(const struct trommel_db *db,
                               const struct trommel_keyspace *keyspace,
                               const struct trommel_range *range,
                               uint32_t flags,
                               struct trommel_count *count,
                               struct trommel_error **error);

// Begins a scan of a range. trommel_scan_next or trommel_scan_row returns its rows. `flags`: the
// flags of the range, TROMMEL_REVERSE, TROMMEL_KEYS_ONLY. It sees the store as it is now, whatever
// is written meanwhile. Free it with trommel_scan_free.
//
// Threads: any. Errors: TROMMEL_ARGUMENT. Errors of reading come with the rows.
struct trommel_scan *trommel_scan_begin(const struct trommel_db *db,
                                        const struct trommel_keyspace *keyspace,
                                        const struct trommel_range *range,
                                        uint32_t flags,
                                        struct trommel_error **error);

// Fills a buffer with as many of the next rows as fit, one behind the other. A row is the lengths
// of its key and of its value, its key and its value. A length has 4 bytes, little-endian.
// trommel_row reads rows. `rows`: set to the number of rows. `len`: set to their bytes.
//
// If `rows` and `len` are 0, the scan has ended. If only `rows` is 0, the next row needs `len`
// bytes, which exceeds the buffer's capacity. Then nothing was written, and the row comes next.
//
// Threads: one at a time. Errors: TROMMEL_IO, TROMMEL_CORRUPT, TROMMEL_CLOSED,
// TROMMEL_KEYSPACE_DROPPED, TROMMEL_GONE. Rows before an error are returned first. The scan ends
// after an error.
bool trommel_scan_next(struct trommel_scan *scan,
                       void *buffer,
                       size_t capacity,
                       size_t *len,
                       size_t *rows,
                       struct trommel_error **error);

// Reads a row from a buffer that trommel_scan_next has filled. `place`: the offset of the row,
// from 0 on; it is advanced behind the row. `len`: as trommel_scan_next set it. Returns false if
// there is no complete row. Key and value point into the buffer.
//
// Threads: any.
bool trommel_row(const void *buffer,
                 size_t len,
                 size_t *place,
                 const void **key,
                 size_t *key_len,
                 const void **value,
                 size_t *value_len);

// Returns the next row alone. Key and value are valid until the scan's next call. At the end,
// `key` is NULL. For many rows, trommel_scan_next costs less per row.
//
// Threads: one at a time. Errors: as of trommel_scan_next.
bool trommel_scan_row(struct trommel_scan *scan,
                      const void **key,
                      size_t *key_len,
                      const void **value,
                      size_t *value_len,
                      struct trommel_error **error);

// Seeks to a key. The next row is the first one at or after the key that was not returned yet. In
// reverse, it is the last such row at or before the key. A scan moves in one direction and never
// returns to a key that it has passed.
//
// Threads: one at a time. Errors: TROMMEL_ARGUMENT: it is the scan of a transaction.
bool trommel_scan_seek(struct trommel_scan *scan,
                       const void *key,
                       size_t key_len,
                       struct trommel_error **error);

// Frees a scan. Does nothing for NULL.
//
// Threads: one; no other call may use the handle during or after this one.
void trommel_scan_free(struct trommel_scan *scan);

// Takes a snapshot of the store as it is now. Free it with trommel_snapshot_free.
//
// Threads: any.
struct trommel_snapshot *trommel_snapshot_take(const struct trommel_db *db,
                                               struct trommel_error **error);

// Returns the number of the last write that it sees; 0 for NULL.
//
// Threads: any.
uint64_t trommel_snapshot_sequence(const struct trommel_snapshot *snapshot);

// Frees a snapshot. Does nothing for NULL.
//
// Threads: one; no other call may use the handle during or after this one.
void trommel_snapshot_free(struct trommel_snapshot *snapshot);

// Like trommel_get, at the snapshot's moment.
//
// Threads: any. Errors: as of trommel_get; for a follower's snapshot, TROMMEL_GONE.
bool trommel_snapshot_get(const struct trommel_snapshot *snapshot,
                          const struct trommel_keyspace *keyspace,
                          const void *key,
                          size_t key_len,
                          struct trommel_value **value,
                          struct trommel_error **error);

// Like trommel_get_into, at the snapshot's moment.
//
// Threads: any. Errors: as of trommel_snapshot_get.
bool trommel_snapshot_get_into(const struct trommel_snapshot *snapshot,
                               const struct trommel_keyspace *keyspace,
                               const void *key,
                               size_t key_len,
                               void *buffer,
                               size_t capacity,
                               size_t *len,
                               struct trommel_error **error);

// Like trommel_multi_get, at the snapshot's moment.
//
// Threads: any. Errors: as of trommel_multi_get and trommel_snapshot_get.
bool trommel_snapshot_multi_get(const struct trommel_snapshot *snapshot,
                                const struct trommel_keyspace *keyspace,
                                const struct trommel_bytes *keys,
                                size_t count,
                                struct trommel_value **values,
                                struct trommel_error **error);

// Like trommel_multi_get_into, at the snapshot's moment.
//
// Threads: any. Errors: as of trommel_multi_get_into and trommel_snapshot_get.
bool trommel_snapshot_multi_get_into(const struct trommel_snapshot *snapshot,
                                     const struct trommel_keyspace *keyspace,
                                     const struct trommel_bytes *keys,
                                     size_t count,
                                     void *buffer,
                                     size_t capacity,
                                     size_t *lens,
                                     size_t *len,
                                     struct trommel_error **error);

// Like trommel_may_contain_range. Also true if a key was written there since.
//
// Threads: any. Errors: as of trommel_may_contain_range.
bool trommel_snapshot_may_contain_range(const struct trommel_snapshot *snapshot,
                                        const struct trommel_keyspace *keyspace,
                                        const struct trommel_range *range,
                                        uint32_t flags,
                                        bool *may,
                                        struct trommel_error **error);

// Like trommel_approximate_count. Entries flushed since count, too, except in `least`.
//
// Threads: any. Errors: as of trommel_approximate_count.
bool trommel_snapshot_approximate_count(const struct trommel_snapshot *snapshot,
                                        const struct trommel_keyspace *keyspace,
                                        const struct trommel_range *range,
                                        uint32_t flags,
                                        struct trommel_count *count,
                                        struct trommel_error **error);

// Like trommel_scan_begin, at the snapshot's moment. The scan may outlive the snapshot.
//
// Threads: any. Errors: as of trommel_scan_begin.
struct trommel_scan *trommel_snapshot_scan(const struct trommel_snapshot *snapshot,
                                           const struct trommel_keyspace *keyspace,
                                           const struct trommel_range *range,
                                           uint32_t flags,
                                           struct trommel_error **error);

// Frees a text that the library returned as `char *`. Does nothing for NULL.
//
// Threads: one; no other call may use the handle during or after this one.
void trommel_text_free(char *text);

// Returns the number of names; 0 for NULL.
//
// Threads: any.
size_t trommel_names_count(const struct trommel_names *names);

// Returns the name at a place, counted from 0. It lives as long as the list. NULL: there is none.
//
// Threads: any.
const char *trommel_names_get(const struct trommel_names *names, size_t place);

// Frees a list. Does nothing for NULL.
//
// Threads: one; no other call may use the handle during or after this one.
void trommel_names_free(struct trommel_names *names);

// Returns the statistics of a key space as JSON: every number by its path, such as {"guard":
// {"memory_bytes": 4096}}. "failure" is null, or says why background work fails. Free it with
// trommel_text_free.
//
// Threads: any.
char *trommel_stats(const struct trommel_db *db,
                    const struct trommel_keyspace *keyspace,
                    struct trommel_error **error);

// Reads and checks every byte of every table and log, and checks every key against the guard.
// Returns a report as JSON, with "ok" and a list "damage"; free it with trommel_text_free.
// `damages`: NULL, or set to the length of that list; 0: the store is sound.
//
// Threads: any. Errors: TROMMEL_IO, TROMMEL_CLOSED. Damage is no error: it is in the report.
char *trommel_verify(const struct trommel_db *db, size_t *damages, struct trommel_error **error);

// Makes a second store with all writes that are visible now, in a folder that is empty or does not
// exist. Tables are hard links where possible.
//
// Threads: any. Errors: TROMMEL_NOT_EMPTY, TROMMEL_IO.
bool trommel_checkpoint(const struct trommel_db *db,
                        const char *folder,
                        struct trommel_error **error);

// Repairs a store that nobody has open, so that it opens and verifies. Returns a report as JSON;
// free it with trommel_text_free. `losses`: NULL, or set to the number of entries in its lists
// "lost" and "doubts"; 0: everything was saved. Damaged files move to the folder `lost` inside the
// store's folder.
//
// Threads: any. Errors: TROMMEL_LOCKED, TROMMEL_MISSING, TROMMEL_NOT_A_STORE, TROMMEL_VERSION,
// TROMMEL_IO.
char *trommel_repair(const char *folder, size_t *losses, struct trommel_error **error);

// Begins a transaction. Free it with trommel_transaction_free, even after its commit.
//
// Threads: any. Errors: TROMMEL_ARGUMENT: there is no such isolation.
struct trommel_transaction *trommel_transaction_begin(const struct trommel_db *db,
                                                      uint32_t isolation,
                                                      struct trommel_error **error);

// Returns the value of a key: the one that the transaction has written, or else that of its
// moment. It is a handle to be freed, or NULL.
//
// Threads: any. Errors: TROMMEL_ENDED; as of trommel_get.
bool trommel_transaction_get(const struct trommel_transaction *transaction,
                             const struct trommel_keyspace *keyspace,
                             const void *key,
                             size_t key_len,
                             struct trommel_value **value,
                             struct trommel_error **error);

// Locks a key and returns its newest value. Until the transaction ends, nobody else can write the
// key or read it for update.
//
// Threads: any; calls on one transaction take turns. Errors: TROMMEL_CONFLICT: the key was written
// since, and the transaction cannot move to a later moment. TROMMEL_DEADLOCK,
// TROMMEL_LOCK_TIMEOUT, TROMMEL_ENDED; as of trommel_get. trommel_error_key returns the key.
bool trommel_transaction_get_for_update(const struct trommel_transaction *transaction,
                                        const struct trommel_keyspace *keyspace,
                                        const void *key,
                                        size_t key_len,
                                        struct trommel_value **value,
                                        struct trommel_error **error);

// Sets the value of a key.
//
// Threads: any. Errors: TROMMEL_ENDED. Lengths are checked by the commit.
bool trommel_transaction_put(const struct trommel_transaction *transaction,
                             const struct trommel_keyspace *keyspace,
                             const void *key,
                             size_t key_len,
                             const void *value,
                             size_t value_len,
                             struct trommel_error **error);

// Sets the value of a key for `milliseconds` after the commit.
//
// Threads: any. Errors: as of trommel_transaction_put.
bool trommel_transaction_put_ttl(const struct trommel_transaction *transaction,
                                 const struct trommel_keyspace *keyspace,
                                 const void *key,
                                 size_t key_len,
                                 const void *value,
                                 size_t value_len,
                                 uint64_t milliseconds,
                                 struct trommel_error **error);

// Merges an operand into the value of a key. Nothing is read, so transactions that merge into the
// same key do not conflict.
//
// Threads: any. Errors: as of trommel_transaction_put.
bool trommel_transaction_merge(const struct trommel_transaction *transaction,
                               const struct trommel_keyspace *keyspace,
                               const void *key,
                               size_t key_len,
                               const void *operand,
                               size_t operand_len,
                               struct trommel_error **error);

// Deletes a key.
//
// Threads: any. Errors: as of trommel_transaction_put.
bool trommel_transaction_delete(const struct trommel_transaction *transaction,
                                const struct trommel_keyspace *keyspace,
                                const void *key,
                                size_t key_len,
                                struct trommel_error **error);

// Deletes all keys at or after `from` and before `to`.
//
// Threads: any. Errors: as of trommel_transaction_put.
bool trommel_transaction_delete_range(const struct trommel_transaction *transaction,
                                      const struct trommel_keyspace *keyspace,
                                      const void *from,
                                      size_t from_len,
                                      const void *to,
                                      size_t to_len,
                                      struct trommel_error **error);

// Begins a scan of what the transaction sees now. The range that it covers counts as read. Free it
// before the commit. Until it is freed, the transaction lives and holds its locks.
//
// Threads: any. Errors: TROMMEL_ENDED; TROMMEL_ARGUMENT: TROMMEL_KEYS_ONLY is not allowed.
struct trommel_scan *trommel_transaction_scan(const struct trommel_transaction *transaction,
                                              const struct trommel_keyspace *keyspace,
                                              const struct trommel_range *range,
                                              uint32_t flags,
                                              struct trommel_error **error);

// Returns a savepoint of the transaction's writes. Free it with trommel_savepoint_free.
//
// Threads: any. Errors: TROMMEL_ENDED.
struct trommel_savepoint *trommel_transaction_savepoint(const struct trommel_transaction *transaction,
                                                        struct trommel_error **error);

// Undoes what was written since the savepoint, and releases the locks taken since. Reads since
// must still be unchanged at the commit. The savepoint stays valid.
//
// Threads: any. Errors: TROMMEL_ENDED; TROMMEL_ARGUMENT: it is another transaction's.
bool trommel_transaction_roll_back_to(const struct trommel_transaction *transaction,
                                      const struct trommel_savepoint *savepoint,
                                      struct trommel_error **error);

// Frees a savepoint. Does nothing for NULL.
//
// Threads: one; no other call may use the handle during or after this one.
void trommel_savepoint_free(struct trommel_savepoint *savepoint);

// Commits the transaction, all of it or nothing, and ends it. `synced`: it is on disk when this
// returns, whatever the options say. `sequence`: NULL, or set to the number of its last write;
// these numbers order commits by their effects.
//
// Threads: one at a time with all other calls on the transaction. Errors: TROMMEL_CONFLICT: others
// have written what it has read (or, with TROMMEL_SNAPSHOT_ISOLATION, what it writes).
// trommel_error_key returns the key, or the start of a range that was read. TROMMEL_DEADLOCK; as
// of trommel_write. In these cases nothing was written, and the transaction has ended: begin
// another one. TROMMEL_IN_USE: a scan of it is not freed; the transaction goes on.
bool trommel_transaction_commit(const struct trommel_transaction *transaction,
                                bool synced,
                                uint64_t *sequence,
                                struct trommel_error **error);

// Ends a transaction without writing anything, and frees it. After a commit, only frees it. Does
// nothing for NULL.
//
// Threads: one; no other call may use the handle during or after this one.
void trommel_transaction_free(struct trommel_transaction *transaction);

// Returns its bytes, which live as long as the value. Not NULL for an empty value. NULL for NULL.
//
// Threads: any.
const void *trommel_value_data(const struct trommel_value *value);

// Returns its length in bytes; 0 for NULL.
//
// Threads: any.
size_t trommel_value_len(const struct trommel_value *value);

// Returns when the value expires, in milliseconds since the start of 1970. 0: it does not expire.
//
// Threads: any.
uint64_t trommel_value_expiry(const struct trommel_value *value);

// Frees a value. Does nothing for NULL.
//
// Threads: one; no other call may use the handle during or after this one.
void trommel_value_free(struct trommel_value *value);

// Sets the value of a key.
//
// Threads: any. Errors: TROMMEL_KEY_TOO_LONG, TROMMEL_VALUE_TOO_LONG, TROMMEL_LOCK_TIMEOUT:
// nothing was written. TROMMEL_IO, TROMMEL_STOPPED: the write is not visible now, and may be there
// after a crash.
bool trommel_put(const struct trommel_db *db,
                 const struct trommel_keyspace *keyspace,
                 const void *key,
                 size_t key_len,
                 const void *value,
                 size_t value_len,
                 struct trommel_error **error);

// Sets the value of a key for `milliseconds`. After that, the key has no value, not even an older
// one.
//
// Threads: any. Errors: as of trommel_put.
bool trommel_put_ttl(const struct trommel_db *db,
                     const struct trommel_keyspace *keyspace,
                     const void *key,
                     size_t key_len,
                     const void *value,
                     size_t value_len,
                     uint64_t milliseconds,
                     struct trommel_error **error);

// Merges an operand into the value of a key, by the key space's merge operator (the option
// "merge_operator"). Nothing is read.
//
// Threads: any. Errors: TROMMEL_NO_MERGE_OPERATOR; otherwise as of trommel_put.
bool trommel_merge(const struct trommel_db *db,
                   const struct trommel_keyspace *keyspace,
                   const void *key,
                   size_t key_len,
                   const void *operand,
                   size_t operand_len,
                   struct trommel_error **error);

// Deletes a key. An absent key is no error.
//
// Threads: any. Errors: as of trommel_put.
bool trommel_delete(const struct trommel_db *db,
                    const struct trommel_keyspace *keyspace,
                    const void *key,
                    size_t key_len,
                    struct trommel_error **error);

// Deletes all keys at or after `from` and before `to`, in one write, however many there are.
//
// Threads: any. Errors: TROMMEL_INVERTED_RANGE; otherwise as of trommel_put.
bool trommel_delete_range(const struct trommel_db *db,
                          const struct trommel_keyspace *keyspace,
                          const void *from,
                          size_t from_len,
                          const void *to,
                          size_t to_len,
                          struct trommel_error **error);

// Sets the value of a key that has none. `was_set`: set to whether it had none. `existing`: NULL,
// or set to the value that the key has, to be freed; NULL if it had none.
//
// Threads: any. Errors: as of trommel_put.
bool trommel_put_if_absent(const struct trommel_db *db,
                           const struct trommel_keyspace *keyspace,
                           const void *key,
                           size_t key_len,
                           const void *value,
                           size_t value_len,
                           bool *was_set,
                           struct trommel_value **existing,
                           struct trommel_error **error);

// Sets a key to `value` if it has the value `expected`. NULL with a length of 0 means none: as
// `expected`, that the key has no value; as `value`, that the key is deleted. (An empty value is
// any other pointer with a length of 0.) `swapped`: set to whether the key was written. `found`:
// NULL, or set, if it was not, to the value that the key has, to be freed, or NULL if it has none.
//
// Threads: any. Errors: as of trommel_put.
bool trommel_compare_and_swap(const struct trommel_db *db,
                              const struct trommel_keyspace *keyspace,
                              const void *key,
                              size_t key_len,
                              const void *expected,
                              size_t expected_len,
                              const void *value,
                              size_t value_len,
                              bool *swapped,
                              struct trommel_value **found,
                              struct trommel_error **error);

// Adds to a counter: 8 bytes, a signed little-endian number. A key without a value counts as 0.
// The sum wraps around. `before`: NULL, or set to the previous number.
//
// Threads: any. Errors: TROMMEL_NO_COUNTER; otherwise as of trommel_put.
bool trommel_fetch_add(const struct trommel_db *db,
                       const struct trommel_keyspace *keyspace,
                       const void *key,
                       size_t key_len,
                       int64_t add,
                       int64_t *before,
                       struct trommel_error **error);

// Writes rows with ascending keys as one sorted run in one pass, without log and memtable: for
// large sorted data. The rows are packed as trommel_scan_next returns them. Readers see all of
// them or none, and so does recovery; they are durable when this returns. Other writes wait
// meanwhile. `count`: NULL, or set to the number of rows.
//
// Threads: any. Errors: TROMMEL_UNSORTED, TROMMEL_MALFORMED, TROMMEL_KEY_TOO_LONG: nothing was
// written. TROMMEL_IO: as of trommel_put.
bool trommel_ingest(const struct trommel_db *db,
                    const struct trommel_keyspace *keyspace,
                    const void *rows,
                    size_t rows_len,
                    uint64_t *count,
                    struct trommel_error **error);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TROMMEL_H */
