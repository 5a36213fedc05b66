// Opening, options, single reads and writes.

#include "check.h"

void test_options(const char *folder) {
    trommel_error *error;
    trommel_options *options = trommel_options_new();
    char *text;
    CHECK(options != NULL);
    OK(trommel_options_set(options, "write_buffer_bytes", "2MiB", &error));
    OK(text = trommel_options_get(options, "write_buffer_bytes", &error));
    CHECK(strcmp(text, "2MiB") == 0);
    trommel_text_free(text);
    // One of trommel-guards, by its name.
    OK(trommel_options_set(options, "guard", "rosetta", &error));
    FAILS(TROMMEL_OPTION, "did you mean write_buffer_bytes",
          trommel_options_set(options, "write_bufer_bytes", "1", &error));
    FAILS(TROMMEL_OPTION, "write_buffer_bytes",
          trommel_options_set(options, "write_buffer_bytes", "much", &error));
    FAILS(TROMMEL_OPTION, "no such option", trommel_options_get(options, "colour", &error));
    FAILS(TROMMEL_OPTION, "no such option", trommel_options_for_now(options, "colour", &error));
    OK(trommel_options_for_now(options, "guard", &error));

    trommel_db *db;
    OK(db = trommel_open(path_in(folder, "db"), options, &error));
    put(db, "k", "v");
    OK(trommel_flush(db, &error));
    OK(text = trommel_stats(db, NULL, &error));
    CHECK(strstr(text, "\"kind\":\"rosetta\"") != NULL);
    trommel_text_free(text);
    // An option of the whole store is none of a key space.
    trommel_options *of_store = trommel_options_new();
    OK(trommel_options_set(of_store, "sync", "always", &error));
    FAILS(TROMMEL_OPTION, "of the whole store", trommel_keyspace_make(db, "a", of_store, &error));
    trommel_options_free(of_store);
    close_and_free(db);
    // It was for that opening alone.
    db = open_at(path_in(folder, "db"));
    OK(text = trommel_stats(db, NULL, &error));
    CHECK(strstr(text, "\"kind\":\"rosetta\"") == NULL);
    trommel_text_free(text);
    close_and_free(db);

    OK(trommel_options_set(options, "bits_per_key", "1000", &error));
    FAILS(TROMMEL_OPTION, "bits_per_key", trommel_open(path_in(folder, "db2"), options, &error));
    trommel_options_free(options);

    OK(options = trommel_options_preset("small-device", &error));
    OK(text = trommel_options_get(options, "max_open_files", &error));
    CHECK(strcmp(text, "64") == 0);
    trommel_text_free(text);
    trommel_options_free(options);
    FAILS(TROMMEL_OPTION, "small-device", trommel_options_preset("toaster", &error));

    OK(text = trommel_options_list(&error));
    CHECK(text[0] == '[' && strstr(text, "\"name\":\"write_buffer_bytes\"") != NULL);
    trommel_text_free(text);
}

void test_store(const char *folder) {
    trommel_error *error;
    const char *path = path_in(folder, "db");
    trommel_db *db = open_at(path);
    put(db, "zug", "47.17 N");
    CHECK(has(db, NULL, "zug", "47.17 N") && has(db, NULL, "bern", NULL));
    FAILS(TROMMEL_LOCKED, "open already", trommel_open(path, NULL, &error));
    OK(trommel_delete(db, NULL, S("zug"), &error));
    CHECK(has(db, NULL, "zug", NULL));
    OK(trommel_put_ttl(db, NULL, S("short"), S("x"), 0, &error));
    OK(trommel_put_ttl(db, NULL, S("long"), S("y"), 3600000, &error));
    wait_until_gone(db, NULL, "short");
    CHECK(has(db, NULL, "long", "y"));
    trommel_value *value;
    OK(trommel_get(db, NULL, S("long"), &value, &error));
    CHECK(trommel_value_expiry(value) > UINT64_C(1600000000000));
    for (char key[] = "a"; key[0] <= 'e'; key[0]++) {
        put(db, key, "1");
    }
    OK(trommel_delete_range(db, NULL, S("b"), S("d"), &error));
    CHECK(has(db, NULL, "a", "1") && has(db, NULL, "b", NULL) && has(db, NULL, "c", NULL));
    CHECK(has(db, NULL, "d", "1"));
    FAILS(TROMMEL_INVERTED_RANGE, "ends before it begins",
          trommel_delete_range(db, NULL, S("d"), S("b"), &error));
    char *long_key = calloc(1, 1 << 17);
    CHECK(long_key != NULL);
    FAILS(TROMMEL_KEY_TOO_LONG, "at most",
          trommel_put(db, NULL, long_key, 1 << 17, "v", 1, &error));
    free(long_key);
    FAILS(TROMMEL_NO_MERGE_OPERATOR, "merge operator",
          trommel_merge(db, NULL, S("a"), S("b"), &error));
    OK(trommel_sync(db, &error));
    OK(trommel_flush(db, &error));
    OK(trommel_compact(db, &error));
    OK(trommel_settle(db, &error));
    CHECK(has(db, NULL, "a", "1") && has(db, NULL, "c", NULL));
    OK(trommel_close(db, &error));
    OK(trommel_close(db, &error));
    FAILS(TROMMEL_CLOSED, "was closed", trommel_put(db, NULL, S("a"), S("2"), &error));
    trommel_value *none;
    FAILS(TROMMEL_CLOSED, "was closed", trommel_get(db, NULL, S("a"), &none, &error));
    // A value outlives its store.
    CHECK(is_value(value, "y"));
    trommel_db_free(db);
    CHECK(is_value(value, "y"));
    trommel_value_free(value);

    // Freed without a call of trommel_close, it is closed all the same, whatever handles live on.
    db = open_at(path);
    put(db, "kept", "yes");
    trommel_keyspace *living;
    OK(living = trommel_keyspace_make(db, "living", NULL, &error));
    trommel_db_free(db);
    db = open_at(path);
    trommel_keyspace_free(living);
    CHECK(has(db, NULL, "kept", "yes") && has(db, NULL, "a", "1"));
    close_and_free(db);

    trommel_options *options = trommel_options_new();
    OK(trommel_options_set(options, "create_if_missing", "false", &error));
    FAILS(TROMMEL_MISSING, "no store", trommel_open(path_in(folder, "none"), options, &error));
    OK(trommel_options_set(options, "create_if_missing", "true", &error));
    OK(trommel_options_set(options, "merge_operator", "concat:,", &error));
    OK(db = trommel_open(path_in(folder, "merged"), options, &error));
    OK(trommel_merge(db, NULL, S("fruit"), S("apple"), &error));
    OK(trommel_merge(db, NULL, S("fruit"), S("pear"), &error));
    CHECK(has(db, NULL, "fruit", "apple,pear"));
    close_and_free(db);
    trommel_options_free(options);
}

void test_reads(const char *folder) {
    trommel_error *error;
    trommel_db *db = open_at(path_in(folder, "db"));
    put(db, "a", "one");
    put(db, "b", "");
    put(db, "c", "three");
    char buffer[8] = "-------";
    size_t len;
    OK(trommel_get_into(db, NULL, S("a"), buffer, 3, &len, &error));
    CHECK(len == 3 && memcmp(buffer, "one-", 4) == 0);
    OK(trommel_get_into(db, NULL, S("c"), buffer, 4, &len, &error));
    CHECK(len == 5 && memcmp(buffer, "one-", 4) == 0);
    OK(trommel_get_into(db, NULL, S("b"), NULL, 0, &len, &error));
    CHECK(len == 0);
    OK(trommel_get_into(db, NULL, S("x"), buffer, 8, &len, &error));
    CHECK(len == TROMMEL_ABSENT);

    const trommel_bytes keys[] = {{"c", 1}, {"x", 1}, {"b", 1}, {"a", 1}, {"c", 1}};
    trommel_value *values[5];
    OK(trommel_multi_get(db, NULL, keys, 5, values, &error));
    CHECK(is_value(values[0], "three") && values[1] == NULL && is_value(values[2], ""));
    CHECK(is_value(values[3], "one") && is_value(values[4], "three"));
    CHECK(trommel_value_data(values[2]) != NULL);
    for (int at = 0; at < 5; at++) {
        trommel_value_free(values[at]);
    }
    OK(trommel_multi_get(db, NULL, NULL, 0, NULL, &error));
    char packed[13];
    size_t lens[5];
    OK(trommel_multi_get_into(db, NULL, keys, 5, packed, 13, lens, &len, &error));
    CHECK(len == 13 && memcmp(packed, "threeonethree", 13) == 0);
    CHECK(lens[0] == 5 && lens[1] == TROMMEL_ABSENT && lens[2] == 0 && lens[3] == 3);
    memset(packed, '-', sizeof packed);
    OK(trommel_multi_get_into(db, NULL, keys, 5, packed, 12, lens, &len, &error));
    CHECK(len == 13 && packed[0] == '-' && lens[4] == 5);

    bool may;
    trommel_count count;
    trommel_range range = {"a", 1, "c", 1};
    OK(trommel_may_contain_range(db, NULL, &range, 0, &may, &error));
    CHECK(may);
    OK(trommel_flush(db, &error));
    OK(trommel_may_contain_range(db, NULL, &(trommel_range){"d", 1, "y", 1}, 0, &may, &error));
    CHECK(!may);
    OK(trommel_may_contain_range(db, NULL, &(trommel_range){"d", 1, NULL, 0}, TROMMEL_PREFIX, &may,
                                 &error));
    CHECK(!may);
    OK(trommel_approximate_count(db, NULL, NULL, 0, &count, &error));
    CHECK(count.least <= 3 && count.most >= 3 && count.estimate == 3);
    FAILS(TROMMEL_ARGUMENT, "prefix",
          trommel_approximate_count(db, NULL, &range, TROMMEL_PREFIX, &count, &error));
    close_and_free(db);
}

static trommel_value *get(trommel_db *db, const char *key) {
    trommel_error *error;
    trommel_value *value;
    OK(trommel_get(db, NULL, S(key), &value, &error));
    CHECK(value != NULL);
    return value;
}

// Gets a key twice, and once from a snapshot. A value in memory is returned where it lies, so all
// three have the same address. Returns one of them.
static trommel_value *get_without_copy(trommel_db *db, const char *key) {
    trommel_error *error;
    trommel_value *values[3] = {get(db, key), get(db, key), NULL};
    trommel_snapshot *snapshot = trommel_snapshot_take(db, &error);
    OK(trommel_snapshot_get(snapshot, NULL, S(key), &values[2], &error));
    trommel_snapshot_free(snapshot);
    CHECK(values[0] != values[1]);
    CHECK(trommel_value_data(values[0]) == trommel_value_data(values[1]));
    CHECK(trommel_value_data(values[0]) == trommel_value_data(values[2]));
    trommel_value_free(values[0]);
    trommel_value_free(values[1]);
    return values[2];
}

// Values in a memtable, and in a block in the cache: nothing is copied, and the bytes outlive newer
// values, flushes, merges and the store.
void test_values(const char *folder) {
    trommel_error *error;
    const char *path = path_in(folder, "db");
    trommel_db *db = open_at(path);
    put(db, "key", "in the memtable");
    trommel_value *of_memtable = get_without_copy(db, "key");
    put(db, "key", "in a table");
    CHECK(is_value(of_memtable, "in the memtable"));
    OK(trommel_flush(db, &error));
    // The first read brings the block into the cache.
    trommel_value_free(get(db, "key"));
    trommel_value *of_table = get_without_copy(db, "key");
    const void *data = trommel_value_data(of_table);
    put(db, "key", "newer");
    OK(trommel_flush(db, &error));
    // It replaces the table of the value.
    OK(trommel_compact(db, &error));
    CHECK(has(db, NULL, "key", "newer"));
    CHECK(is_value(of_memtable, "in the memtable"));
    CHECK(is_value(of_table, "in a table") && trommel_value_data(of_table) == data);
    close_and_free(db);
    CHECK(is_value(of_memtable, "in the memtable") && is_value(of_table, "in a table"));
    trommel_value_free(of_memtable);
    trommel_value_free(of_table);
}

void test_single_keys(const char *folder) {
    trommel_error *error;
    trommel_db *db = open_at(path_in(folder, "db"));
    trommel_value *found;
    bool done;
    OK(trommel_put_if_absent(db, NULL, S("k"), S("1"), &done, &found, &error));
    CHECK(done && found == NULL);
    OK(trommel_put_if_absent(db, NULL, S("k"), S("2"), &done, &found, &error));
    CHECK(!done && is_value(found, "1"));
    trommel_value_free(found);
    OK(trommel_put_if_absent(db, NULL, S("k"), S("2"), &done, NULL, &error));
    CHECK(!done && has(db, NULL, "k", "1"));

    OK(trommel_compare_and_swap(db, NULL, S("k"), S("1"), S("2"), &done, &found, &error));
    CHECK(done && found == NULL && has(db, NULL, "k", "2"));
    OK(trommel_compare_and_swap(db, NULL, S("k"), S("1"), S("3"), &done, &found, &error));
    CHECK(!done && is_value(found, "2"));
    trommel_value_free(found);
    // No value is expected; an empty one is another thing.
    OK(trommel_compare_and_swap(db, NULL, S("k"), NULL, 0, S("3"), &done, NULL, &error));
    CHECK(!done && has(db, NULL, "k", "2"));
    OK(trommel_compare_and_swap(db, NULL, S("k"), S("2"), NULL, 0, &done, NULL, &error));
    CHECK(done && has(db, NULL, "k", NULL));
    OK(trommel_compare_and_swap(db, NULL, S("k"), S(""), S("3"), &done, &found, &error));
    CHECK(!done && found == NULL);
    OK(trommel_compare_and_swap(db, NULL, S("k"), NULL, 0, S(""), &done, NULL, &error));
    CHECK(done && has(db, NULL, "k", ""));
    OK(trommel_compare_and_swap(db, NULL, S("k"), S(""), S("4"), &done, NULL, &error));
    CHECK(done && has(db, NULL, "k", "4"));

    int64_t before;
    OK(trommel_fetch_add(db, NULL, S("n"), 40, &before, &error));
    CHECK(before == 0);
    OK(trommel_fetch_add(db, NULL, S("n"), -42, &before, &error));
    CHECK(before == 40);
    OK(trommel_fetch_add(db, NULL, S("n"), 0, &before, &error));
    CHECK(before == -2);
    OK(trommel_fetch_add(db, NULL, S("n"), 0, NULL, &error));
    CHECK(!trommel_fetch_add(db, NULL, S("k"), 1, &before, &error));
    size_t len;
    CHECK(trommel_error_code(error) == TROMMEL_NO_COUNTER);
    CHECK(memcmp(trommel_error_key(error, &len), "k", 1) == 0 && len == 1);
    trommel_error_free(error);
    close_and_free(db);
}
