// Batches, key spaces and transactions.

#include "check.h"

void test_batches(const char *folder) {
    trommel_error *error;
    trommel_db *db = open_at(path_in(folder, "db"));
    trommel_keyspace *events;
    OK(events = trommel_keyspace_make(db, "events", NULL, &error));
    trommel_batch *batch = trommel_batch_new();
    CHECK(batch != NULL && trommel_batch_count(batch) == 0);
    put(db, "old", "1");
    put(db, "r1", "1");
    OK(trommel_batch_put(batch, NULL, S("a"), S("1"), &error));
    OK(trommel_batch_put(batch, events, S("a"), S("2"), &error));
    OK(trommel_batch_put(batch, NULL, S("b"), S("3"), &error));
    OK(trommel_batch_put_ttl(batch, events, S("gone"), S("x"), 0, &error));
    OK(trommel_batch_delete(batch, NULL, S("old"), &error));
    OK(trommel_batch_delete_range(batch, NULL, S("r"), S("s"), &error));
    CHECK(trommel_batch_count(batch) == 6);
    OK(trommel_write(db, batch, true, &error));
    CHECK(trommel_batch_count(batch) == 0);
    CHECK(has(db, NULL, "a", "1") && has(db, events, "a", "2") && has(db, NULL, "b", "3"));
    CHECK(has(db, events, "b", NULL));
    wait_until_gone(db, events, "gone");
    CHECK(has(db, NULL, "old", NULL) && has(db, NULL, "r1", NULL));

    // Conditions: of a value, of none; the conflict names its key and key space.
    OK(trommel_batch_only_if(batch, NULL, S("a"), S("1"), &error));
    OK(trommel_batch_only_if(batch, NULL, S("new"), NULL, 0, &error));
    OK(trommel_batch_put(batch, NULL, S("new"), S("1"), &error));
    OK(trommel_write(db, batch, false, &error));
    CHECK(has(db, NULL, "new", "1"));
    OK(trommel_batch_only_if(batch, events, S("a"), S("other"), &error));
    OK(trommel_batch_put(batch, NULL, S("new"), S("2"), &error));
    CHECK(!trommel_write(db, batch, false, &error));
    size_t len;
    CHECK(trommel_error_code(error) == TROMMEL_CONFLICT && trommel_error_keyspace(error) != 0);
    CHECK(memcmp(trommel_error_key(error, &len), "a", 1) == 0 && len == 1);
    trommel_error_free(error);
    CHECK(has(db, NULL, "new", "1") && trommel_batch_count(batch) == 0);

    // What is refused as a whole writes nothing.
    OK(trommel_batch_put(batch, NULL, S("c"), S("1"), &error));
    OK(trommel_batch_delete_range(batch, NULL, S("z"), S("y"), &error));
    FAILS(TROMMEL_INVERTED_RANGE, "ends before", trommel_write(db, batch, false, &error));
    CHECK(has(db, NULL, "c", NULL));
    OK(trommel_batch_put(batch, NULL, S("c"), S("1"), &error));
    trommel_batch_clear(batch);
    OK(trommel_write(db, batch, false, &error));
    CHECK(has(db, NULL, "c", NULL));

    // A key space of another store: refused where it is named, and where it is written.
    trommel_db *other = open_at(path_in(folder, "other"));
    trommel_keyspace *theirs;
    OK(theirs = trommel_keyspace_make(other, "theirs", NULL, &error));
    OK(trommel_batch_put(batch, theirs, S("k"), S("v"), &error));
    FAILS(TROMMEL_ARGUMENT, "another store", trommel_write(db, batch, false, &error));
    CHECK(trommel_batch_count(batch) == 1);
    FAILS(TROMMEL_ARGUMENT, "another store",
          trommel_batch_put(batch, events, S("k"), S("v"), &error));
    OK(trommel_write(other, batch, false, &error));
    CHECK(has(other, theirs, "k", "v"));
    FAILS(TROMMEL_ARGUMENT, "another store", trommel_put(db, theirs, S("k"), S("v"), &error));
    trommel_keyspace_free(theirs);
    close_and_free(other);
    trommel_batch_free(batch);

    const char packed[] = "\1\1\0\0\0\3\0\0\0pone\2\1\0\0\0\0\0\0\0a";
    OK(batch = trommel_batch_from_packed(packed, sizeof packed - 1, &error));
    CHECK(trommel_batch_count(batch) == 2);
    OK(trommel_write(db, batch, false, &error));
    CHECK(has(db, NULL, "p", "one") && has(db, NULL, "a", NULL));
    trommel_batch_free(batch);
    FAILS(TROMMEL_MALFORMED, "at byte",
          trommel_batch_from_packed(packed, sizeof packed - 2, &error));

    trommel_options *options = trommel_options_new();
    OK(trommel_options_set(options, "merge_operator", "concat:+", &error));
    trommel_keyspace *sums;
    OK(sums = trommel_keyspace_make(db, "sums", options, &error));
    trommel_options_free(options);
    batch = trommel_batch_new();
    OK(trommel_batch_merge(batch, sums, S("k"), S("1"), &error));
    OK(trommel_batch_merge(batch, sums, S("k"), S("2"), &error));
    OK(trommel_write(db, batch, false, &error));
    CHECK(has(db, sums, "k", "1+2"));
    // A batch may outlive the store whose key space it has.
    OK(trommel_batch_put(batch, sums, S("k"), S("3"), &error));
    trommel_keyspace_free(sums);
    trommel_keyspace_free(events);
    close_and_free(db);
    trommel_batch_free(batch);
}

void test_keyspaces(const char *folder) {
    trommel_error *error;
    const char *path = path_in(folder, "db");
    trommel_db *db = open_at(path);
    trommel_keyspace *events, *again;
    trommel_options *options = trommel_options_new();
    OK(trommel_options_set(options, "bits_per_key", "8", &error));
    OK(events = trommel_keyspace_make(db, "events", options, &error));
    trommel_options_free(options);
    OK(trommel_put(db, events, S("k"), S("1"), &error));
    CHECK(has(db, events, "k", "1") && has(db, NULL, "k", NULL));
    OK(trommel_delete(db, events, S("absent"), &error));
    FAILS(TROMMEL_NO_KEYSPACE, "there are", trommel_keyspace_open(db, "words", &error));
    OK(again = trommel_keyspace_open(db, "events", &error));
    CHECK(has(db, again, "k", "1"));
    OK(trommel_keyspace_rename(db, "events", "days", &error));
    FAILS(TROMMEL_NO_KEYSPACE, "events", trommel_keyspace_rename(db, "events", "x", &error));
    FAILS(TROMMEL_OPTION, "default", trommel_keyspace_drop(db, "default", &error));
    char *name;
    OK(name = trommel_keyspace_name(again, &error));
    CHECK(strcmp(name, "days") == 0);
    trommel_text_free(name);
    trommel_keyspace *words;
    OK(words = trommel_keyspace_make(db, "words", NULL, &error));
    trommel_keyspace_free(words);
    FAILS(TROMMEL_KEYSPACE_EXISTS, "already", trommel_keyspace_rename(db, "days", "words", &error));
    trommel_names *names;
    OK(names = trommel_keyspaces(db, &error));
    CHECK(trommel_names_count(names) == 3 && trommel_names_get(names, 3) == NULL);
    CHECK(strcmp(trommel_names_get(names, 0), "default") == 0);
    trommel_names_free(names);
    OK(trommel_keyspace_drop(db, "days", &error));
    trommel_value *value;
    FAILS(TROMMEL_KEYSPACE_DROPPED, "dropped", trommel_get(db, again, S("k"), &value, &error));
    FAILS(TROMMEL_KEYSPACE_DROPPED, "dropped",
          trommel_put(db, events, S("k"), S("2"), &error));
    trommel_keyspace_free(again);
    OK(trommel_close(db, &error));
    trommel_db_free(db);

    // A handle of an opening that is over is none of the next one.
    db = open_at(path);
    FAILS(TROMMEL_ARGUMENT, "another opening", trommel_get(db, events, S("k"), &value, &error));
    trommel_keyspace_free(events);
    close_and_free(db);
}

static void reads_and_writes(trommel_db *db, trommel_keyspace *events) {
    trommel_error *error;
    trommel_transaction *one;
    trommel_value *value;
    put(db, "ann", "70");
    put(db, "bob", "1");
    put(db, "c1", "x");
    OK(one = trommel_transaction_begin(db, TROMMEL_SERIALIZABLE, &error));
    OK(trommel_transaction_get(one, NULL, S("ann"), &value, &error));
    CHECK(is_value(value, "70"));
    trommel_value_free(value);
    OK(trommel_transaction_put(one, NULL, S("ann"), S("50"), &error));
    OK(trommel_transaction_put(one, events, S("e"), S("1"), &error));
    OK(trommel_transaction_put_ttl(one, events, S("gone"), S("1"), 0, &error));
    OK(trommel_transaction_delete(one, NULL, S("bob"), &error));
    OK(trommel_transaction_delete_range(one, NULL, S("c"), S("d"), &error));
    OK(trommel_transaction_get(one, NULL, S("ann"), &value, &error));
    CHECK(is_value(value, "50"));
    trommel_value_free(value);
    OK(trommel_transaction_get(one, NULL, S("bob"), &value, &error));
    CHECK(value == NULL);
    trommel_scan *scan;
    OK(scan = trommel_transaction_scan(one, NULL, NULL, 0, &error));
    CHECK(shows(scan, "ann=50"));
    CHECK(has(db, NULL, "ann", "70") && has(db, events, "e", NULL));

    trommel_savepoint *place;
    OK(place = trommel_transaction_savepoint(one, &error));
    OK(trommel_transaction_put(one, NULL, S("dora"), S("1"), &error));
    OK(scan = trommel_transaction_scan(one, NULL, NULL, TROMMEL_REVERSE, &error));
    CHECK(shows(scan, "dora=1 ann=50"));
    OK(trommel_transaction_roll_back_to(one, place, &error));
    OK(scan = trommel_transaction_scan(one, NULL, &(trommel_range){"a", 1, NULL, 0},
                                       TROMMEL_PREFIX, &error));
    CHECK(shows(scan, "ann=50"));
    OK(scan = trommel_transaction_scan(one, NULL, &(trommel_range){"d", 1, NULL, 0},
                                       TROMMEL_PREFIX, &error));
    CHECK(shows(scan, ""));

    trommel_transaction *other;
    OK(other = trommel_transaction_begin(db, TROMMEL_SERIALIZABLE, &error));
    FAILS(TROMMEL_ARGUMENT, "another transaction",
          trommel_transaction_roll_back_to(other, place, &error));
    trommel_transaction_free(other);
    trommel_savepoint_free(place);

    // A scan that is not freed holds the transaction.
    OK(scan = trommel_transaction_scan(one, events, NULL, 0, &error));
    FAILS(TROMMEL_IN_USE, "free its scans", trommel_transaction_commit(one, false, NULL, &error));
    FAILS(TROMMEL_ARGUMENT, "does not seek", trommel_scan_seek(scan, S("k"), &error));
    CHECK(shows(scan, "e=1 gone=1"));
    FAILS(TROMMEL_ARGUMENT, "flags",
          trommel_transaction_scan(one, NULL, NULL, TROMMEL_KEYS_ONLY, &error));
    uint64_t sequence = 0;
    OK(trommel_transaction_commit(one, true, &sequence, &error));
    CHECK(sequence > 0);
    FAILS(TROMMEL_ENDED, "has ended", trommel_transaction_commit(one, false, NULL, &error));
    FAILS(TROMMEL_ENDED, "has ended", trommel_transaction_put(one, NULL, S("a"), S("1"), &error));
    FAILS(TROMMEL_ENDED, "has ended", trommel_transaction_scan(one, NULL, NULL, 0, &error));
    FAILS(TROMMEL_ENDED, "has ended", trommel_transaction_savepoint(one, &error));
    trommel_transaction_free(one);
    CHECK(has(db, NULL, "ann", "50") && has(db, NULL, "bob", NULL) && has(db, NULL, "c1", NULL));
    CHECK(has(db, events, "e", "1"));
    wait_until_gone(db, events, "gone");
}

static void conflicts_name_the_key(trommel_db *db, trommel_keyspace *events) {
    trommel_error *error;
    trommel_transaction *one;
    trommel_value *value;
    OK(one = trommel_transaction_begin(db, TROMMEL_SERIALIZABLE, &error));
    OK(trommel_transaction_get(one, events, S("read"), &value, &error));
    CHECK(value == NULL);
    OK(trommel_transaction_put(one, NULL, S("written"), S("1"), &error));
    OK(trommel_put(db, events, S("read"), S("by others"), &error));
    CHECK(!trommel_transaction_commit(one, false, NULL, &error));
    size_t len;
    CHECK(trommel_error_code(error) == TROMMEL_CONFLICT && trommel_error_keyspace(error) != 0);
    const void *key = trommel_error_key(error, &len);
    CHECK(len == 4 && memcmp(key, "read", 4) == 0);
    CHECK(strstr(trommel_error_message(error), "read") != NULL);
    trommel_error_free(error);
    FAILS(TROMMEL_ENDED, "has ended", trommel_transaction_commit(one, false, NULL, &error));
    trommel_transaction_free(one);
    CHECK(has(db, NULL, "written", NULL));

    // A range that was read: a new key in it is a conflict.
    OK(one = trommel_transaction_begin(db, TROMMEL_SERIALIZABLE, &error));
    trommel_scan *scan;
    OK(scan = trommel_transaction_scan(one, NULL, &(trommel_range){"m", 1, "n", 1}, 0, &error));
    CHECK(shows(scan, ""));
    OK(trommel_transaction_put(one, NULL, S("written"), S("1"), &error));
    put(db, "mm", "1");
    FAILS(TROMMEL_CONFLICT, "was read: m,", trommel_transaction_commit(one, false, NULL, &error));
    trommel_transaction_free(one);

    // With the other isolation reads do not count.
    OK(one = trommel_transaction_begin(db, TROMMEL_SNAPSHOT_ISOLATION, &error));
    OK(trommel_transaction_get(one, NULL, S("mm"), &value, &error));
    trommel_value_free(value);
    put(db, "mm", "2");
    OK(trommel_transaction_put(one, NULL, S("written"), S("1"), &error));
    OK(trommel_transaction_commit(one, false, NULL, &error));
    trommel_transaction_free(one);
}

static void locks_are_waited_for(trommel_db *db) {
    trommel_error *error;
    trommel_transaction *one, *two;
    trommel_value *value;
    put(db, "n", "1");
    OK(one = trommel_transaction_begin(db, TROMMEL_SERIALIZABLE, &error));
    OK(two = trommel_transaction_begin(db, TROMMEL_SERIALIZABLE, &error));
    OK(trommel_transaction_get_for_update(one, NULL, S("n"), &value, &error));
    CHECK(is_value(value, "1"));
    trommel_value_free(value);
    FAILS(TROMMEL_LOCK_TIMEOUT, "locked",
          trommel_transaction_get_for_update(two, NULL, S("n"), &value, &error));
    OK(trommel_transaction_put(one, NULL, S("n"), S("2"), &error));
    OK(trommel_transaction_commit(one, false, NULL, &error));
    // Its moment moves on.
    OK(trommel_transaction_get_for_update(two, NULL, S("n"), &value, &error));
    CHECK(is_value(value, "2"));
    trommel_value_free(value);
    OK(trommel_transaction_put(two, NULL, S("n"), S("3"), &error));
    OK(trommel_transaction_commit(two, false, NULL, &error));
    CHECK(has(db, NULL, "n", "3"));
    trommel_transaction_free(one);
    trommel_transaction_free(two);
}

void test_transactions(const char *folder) {
    trommel_error *error;
    trommel_options *options = trommel_options_new();
    OK(trommel_options_set(options, "lock_timeout", "0", &error));
    OK(trommel_options_set(options, "merge_operator", "concat:+", &error));
    trommel_db *db;
    OK(db = trommel_open(path_in(folder, "db"), options, &error));
    trommel_options_free(options);
    trommel_keyspace *events;
    OK(events = trommel_keyspace_make(db, "events", NULL, &error));
    reads_and_writes(db, events);
    conflicts_name_the_key(db, events);
    locks_are_waited_for(db);

    trommel_transaction *one;
    OK(one = trommel_transaction_begin(db, TROMMEL_SERIALIZABLE, &error));
    OK(trommel_transaction_merge(one, NULL, S("sum"), S("1"), &error));
    OK(trommel_merge(db, NULL, S("sum"), S("2"), &error));
    OK(trommel_transaction_commit(one, false, NULL, &error));
    CHECK(has(db, NULL, "sum", "2+1"));
    trommel_transaction_free(one);

    // Freed without a commit, nothing is written; and with a scan, freed later.
    OK(one = trommel_transaction_begin(db, TROMMEL_SERIALIZABLE, &error));
    OK(trommel_transaction_put(one, NULL, S("never"), S("1"), &error));
    trommel_scan *scan;
    OK(scan = trommel_transaction_scan(one, NULL, &(trommel_range){"never", 5, NULL, 0},
                                       TROMMEL_PREFIX, &error));
    trommel_transaction_free(one);
    CHECK(shows(scan, "never=1") && has(db, NULL, "never", NULL));
    trommel_keyspace_free(events);
    close_and_free(db);
}
