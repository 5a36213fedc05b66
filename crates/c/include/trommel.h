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

// `from` is not in the range.
#define TROMMEL_FROM_EXCLUDED 1

// `to` is in the range.
#define TROMMEL_TO_INCLUDED 2

// The range is that of all keys that begin with `from`; `to` is NULL.
#define TROMMEL_PREFIX 4

// Of a scan: from the last key to the first.
#define TROMMEL_REVERSE 8

// Of a scan: values are not read, and have no bytes.
#define TROMMEL_KEYS_ONLY 16

// There is nothing more to tell now.
#define TROMMEL_CHANGE_NONE 0

// The key has this value.
#define TROMMEL_CHANGE_PUT 1

// The key has no value.
#define TROMMEL_CHANGE_DELETE 2

// No key from this one on and before `value` has a value.
#define TROMMEL_CHANGE_DELETE_RANGE 3

// The key has this value until `expiry`.
#define TROMMEL_CHANGE_PUT_WITH_EXPIRY 4

// The operand `value` is merged into the key's value.
#define TROMMEL_CHANGE_MERGE 5

// No error.
#define TROMMEL_OK 0

// The disk refused. Make room or repair the disk, then make the call again.
#define TROMMEL_IO 1

// Bytes of a file are wrong. Restore the file, or repair the store.
#define TROMMEL_CORRUPT 2

// A file that the store needs is missing.
#define TROMMEL_FILE_MISSING 3

// The folder holds files, but no store.
#define TROMMEL_NOT_A_STORE 4

// The folder is for a new store, but has files.
#define TROMMEL_NOT_EMPTY 5

// The folder holds no store, and the call was not to create one.
#define TROMMEL_MISSING 6

// Another version of Trommel wrote this.
#define TROMMEL_VERSION 7

// The store is open already, in another process or in this one.
#define TROMMEL_LOCKED 8

// The store was closed.
#define TROMMEL_CLOSED 9

// This process is a forked child of the one that opened the store.
#define TROMMEL_FORKED 10

// A key is too long.
#define TROMMEL_KEY_TOO_LONG 11

// A value is too long.
#define TROMMEL_VALUE_TOO_LONG 12

// A batch is too long.
#define TROMMEL_BATCH_TOO_LONG 13

// Keys that must ascend do not.
#define TROMMEL_UNSORTED 14

// A range to delete ends before it begins.
#define TROMMEL_INVERTED_RANGE 15

// An option, or a name, makes no sense.
#define TROMMEL_OPTION 16

// Background work failed, and writes wait for it. It is tried again.
#define TROMMEL_STOPPED 17

// A thread of the store panicked. No acknowledged write is lost.
#define TROMMEL_PANICKED 18

// A flush that must come first is under way. Make the call again.
#define TROMMEL_FLUSH_UNDER_WAY 19

// Packed writes are malformed.
#define TROMMEL_MALFORMED 20

// The caller stopped the call.
#define TROMMEL_CANCELLED 21

// There is no key space of that name.
#define TROMMEL_NO_KEYSPACE 22

// There is a key space of that name already.
#define TROMMEL_KEYSPACE_EXISTS 23

// The key space was dropped.
#define TROMMEL_KEYSPACE_DROPPED 24

// Others have written a key since it was read. Nothing was written.
#define TROMMEL_CONFLICT 25

// A value that is to be added to is no number of 8 bytes.
#define TROMMEL_NO_COUNTER 26

// A transaction has locked a key for too long.
#define TROMMEL_LOCK_TIMEOUT 27

// Whoever has locked a key waits for this transaction. End it, and run it again.
#define TROMMEL_DEADLOCK 28

// The key space was opened without the merge operator that a key needs.
#define TROMMEL_NO_MERGE_OPERATOR 29

// The merge operator makes no value of a key.
#define TROMMEL_MERGE_FAILED 30

// Changes, or a file that a follower needs, are gone.
#define TROMMEL_GONE 31

// A file needs a feature that this library was built without.
#define TROMMEL_FEATURE_MISSING 32

// An argument makes no sense: NULL where none may be, a flag that is none, a key space of another
// store. Nothing was done.
#define TROMMEL_ARGUMENT 1000

// The library has panicked, which is a bug of it. The handles of the call can be freed; anything
// else that is done with those that it would change may give wrong answers.
#define TROMMEL_BUG 1001

// The bytes are no filter of that kind.
#define TROMMEL_NO_FILTER 1002

// The transaction has ended.
#define TROMMEL_ENDED 1003

// The transaction is in use: by a scan that is not freed, or by a call of another thread.
#define TROMMEL_IN_USE 1004

// The version of what this header declares. trommel_abi_version gives that of the library.
#define TROMMEL_ABI_VERSION 1

// All that a transaction has read is as it was when it commits: transactions are as if they ran
// one after the other.
#define TROMMEL_SERIALIZABLE 0

// What a transaction writes was written by nobody else since it began.
#define TROMMEL_SNAPSHOT_ISOLATION 1

// A folder of backups of one store. It is locked until the handle is freed.
//
// Threads: any, at once; but freeing it is the last use.
typedef struct trommel_backups trommel_backups;

// Writes that are applied together: readers see all of them or none, and so does a recovery. Of
// two writes of one key the later one counts.
//
// Threads: one at a time, whichever.
typedef struct trommel_batch trommel_batch;

// Committed writes, in their order.
//
// Threads: one at a time, whichever.
typedef struct trommel_changes trommel_changes;

// An open store.
//
// Threads: any, at once; but freeing it is the last use.
typedef struct trommel_db trommel_db;

// Why a call has failed. Each call that can fail sets the place that its last argument points to:
// to NULL if all went well, else to an error, which is the caller's to free. What was there before
// is not looked at. NULL as the argument: the error is not told.
//
// Threads: any, at once; but freeing it is the last use.
typedef struct trommel_error trommel_error;

// A filter of some keys. Its answers err one way: "no" proves that a key is not there.
//
// Threads: any, at once; but freeing it is the last use.
typedef struct trommel_filter trommel_filter;

// Builds a filter from keys that come in ascending order.
//
// Threads: one at a time, whichever.
typedef struct trommel_filter_builder trommel_filter_builder;

// A store that is followed. It shows the store as it was at some moment; trommel_follower_catch_up
// moves on. To read, take a snapshot.
//
// Threads: any, at once; but freeing it is the last use.
typedef struct trommel_follower trommel_follower;

// A key space of a store. NULL instead of one means the default key space, which every store has.
//
// Threads: any, at once; but freeing it is the last use.
typedef struct trommel_keyspace trommel_keyspace;

// All key spaces of a store that is followed, at one moment.
//
// Threads: any, at once; but freeing it is the last use.
typedef struct trommel_moment trommel_moment;

// A list of names.
//
// Threads: any, at once; but freeing it is the last use.
typedef struct trommel_names trommel_names;

// Options that were set; all others are as they usually are. They are copied where they are used.
//
// Threads: one at a time, or any while none sets something.
typedef struct trommel_options trommel_options;

// A place to which the writes of a transaction can go back.
//
// Threads: any, at once; but freeing it is the last use.
typedef struct trommel_savepoint trommel_savepoint;

// The rows of a range, as of the moment when the scan began.
//
// Threads: one at a time, whichever.
typedef struct trommel_scan trommel_scan;

// A store at one moment, of all its key spaces; or one key space of a store that is followed. NULL
// as a key space means the default one, or that of the follower's.
//
// Merges keep what a snapshot sees: free it soon.
//
// Threads: any, at once; but freeing it is the last use.
typedef struct trommel_snapshot trommel_snapshot;

// Reads of one moment and writes on top of them. Its reads see its writes. Freed without a commit,
// nothing of it is written.
//
// Threads: any, at once; but a commit needs that nobody else uses it, and freeing it is the last
// use.
typedef struct trommel_transaction trommel_transaction;

// The bytes of a value, where they lie in the store's memory: nothing is copied. It keeps a block
// of a table, or a memtable, in memory: free it soon. It may outlive its store.
//
// Threads: any, at once; but freeing it is the last use.
typedef struct trommel_value trommel_value;

// A write. What it points to lies in the feed until its next call.
typedef struct trommel_change {
  // Its number: each write has a greater one than those before it.
  uint64_t sequence;
  // When the value expires, in milliseconds since the start of 1970; 0: it does not.
  uint64_t expiry;
  // The key.
  const void *key;
  // How many bytes it has.
  size_t key_len;
  // The value, or what else belongs to the kind.
  const void *value;
  // How many bytes it has.
  size_t value_len;
  // The name of its key space, which no zero ends. NULL: it was dropped before.
  const char *keyspace_name;
  // How many bytes that has.
  size_t keyspace_name_len;
  // The number of its key space; 0 is the default one.
  uint32_t keyspace;
  // What has become of the key: one of the constants above.
  uint32_t kind;
  // Whether it is the last one of a batch: a feed can go on behind it.
  bool ends_batch;
} trommel_change;

// Bytes of the caller.
typedef struct trommel_bytes {
  // Where they begin. NULL only if there are none.
  const void *data;
  // How many they are.
  size_t len;
} trommel_bytes;

// How far a follower is behind.
typedef struct trommel_staleness {
  // The number of the newest write that reads see.
  uint64_t sequence;
  // Milliseconds since the follower last looked, and all went well.
  uint64_t since_look;
  // Milliseconds since such a look found something new.
  uint64_t since_news;
} trommel_staleness;

// A range of keys, from `from` on and before `to`. NULL with a length of 0: no bound there. Flags
// of the call may change that. Where a call takes a range, NULL means all keys.
typedef struct trommel_range {
  // The first key, or the prefix of all of them.
  const void *from;
  // How many bytes it has.
  size_t from_len;
  // The key behind the last one.
  const void *to;
  // How many bytes it has.
  size_t to_len;
} trommel_range;

// How many entries a range has, by what the store knows without reading it.
typedef struct trommel_count {
  // There are no fewer entries. (Of keys there may be fewer.)
  uint64_t least;
  // About so many.
  uint64_t estimate;
  // There are no more entries, and so no more keys.
  uint64_t most;
} trommel_count;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The backups in a folder, which is made if there is none. Free the handle with
// trommel_backups_free.
//
// Threads: any. Errors: TROMMEL_LOCKED, TROMMEL_IO.
struct trommel_backups *trommel_backups_open(const char *folder, struct trommel_error **error);

// Stores all writes that are visible now as a new generation. `number`: NULL, or which one it is.
//
// Threads: any; of calls that change the backups one waits for the other. Errors: TROMMEL_IO: no
// generation is made.
bool trommel_backups_create(const struct trommel_backups *backups,
                            const struct trommel_db *db,
                            uint64_t *number,
                            struct trommel_error **error);

// All generations, the oldest first, as JSON: a list of objects with "number", "sequence",
// "milliseconds" (since the start of 1970), "files" and "bytes". Free it with trommel_text_free.
//
// Threads: any. Errors: TROMMEL_CORRUPT, TROMMEL_IO.
char *trommel_backups_list(const struct trommel_backups *backups, struct trommel_error **error);

// Reads all that a generation has, and checks it. Gives a report as JSON; free it with
// trommel_text_free. `damages`: NULL, or how many are in its list "damage"; 0: it is sound.
//
// Threads: any. Errors: TROMMEL_FILE_MISSING, there is no such generation; TROMMEL_IO.
char *trommel_backups_verify(const struct trommel_backups *backups,
                             uint64_t number,
                             size_t *damages,
                             struct trommel_error **error);

// Makes a store of a generation, in a folder that is empty or not there.
//
// Threads: any. Errors: TROMMEL_FILE_MISSING, there is no such generation; TROMMEL_NOT_EMPTY,
// TROMMEL_CORRUPT, TROMMEL_IO.
bool trommel_backups_restore(const struct trommel_backups *backups,
                             uint64_t number,
                             const char *folder,
                             struct trommel_error **error);

// Removes all generations but the newest `keep`, and what only they needed. `removed`: NULL, or
// how many generations went.
//
// Threads: any. Errors: TROMMEL_IO: something stays, and the next call removes it.
bool trommel_backups_prune(const struct trommel_backups *backups,
                           size_t keep,
                           size_t *removed,
                           struct trommel_error **error);

// Frees the handle, and the lock of the folder. NULL is none.
//
// Threads: one, which uses it last.
void trommel_backups_free(struct trommel_backups *backups);

// A batch without writes. Free it with trommel_batch_free.
//
// Threads: any.
struct trommel_batch *trommel_batch_new(void);

// A batch of packed writes into the default key space, one behind the other, each: a byte (1 put,
// 2 delete, 3 delete a range, 4 put for a while, 5 merge), the length of its key and that of its
// value, each in 4 bytes, the low one first; its key; its value. Of a range that is its end. A
// deletion has none. Of 4 it begins with nanoseconds in 8 bytes, the low one first.
//
// Threads: any. Errors: TROMMEL_MALFORMED.
struct trommel_batch *trommel_batch_from_packed(const void *data,
                                                size_t len,
                                                struct trommel_error **error);

// Sets the value of a key.
//
// Threads: one at a time. Errors: TROMMEL_ARGUMENT. What is too long is told when it is written.
bool trommel_batch_put(struct trommel_batch *batch,
                       const struct trommel_keyspace *keyspace,
                       const void *key,
                       size_t key_len,
                       const void *value,
                       size_t value_len,
                       struct trommel_error **error);

// Sets the value of a key for so many milliseconds after the batch is written.
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

// Merges an operand into the value of a key, as trommel_merge does.
//
// Threads: one at a time. Errors: as of trommel_batch_put.
bool trommel_batch_merge(struct trommel_batch *batch,
                         const struct trommel_keyspace *keyspace,
                         const void *key,
                         size_t key_len,
                         const void *operand,
                         size_t operand_len,
                         struct trommel_error **error);

// Removes a key.
//
// Threads: one at a time. Errors: as of trommel_batch_put.
bool trommel_batch_delete(struct trommel_batch *batch,
                          const struct trommel_keyspace *keyspace,
                          const void *key,
                          size_t key_len,
                          struct trommel_error **error);

// Removes all keys from `from` on and before `to`. If `from` is behind `to`, writing the batch is
// an error.
//
// Threads: one at a time. Errors: as of trommel_batch_put.
bool trommel_batch_delete_range(struct trommel_batch *batch,
                                const struct trommel_keyspace *keyspace,
                                const void *from,
                                size_t from_len,
                                const void *to,
                                size_t to_len,
                                struct trommel_error **error);

// The batch is written only if the key then has this value; NULL with a length of 0: only if it
// has none. Else writing it gives TROMMEL_CONFLICT, and nothing is written. What the batch itself
// writes does not count.
//
// Threads: one at a time. Errors: as of trommel_batch_put.
bool trommel_batch_only_if(struct trommel_batch *batch,
                           const struct trommel_keyspace *keyspace,
                           const void *key,
                           size_t key_len,
                           const void *value,
                           size_t value_len,
                           struct trommel_error **error);

// How many writes it has. 0 of NULL.
//
// Threads: one at a time.
size_t trommel_batch_count(const struct trommel_batch *batch);

// Forgets all that the batch has.
//
// Threads: one at a time.
void trommel_batch_clear(struct trommel_batch *batch);

// Frees a batch. NULL is none.
//
// Threads: one, which uses it last.
void trommel_batch_free(struct trommel_batch *batch);

// Applies a batch. `synced`: it is on disk when this returns, whatever the options say. The batch
// is empty then, after an error too.
//
// Threads: any of a store; one at a time of a batch. Errors: TROMMEL_CONFLICT,
// TROMMEL_KEY_TOO_LONG, TROMMEL_VALUE_TOO_LONG, TROMMEL_BATCH_TOO_LONG, TROMMEL_INVERTED_RANGE,
// TROMMEL_LOCK_TIMEOUT, TROMMEL_KEYSPACE_DROPPED, nothing was written; TROMMEL_IO,
// TROMMEL_STOPPED, it is not visible now, and after a crash it is there as a whole or not at all.
// TROMMEL_ARGUMENT: it is as it was.
bool trommel_write(const struct trommel_db *db,
                   struct trommel_batch *batch,
                   bool synced,
                   struct trommel_error **error);

// All committed writes after the one of this number, of all key spaces, as far as they are
// durable: trommel_snapshot_sequence gives a number to begin with. The option "kept_log_bytes" has
// the store keep its logs for it. Free it with trommel_changes_free.
//
// Threads: any. Errors: TROMMEL_GONE.
struct trommel_changes *trommel_changes_since(const struct trommel_db *db,
                                              uint64_t sequence,
                                              struct trommel_error **error);

// Gives the next change. `kind` is TROMMEL_CHANGE_NONE if there is nothing more to tell now: ask
// again later.
//
// Threads: one at a time. Errors: TROMMEL_GONE, TROMMEL_CORRUPT, TROMMEL_IO, TROMMEL_CLOSED.
// Nothing is passed over; the next call tries again.
bool trommel_changes_next(struct trommel_changes *changes,
                          struct trommel_change *change,
                          struct trommel_error **error);

// Frees a feed. NULL is none.
//
// Threads: one, which uses it last.
void trommel_changes_free(struct trommel_changes *changes);

// Opens the store in a folder, and makes one if there is none. `options`: NULL, or what is set.
// Close the store with trommel_close, then free the handle with trommel_db_free.
//
// Threads: any. Errors: TROMMEL_LOCKED, TROMMEL_NOT_A_STORE, TROMMEL_VERSION, TROMMEL_CORRUPT,
// TROMMEL_OPTION, TROMMEL_IO.
struct trommel_db *trommel_open(const char *folder,
                                const struct trommel_options *options,
                                struct trommel_error **error);

// Closes a store: waits for calls under way, makes all writes durable, ends background work. The
// folder is then free to be opened again. All other handles of the store give TROMMEL_CLOSED from
// then on. They, and this one, are still to be freed. Closing it again does nothing.
//
// Threads: any, at once with all other calls. Errors: what kept writes from becoming durable; the
// store is closed all the same. TROMMEL_FORKED.
bool trommel_close(struct trommel_db *db, struct trommel_error **error);

// Frees the handle of a store. One that is not closed is closed, and nobody hears what went wrong.
// NULL is none.
//
// Threads: one, which uses it last.
void trommel_db_free(struct trommel_db *db);

// Makes all writes so far durable.
//
// Threads: any.
bool trommel_sync(const struct trommel_db *db, struct trommel_error **error);

// Writes what is in memory to runs on disk, of each key space.
//
// Threads: any.
bool trommel_flush(const struct trommel_db *db, struct trommel_error **error);

// Merges everything of each key space into one run.
//
// Threads: any.
bool trommel_compact(const struct trommel_db *db, struct trommel_error **error);

// Returns when no flush or merge is due.
//
// Threads: any.
bool trommel_settle(const struct trommel_db *db, struct trommel_error **error);

// The code of an error: one of the constants above. 0 of NULL.
//
// Threads: any.
uint32_t trommel_error_code(const struct trommel_error *error);

// What went wrong, where, and what to do: a text in UTF-8 that ends with a zero, and lives as long
// as the error. An empty one of NULL.
//
// Threads: any.
const char *trommel_error_message(const struct trommel_error *error);

// The key that an error is about, as of a conflict; it lives as long as the error. NULL, and a
// length of 0: it is about none.
//
// Threads: any.
const void *trommel_error_key(const struct trommel_error *error, size_t *len);

// The number of that key's key space; 0 is the default one.
//
// Threads: any.
uint32_t trommel_error_keyspace(const struct trommel_error *error);

// Whether bytes are wrong or a file is missing, for this call or for background work.
// trommel_verify tells all damage, trommel_repair mends it.
//
// Threads: any.
bool trommel_error_tells_of_damage(const struct trommel_error *error);

// Frees an error. NULL is none.
//
// Threads: one, which uses it last.
void trommel_error_free(struct trommel_error *error);

// For tests of bindings: a call in which the library panics. It gives false and TROMMEL_BUG.
//
// Threads: any.
bool trommel_test_panic(struct trommel_error **error);

// The kinds of filters, by their names. Free them with trommel_names_free.
//
// Threads: any.
struct trommel_names *trommel_filter_kinds(struct trommel_error **error);

// Whether filters of a kind answer for ranges; else they say "maybe" to every range of more than
// one key. False of a kind that there is not.
//
// Threads: any.
bool trommel_filter_kind_knows_ranges(const char *kind);

// A builder of a filter of a kind, with so many bits for each key, 1 to 64. `options`: NULL, or
// what is set; of use are the options of filters. Free it with trommel_filter_builder_free.
//
// Threads: any. Errors: TROMMEL_ARGUMENT, there is no such kind.
struct trommel_filter_builder *trommel_filter_builder_new(const char *kind,
                                                          double bits_per_key,
                                                          const struct trommel_options *options,
                                                          struct trommel_error **error);

// Adds a key, which is not before the last one. Of equal keys one counts.
//
// Threads: one at a time. Errors: TROMMEL_UNSORTED: the key was not added, and the builder is as
// it was. TROMMEL_ARGUMENT, it is finished.
bool trommel_filter_builder_add(struct trommel_filter_builder *builder,
                                const void *key,
                                size_t key_len,
                                struct trommel_error **error);

// The filter's bytes, for trommel_filter_read. The builder is finished then, and still to be
// freed.
//
// Threads: one at a time. Errors: TROMMEL_ARGUMENT, it was finished before.
struct trommel_value *trommel_filter_builder_finish(struct trommel_filter_builder *builder,
                                                    struct trommel_error **error);

// Frees a builder. NULL is none.
//
// Threads: one, which uses it last.
void trommel_filter_builder_free(struct trommel_filter_builder *builder);

// The bytes of a filter of keys that are there already, in ascending order.
//
// Threads: any. Errors: TROMMEL_UNSORTED, of kinds that need the order; TROMMEL_ARGUMENT, there is
// no such kind.
struct trommel_value *trommel_filter_build(const char *kind,
                                           double bits_per_key,
                                           const struct trommel_bytes *keys,
                                           size_t count,
                                           struct trommel_error **error);

// Reads a filter of a kind from its bytes, which it copies. `kind`: NULL, and the bytes say it.
// They may be of whatever origin, but a checksum is for who keeps them: bytes that were damaged
// may make a filter all the same, which gives wrong answers. Free it with trommel_filter_free.
//
// Threads: any. Errors: TROMMEL_NO_FILTER, these are no such bytes; TROMMEL_ARGUMENT, there is no
// such kind.
struct trommel_filter *trommel_filter_read(const char *kind,
                                           const void *data,
                                           size_t len,
                                           struct trommel_error **error);

// False: the key is not there. True: it may be. True of NULL, and of a key that is none.
//
// Threads: any.
bool trommel_filter_may_contain(const struct trommel_filter *filter,
                                const void *key,
                                size_t key_len);

// False: no key from `from` to `to`, both of them included, is there. True: one may be. NULL with
// a length of 0 is no bound there. True of NULL; false of a range that ends before it begins.
//
// Threads: any.
bool trommel_filter_may_contain_range(const struct trommel_filter *filter,
                                      const void *from,
                                      size_t from_len,
                                      const void *to,
                                      size_t to_len);

// The name of its kind, which lives as long as the filter. NULL of NULL.
//
// Threads: any.
const char *trommel_filter_kind(const struct trommel_filter *filter);

// How many bytes it has. 0 of NULL.
//
// Threads: any.
size_t trommel_filter_size(const struct trommel_filter *filter);

// Frees a filter. NULL is none.
//
// Threads: one, which uses it last.
void trommel_filter_free(struct trommel_filter *filter);

// Reads a store along that another process writes, or nobody. `options`: NULL, or what is set.
// `interval`: how often a thread catches up, in milliseconds; 0: only calls do.
//
// Threads: any. Errors: TROMMEL_MISSING, TROMMEL_NOT_A_STORE, TROMMEL_VERSION, TROMMEL_CORRUPT,
// TROMMEL_FILE_MISSING.
struct trommel_follower *trommel_follow(const char *folder,
                                        const struct trommel_options *options,
                                        uint64_t interval,
                                        struct trommel_error **error);

// Moves on to what the writer has shown since. `moved`: NULL, or whether there was something.
//
// Threads: any. Errors: TROMMEL_CORRUPT, TROMMEL_FILE_MISSING, TROMMEL_IO: what was read stays as
// it was, and the next call tries again.
bool trommel_follower_catch_up(const struct trommel_follower *follower,
                               bool *moved,
                               struct trommel_error **error);

// How far it is behind. `failure`: NULL, or why the last look has failed: a text to be freed with
// trommel_text_free, NULL if it went well.
//
// Threads: any.
bool trommel_follower_staleness(const struct trommel_follower *follower,
                                struct trommel_staleness *staleness,
                                char **failure,
                                struct trommel_error **error);

// A key space as it is shown now; `keyspace`: its name, NULL: the default one. Free it with
// trommel_snapshot_free.
//
// Threads: any. Errors: TROMMEL_NO_KEYSPACE, there is none, or none yet.
struct trommel_snapshot *trommel_follower_snapshot(const struct trommel_follower *follower,
                                                   const char *keyspace,
                                                   struct trommel_error **error);

// The names of its key spaces, the default one first. Free them with trommel_names_free.
//
// Threads: any.
struct trommel_names *trommel_follower_keyspaces(const struct trommel_follower *follower,
                                                 struct trommel_error **error);

// The present moment, of all key spaces. Free it with trommel_moment_free.
//
// Threads: any.
struct trommel_moment *trommel_follower_moment(const struct trommel_follower *follower,
                                               struct trommel_error **error);

// The number of the last write that a moment sees. 0 of NULL.
//
// Threads: any.
uint64_t trommel_moment_sequence(const struct trommel_moment *moment);

// A key space at that moment; `keyspace`: its name, NULL: the default one. Free it with
// trommel_snapshot_free.
//
// Threads: any. Errors: TROMMEL_NO_KEYSPACE.
struct trommel_snapshot *trommel_moment_snapshot(const struct trommel_moment *moment,
                                                 const char *keyspace,
                                                 struct trommel_error **error);

// Frees a moment. NULL is none.
//
// Threads: one, which uses it last.
void trommel_moment_free(struct trommel_moment *moment);

// What the follower holds of a key space, as JSON; `keyspace`: its name, NULL: the default one.
// Free it with trommel_text_free.
//
// Threads: any. Errors: TROMMEL_NO_KEYSPACE.
char *trommel_follower_stats(const struct trommel_follower *follower,
                             const char *keyspace,
                             struct trommel_error **error);

// As trommel_verify, of the present moment.
//
// Threads: any. Errors: as there; TROMMEL_GONE.
char *trommel_follower_verify(const struct trommel_follower *follower,
                              size_t *damages,
                              struct trommel_error **error);

// Makes a store of its own in a folder that is new or empty, of the present moment. Files are
// copied.
//
// Threads: any. Errors: TROMMEL_NOT_EMPTY, TROMMEL_GONE, TROMMEL_IO.
bool trommel_follower_checkpoint(const struct trommel_follower *follower,
                                 const char *folder,
                                 struct trommel_error **error);

// Closes a follower. Its snapshots and scans give TROMMEL_CLOSED from then on. The handle is still
// to be freed.
//
// Threads: any, at once with all other calls.
bool trommel_follower_close(const struct trommel_follower *follower, struct trommel_error **error);

// Frees the handle of a follower, and closes it. NULL is none.
//
// Threads: one, which uses it last.
void trommel_follower_free(struct trommel_follower *follower);

// The key space of a name, which is made if it is not there. `options`: NULL, or what is set; the
// store keeps it. Free the handle with trommel_keyspace_free.
//
// Threads: any. Errors: TROMMEL_OPTION, the name or an option makes no sense.
struct trommel_keyspace *trommel_keyspace_make(const struct trommel_db *db,
                                               const char *name,
                                               const struct trommel_options *options,
                                               struct trommel_error **error);

// The key space of a name. Free the handle with trommel_keyspace_free.
//
// Threads: any. Errors: TROMMEL_NO_KEYSPACE.
struct trommel_keyspace *trommel_keyspace_open(const struct trommel_db *db,
                                               const char *name,
                                               struct trommel_error **error);

// Its name, as it is now. Free it with trommel_text_free.
//
// Threads: any.
char *trommel_keyspace_name(const struct trommel_keyspace *keyspace, struct trommel_error **error);

// Frees a handle. The key space stays. NULL is none.
//
// Threads: one, which uses it last.
void trommel_keyspace_free(struct trommel_keyspace *keyspace);

// The names of all key spaces, the default one first. Free them with trommel_names_free.
//
// Threads: any.
struct trommel_names *trommel_keyspaces(const struct trommel_db *db, struct trommel_error **error);

// Drops a key space with all that is in it. Handles, snapshots and scans of it give
// TROMMEL_KEYSPACE_DROPPED from then on.
//
// Threads: any. Errors: TROMMEL_NO_KEYSPACE; TROMMEL_OPTION, it is the default one.
bool trommel_keyspace_drop(const struct trommel_db *db,
                           const char *name,
                           struct trommel_error **error);

// Gives a key space another name. Its handles stay good.
//
// Threads: any. Errors: TROMMEL_NO_KEYSPACE, TROMMEL_KEYSPACE_EXISTS; TROMMEL_OPTION, it is the
// default one, or the new name makes no sense.
bool trommel_keyspace_rename(const struct trommel_db *db,
                             const char *from,
                             const char *to,
                             struct trommel_error **error);

// Which version of the header the library was built for. A program that finds another one than its
// own TROMMEL_ABI_VERSION must not use the library.
//
// Threads: any.
uint32_t trommel_abi_version(void);

// The version of Trommel, such as "0.2.0". It lives as long as the program.
//
// Threads: any.
const char *trommel_version(void);

// Options of which none is set. Free them with trommel_options_free.
//
// Threads: any.
struct trommel_options *trommel_options_new(void);

// Options for a kind of machine, from which one goes on: "server", "small-device" or
// "many-stores".
//
// Threads: any. Errors: TROMMEL_OPTION, there is no such preset.
struct trommel_options *trommel_options_preset(const char *name, struct trommel_error **error);

// Sets an option from its text, such as "write_buffer_bytes" and "64MiB". trommel_options_list
// names them all.
//
// Threads: one at a time. Errors: TROMMEL_OPTION, there is no such option, or the text is no value
// of it; then nothing is set. What it may be is checked where the options are used.
bool trommel_options_set(struct trommel_options *options,
                         const char *name,
                         const char *value,
                         struct trommel_error **error);

// Has an option hold for one opening alone: the store keeps what it kept.
//
// Threads: one at a time. Errors: TROMMEL_OPTION, there is no such option.
bool trommel_options_for_now(struct trommel_options *options,
                             const char *name,
                             struct trommel_error **error);

// The text of an option, as it is set or usually is. Free it with trommel_text_free.
//
// Threads: one at a time. Errors: TROMMEL_OPTION, there is no such option.
char *trommel_options_get(const struct trommel_options *options,
                          const char *name,
                          struct trommel_error **error);

// All options, as JSON: a list of objects with "name", "kind", "limits", "default", "help" and
// "of_keyspace", whether a key space may have its own. Free it with trommel_text_free.
//
// Threads: any.
char *trommel_options_list(struct trommel_error **error);

// Frees options. NULL is none.
//
// Threads: one, which uses them last.
void trommel_options_free(struct trommel_options *options);

// Gives the value of a key: a handle to be freed with trommel_value_free, or NULL if the key has
// none. Nothing is copied.
//
// Threads: any. Errors: TROMMEL_IO, TROMMEL_CORRUPT, TROMMEL_CLOSED.
bool trommel_get(const struct trommel_db *db,
                 const struct trommel_keyspace *keyspace,
                 const void *key,
                 size_t key_len,
                 struct trommel_value **value,
                 struct trommel_error **error);

// Copies the value of a key into a buffer. `len`: its length; TROMMEL_ABSENT if the key has none.
// If it is longer than the buffer's capacity, nothing is copied: call again with more.
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

// Gives the values of many keys at one moment, in the order of the keys: each a handle to be
// freed, or NULL if that key has none. `values` has room for `count`. Takes less time a key than
// as many gets.
//
// Threads: any. Errors: that of the first key that cannot be read; then none is given.
bool trommel_multi_get(const struct trommel_db *db,
                       const struct trommel_keyspace *keyspace,
                       const struct trommel_bytes *keys,
                       size_t count,
                       struct trommel_value **values,
                       struct trommel_error **error);

// As trommel_multi_get, but copies the values one behind the other into a buffer. `lens`, with
// room for `count`: the length of each, TROMMEL_ABSENT for keys that have none. `len`: of all
// together. If that is more than the buffer's capacity, no value is copied: call again with more.
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

// Whether a range may have a key. False proves that it has none. `flags`: how the range is meant.
// Reads no block of a table.
//
// Threads: any. Errors: TROMMEL_CLOSED.
bool trommel_may_contain_range(const struct trommel_db *db,
                               const struct trommel_keyspace *keyspace,
                               const struct trommel_range *range,
                               uint32_t flags,
                               bool *may,
                               struct trommel_error **error);

// How many entries a range has, about. Reads no block of a table. Old values and deletions count
// until they are merged.
//
// Threads: any. Errors: TROMMEL_CLOSED.
bool trommel_approximate_count(const struct trommel_db *db,
                               const struct trommel_keyspace *keyspace,
                               const struct trommel_range *range,
                               uint32_t flags,
                               struct trommel_count *count,
                               struct trommel_error **error);

// Begins a scan of a range: trommel_scan_next gives its rows, or trommel_scan_row. `flags`: how
// the range is meant, TROMMEL_REVERSE, TROMMEL_KEYS_ONLY. Free it with trommel_scan_free. It sees
// the store as it is now, whatever is written meanwhile.
//
// Threads: any. Errors: TROMMEL_ARGUMENT. Those of reading come with the rows.
struct trommel_scan *trommel_scan_begin(const struct trommel_db *db,
                                        const struct trommel_keyspace *keyspace,
                                        const struct trommel_range *range,
                                        uint32_t flags,
                                        struct trommel_error **error);

// Fills a buffer with the next rows, as many as fit, one behind the other. A row is the length of
// its key, the length of its value, each in 4 bytes, the low one first; then its key, then its
// value. trommel_row reads them. `rows`: how many there are, `len`: how many bytes they take.
//
// `rows` 0 and `len` 0: the scan has ended. `rows` 0 and another `len`: the next row takes so many
// bytes, which is more than the buffer's capacity; nothing was written, and the row comes next.
//
// Threads: one at a time. Errors: TROMMEL_IO, TROMMEL_CORRUPT, TROMMEL_CLOSED,
// TROMMEL_KEYSPACE_DROPPED, TROMMEL_GONE. Rows before an error are given first. After it the scan
// ends.
bool trommel_scan_next(struct trommel_scan *scan,
                       void *buffer,
                       size_t capacity,
                       size_t *len,
                       size_t *rows,
                       struct trommel_error **error);

// Reads a row of a buffer that trommel_scan_next has filled. `place`: where the row begins, from 0
// on; it is moved behind the row. `len`: what trommel_scan_next told. False: there is no whole row
// there. What is read lies in the buffer.
//
// Threads: any.
bool trommel_row(const void *buffer,
                 size_t len,
                 size_t *place,
                 const void **key,
                 size_t *key_len,
                 const void **value,
                 size_t *value_len);

// Gives the next row, alone: key and value lie in the scan until its next call. At the end `key`
// is NULL. For few rows; trommel_scan_next costs less a row.
//
// Threads: one at a time. Errors: as of trommel_scan_next.
bool trommel_scan_row(struct trommel_scan *scan,
                      const void **key,
                      size_t *key_len,
                      const void **value,
                      size_t *value_len,
                      struct trommel_error **error);

// Goes on at a key: the next row is the first of the range that is not before it and was not given
// yet; in reverse, the last one that is not behind it. A scan goes one way: to a key that it has
// passed it does not come back.
//
// Threads: one at a time. Errors: TROMMEL_ARGUMENT, it is the scan of a transaction.
bool trommel_scan_seek(struct trommel_scan *scan,
                       const void *key,
                       size_t key_len,
                       struct trommel_error **error);

// Frees a scan. NULL is none.
//
// Threads: one, which uses it last.
void trommel_scan_free(struct trommel_scan *scan);

// The store as it is now. Free it with trommel_snapshot_free.
//
// Threads: any.
struct trommel_snapshot *trommel_snapshot_take(const struct trommel_db *db,
                                               struct trommel_error **error);

// The number of the last write that it sees. 0 of NULL.
//
// Threads: any.
uint64_t trommel_snapshot_sequence(const struct trommel_snapshot *snapshot);

// Frees a snapshot. NULL is none.
//
// Threads: one, which uses it last.
void trommel_snapshot_free(struct trommel_snapshot *snapshot);

// As trommel_get, at the snapshot's moment.
//
// Threads: any. Errors: as there; TROMMEL_GONE of a follower's.
bool trommel_snapshot_get(const struct trommel_snapshot *snapshot,
                          const struct trommel_keyspace *keyspace,
                          const void *key,
                          size_t key_len,
                          struct trommel_value **value,
                          struct trommel_error **error);

// As trommel_get_into, at the snapshot's moment.
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

// As trommel_multi_get, at the snapshot's moment.
//
// Threads: any. Errors: as there, and as of trommel_snapshot_get.
bool trommel_snapshot_multi_get(const struct trommel_snapshot *snapshot,
                                const struct trommel_keyspace *keyspace,
                                const struct trommel_bytes *keys,
                                size_t count,
                                struct trommel_value **values,
                                struct trommel_error **error);

// As trommel_multi_get_into, at the snapshot's moment.
//
// Threads: any. Errors: as there, and as of trommel_snapshot_get.
bool trommel_snapshot_multi_get_into(const struct trommel_snapshot *snapshot,
                                     const struct trommel_keyspace *keyspace,
                                     const struct trommel_bytes *keys,
                                     size_t count,
                                     void *buffer,
                                     size_t capacity,
                                     size_t *lens,
                                     size_t *len,
                                     struct trommel_error **error);

// As trommel_may_contain_range. True, too, if a key was written there since.
//
// Threads: any. Errors: as there.
bool trommel_snapshot_may_contain_range(const struct trommel_snapshot *snapshot,
                                        const struct trommel_keyspace *keyspace,
                                        const struct trommel_range *range,
                                        uint32_t flags,
                                        bool *may,
                                        struct trommel_error **error);

// As trommel_approximate_count. Entries that were flushed since count, too, but in `least`.
//
// Threads: any. Errors: as there.
bool trommel_snapshot_approximate_count(const struct trommel_snapshot *snapshot,
                                        const struct trommel_keyspace *keyspace,
                                        const struct trommel_range *range,
                                        uint32_t flags,
                                        struct trommel_count *count,
                                        struct trommel_error **error);

// As trommel_scan_begin, at the snapshot's moment. The scan may outlive the snapshot.
//
// Threads: any. Errors: as there.
struct trommel_scan *trommel_snapshot_scan(const struct trommel_snapshot *snapshot,
                                           const struct trommel_keyspace *keyspace,
                                           const struct trommel_range *range,
                                           uint32_t flags,
                                           struct trommel_error **error);

// Frees a text that the library gave as `char *`. NULL is none.
//
// Threads: one, which uses it last.
void trommel_text_free(char *text);

// How many names there are. 0 of NULL.
//
// Threads: any.
size_t trommel_names_count(const struct trommel_names *names);

// The name at a place, from 0 on. It lives as long as the list. NULL: there is none.
//
// Threads: any.
const char *trommel_names_get(const struct trommel_names *names, size_t place);

// Frees a list. NULL is none.
//
// Threads: one, which uses it last.
void trommel_names_free(struct trommel_names *names);

// What the store has done and what it holds of a key space, as JSON: every number by its path,
// such as {"guard": {"memory_bytes": 4096}}. "failure" is null, or why background work fails. Free
// it with trommel_text_free.
//
// Threads: any.
char *trommel_stats(const struct trommel_db *db,
                    const struct trommel_keyspace *keyspace,
                    struct trommel_error **error);

// Reads every byte of every table and log and checks it, and every key against the guard. Gives a
// report as JSON, with "ok" and a list "damage"; free it with trommel_text_free. `damages`: NULL,
// or how many are in that list; 0: the store is sound.
//
// Threads: any. Errors: TROMMEL_IO, TROMMEL_CLOSED. Damage is none: it is in the report.
char *trommel_verify(const struct trommel_db *db, size_t *damages, struct trommel_error **error);

// Makes a second store in a folder that is new or empty, with all writes that are visible now.
// Tables are shared by hard links where that can be.
//
// Threads: any. Errors: TROMMEL_NOT_EMPTY, TROMMEL_IO.
bool trommel_checkpoint(const struct trommel_db *db,
                        const char *folder,
                        struct trommel_error **error);

// Repairs a store that nobody has open, so that it opens and verifies. Gives a report as JSON;
// free it with trommel_text_free. `losses`: NULL, or how many entries its lists "lost" and
// "doubts" have together; 0: all was saved. Damaged files move to the folder `lost` in the store's
// own.
//
// Threads: any. Errors: TROMMEL_LOCKED, TROMMEL_MISSING, TROMMEL_NOT_A_STORE, TROMMEL_VERSION,
// TROMMEL_IO.
char *trommel_repair(const char *folder, size_t *losses, struct trommel_error **error);

// Begins a transaction. Free it with trommel_transaction_free, after its commit too.
//
// Threads: any. Errors: TROMMEL_ARGUMENT, there is no such isolation.
struct trommel_transaction *trommel_transaction_begin(const struct trommel_db *db,
                                                      uint32_t isolation,
                                                      struct trommel_error **error);

// Gives the value of a key: the one that the transaction has given it, else that of its moment. A
// handle to be freed, or NULL.
//
// Threads: any. Errors: TROMMEL_ENDED; as of trommel_get.
bool trommel_transaction_get(const struct trommel_transaction *transaction,
                             const struct trommel_keyspace *keyspace,
                             const void *key,
                             size_t key_len,
                             struct trommel_value **value,
                             struct trommel_error **error);

// Locks a key, and gives its newest value: until the transaction ends, nobody else writes the key
// or reads it for update.
//
// Threads: any; of one transaction one after the other. Errors: TROMMEL_CONFLICT, it was written
// since, and the transaction's moment cannot move; TROMMEL_DEADLOCK, TROMMEL_LOCK_TIMEOUT,
// TROMMEL_ENDED; as of trommel_get. trommel_error_key names the key.
bool trommel_transaction_get_for_update(const struct trommel_transaction *transaction,
                                        const struct trommel_keyspace *keyspace,
                                        const void *key,
                                        size_t key_len,
                                        struct trommel_value **value,
                                        struct trommel_error **error);

// Sets the value of a key.
//
// Threads: any. Errors: TROMMEL_ENDED. What is too long is told by the commit.
bool trommel_transaction_put(const struct trommel_transaction *transaction,
                             const struct trommel_keyspace *keyspace,
                             const void *key,
                             size_t key_len,
                             const void *value,
                             size_t value_len,
                             struct trommel_error **error);

// Sets the value of a key for so many milliseconds after the commit.
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

// Merges an operand into the value of a key. It reads nothing: two transactions that merge into
// one key do not hinder each other.
//
// Threads: any. Errors: as of trommel_transaction_put.
bool trommel_transaction_merge(const struct trommel_transaction *transaction,
                               const struct trommel_keyspace *keyspace,
                               const void *key,
                               size_t key_len,
                               const void *operand,
                               size_t operand_len,
                               struct trommel_error **error);

// Removes a key.
//
// Threads: any. Errors: as of trommel_transaction_put.
bool trommel_transaction_delete(const struct trommel_transaction *transaction,
                                const struct trommel_keyspace *keyspace,
                                const void *key,
                                size_t key_len,
                                struct trommel_error **error);

// Removes all keys from `from` on and before `to`.
//
// Threads: any. Errors: as of trommel_transaction_put.
bool trommel_transaction_delete_range(const struct trommel_transaction *transaction,
                                      const struct trommel_keyspace *keyspace,
                                      const void *from,
                                      size_t from_len,
                                      const void *to,
                                      size_t to_len,
                                      struct trommel_error **error);

// Begins a scan of what the transaction sees now. What it has gone over counts as read. Free it
// before the commit. As long as it is not freed, the transaction lives, with its locks.
//
// Threads: any. Errors: TROMMEL_ENDED, TROMMEL_ARGUMENT: TROMMEL_KEYS_ONLY is not for it.
struct trommel_scan *trommel_transaction_scan(const struct trommel_transaction *transaction,
                                              const struct trommel_keyspace *keyspace,
                                              const struct trommel_range *range,
                                              uint32_t flags,
                                              struct trommel_error **error);

// A place to which the transaction's writes can go back. Free it with trommel_savepoint_free.
//
// Threads: any. Errors: TROMMEL_ENDED.
struct trommel_savepoint *trommel_transaction_savepoint(const struct trommel_transaction *transaction,
                                                        struct trommel_error **error);

// Forgets what was written since, and frees the locks taken since. What was read since must still
// hold at the commit. The savepoint stays good.
//
// Threads: any. Errors: TROMMEL_ENDED, TROMMEL_ARGUMENT: it is another transaction's.
bool trommel_transaction_roll_back_to(const struct trommel_transaction *transaction,
                                      const struct trommel_savepoint *savepoint,
                                      struct trommel_error **error);

// Frees a savepoint. NULL is none.
//
// Threads: one, which uses it last.
void trommel_savepoint_free(struct trommel_savepoint *savepoint);

// Writes what the transaction has written, all of it or nothing, and ends it. `synced`: it is on
// disk when this returns, whatever the options say. `sequence`: NULL, or the number of its last
// write, by which commits are in the order of their effects.
//
// Threads: one. Errors: TROMMEL_CONFLICT, others have written what it has read (or, with
// TROMMEL_SNAPSHOT_ISOLATION, what it writes): trommel_error_key names it, or where a range begins
// that was read; TROMMEL_DEADLOCK; as of trommel_write. Then nothing was written, and it has
// ended: begin another one. TROMMEL_IN_USE: a scan of it is not freed; it goes on.
bool trommel_transaction_commit(const struct trommel_transaction *transaction,
                                bool synced,
                                uint64_t *sequence,
                                struct trommel_error **error);

// Ends a transaction without writing anything, and frees it. After a commit it frees it alone.
// NULL is none.
//
// Threads: one, which uses it last.
void trommel_transaction_free(struct trommel_transaction *transaction);

// Its bytes, which live as long as the value. Not NULL if there are none. NULL of NULL.
//
// Threads: any.
const void *trommel_value_data(const struct trommel_value *value);

// How many bytes it has. 0 of NULL.
//
// Threads: any.
size_t trommel_value_len(const struct trommel_value *value);

// From when on its key has this value no more, in milliseconds since the start of 1970. 0: it does
// not expire.
//
// Threads: any.
uint64_t trommel_value_expiry(const struct trommel_value *value);

// Frees a value. NULL is none.
//
// Threads: one, which uses it last.
void trommel_value_free(struct trommel_value *value);

// Sets the value of a key.
//
// Threads: any. Errors: TROMMEL_KEY_TOO_LONG, TROMMEL_VALUE_TOO_LONG, TROMMEL_LOCK_TIMEOUT,
// nothing was written; TROMMEL_IO, TROMMEL_STOPPED, it is not visible now, and after a crash it is
// there or not.
bool trommel_put(const struct trommel_db *db,
                 const struct trommel_keyspace *keyspace,
                 const void *key,
                 size_t key_len,
                 const void *value,
                 size_t value_len,
                 struct trommel_error **error);

// Sets the value of a key for so many milliseconds; then it has none, not an older one either.
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

// Merges an operand into the value of a key, as the key space's merge operator says (the option
// "merge_operator"). Nothing is read.
//
// Threads: any. Errors: TROMMEL_NO_MERGE_OPERATOR; else as of trommel_put.
bool trommel_merge(const struct trommel_db *db,
                   const struct trommel_keyspace *keyspace,
                   const void *key,
                   size_t key_len,
                   const void *operand,
                   size_t operand_len,
                   struct trommel_error **error);

// Removes a key. No error if it is not there.
//
// Threads: any. Errors: as of trommel_put.
bool trommel_delete(const struct trommel_db *db,
                    const struct trommel_keyspace *keyspace,
                    const void *key,
                    size_t key_len,
                    struct trommel_error **error);

// Removes all keys from `from` on and before `to`, in one write, however many there are.
//
// Threads: any. Errors: TROMMEL_INVERTED_RANGE; else as of trommel_put.
bool trommel_delete_range(const struct trommel_db *db,
                          const struct trommel_keyspace *keyspace,
                          const void *from,
                          size_t from_len,
                          const void *to,
                          size_t to_len,
                          struct trommel_error **error);

// Sets the value of a key that has none. `was_set`: whether that was so. `existing`: where it was
// not, the value that the key has, to be freed; else NULL. `existing` may be NULL.
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
// `expected`, that the key has no value; as `value`, that it is deleted. (A value without bytes is
// any other pointer, with a length of 0.) `swapped`: whether that was so. `found`: where it was
// not, the value that the key has, to be freed, or NULL if it has none. `found` may be NULL.
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

// Adds to a counter: 8 bytes, a signed number, the low byte first. A key without a value counts as
// 0. It wraps around. `before`: NULL, or what it was.
//
// Threads: any. Errors: TROMMEL_NO_COUNTER; else as of trommel_put.
bool trommel_fetch_add(const struct trommel_db *db,
                       const struct trommel_keyspace *keyspace,
                       const void *key,
                       size_t key_len,
                       int64_t add,
                       int64_t *before,
                       struct trommel_error **error);

// Writes rows whose keys ascend as one sorted run, in one pass, past log and memory: for much data
// that is sorted already. The rows are packed as trommel_scan_next gives them. Readers see all of
// them or none, and so does a recovery; they are durable when this returns. Other writes wait
// meanwhile. `count`: NULL, or how many rows there were.
//
// Threads: any. Errors: TROMMEL_UNSORTED, TROMMEL_MALFORMED, TROMMEL_KEY_TOO_LONG: nothing was
// written. TROMMEL_IO, as of trommel_put.
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
