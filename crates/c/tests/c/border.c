// The border: versions, errors, null pointers, a panic.

#include "check.h"

static void errors_tell_a_code_and_a_message(void) {
    trommel_error *error = NULL;
    CHECK(!trommel_put(NULL, NULL, "k", 1, "v", 1, &error));
    CHECK(trommel_error_code(error) == TROMMEL_ARGUMENT);
    CHECK(strcmp(trommel_error_message(error), "db is NULL") == 0);
    size_t len = 7;
    CHECK(trommel_error_key(error, &len) == NULL && len == 0);
    CHECK(trommel_error_key(error, NULL) == NULL);
    CHECK(trommel_error_keyspace(error) == 0);
    CHECK(!trommel_error_tells_of_damage(error));
    trommel_error_free(error);

    CHECK(trommel_error_code(NULL) == TROMMEL_OK);
    CHECK(strcmp(trommel_error_message(NULL), "") == 0);
    CHECK(trommel_error_key(NULL, &len) == NULL && len == 0);
    CHECK(trommel_error_keyspace(NULL) == 0);
    CHECK(!trommel_error_tells_of_damage(NULL));
    trommel_error_free(NULL);
}

static void a_panic_is_an_error(void) {
    trommel_error *error;
    FAILS(TROMMEL_BUG, "forced by trommel_test_panic", trommel_test_panic(&error));
    CHECK(!trommel_test_panic(NULL));
}

static void null_is_told(const char *folder) {
    trommel_error *error;
    trommel_db *db = open_at(path_in(folder, "db"));
    trommel_value *value;
    bool flag;
    FAILS(TROMMEL_ARGUMENT, "folder is NULL", trommel_open(NULL, NULL, &error));
    FAILS(TROMMEL_ARGUMENT, "key is NULL", trommel_put(db, NULL, NULL, 3, "v", 1, &error));
    FAILS(TROMMEL_ARGUMENT, "value is NULL", trommel_put(db, NULL, "k", 1, NULL, 3, &error));
    FAILS(TROMMEL_ARGUMENT, "value is NULL", trommel_get(db, NULL, "k", 1, NULL, &error));
    FAILS(TROMMEL_ARGUMENT, "more than memory can have",
          trommel_put(db, NULL, "k", SIZE_MAX, "v", 1, &error));
    FAILS(TROMMEL_ARGUMENT, "len is NULL",
          trommel_get_into(db, NULL, "k", 1, NULL, 0, NULL, &error));
    size_t len;
    FAILS(TROMMEL_ARGUMENT, "buffer is NULL",
          trommel_get_into(db, NULL, "k", 1, NULL, 8, &len, &error));
    FAILS(TROMMEL_ARGUMENT, "values is NULL",
          trommel_multi_get(db, NULL, &(trommel_bytes){"k", 1}, 1, NULL, &error));
    FAILS(TROMMEL_ARGUMENT, "keys is NULL", trommel_multi_get(db, NULL, NULL, 1, &value, &error));
    FAILS(TROMMEL_ARGUMENT, "was_set is NULL",
          trommel_put_if_absent(db, NULL, "k", 1, "v", 1, NULL, NULL, &error));
    FAILS(TROMMEL_ARGUMENT, "swapped is NULL",
          trommel_compare_and_swap(db, NULL, "k", 1, NULL, 0, "v", 1, NULL, NULL, &error));
    CHECK(has(db, NULL, "k", NULL));
    FAILS(TROMMEL_ARGUMENT, "may is NULL",
          trommel_may_contain_range(db, NULL, NULL, 0, NULL, &error));
    FAILS(TROMMEL_ARGUMENT, "flags", trommel_may_contain_range(db, NULL, NULL, 32, &flag, &error));
    FAILS(TROMMEL_ARGUMENT, "flags",
          trommel_may_contain_range(db, NULL, NULL, TROMMEL_REVERSE, &flag, &error));
    FAILS(TROMMEL_ARGUMENT, "name is NULL", trommel_keyspace_open(db, NULL, &error));
    FAILS(TROMMEL_ARGUMENT, "UTF-8", trommel_keyspace_open(db, "\xff", &error));
    FAILS(TROMMEL_ARGUMENT, "batch is NULL", trommel_write(db, NULL, false, &error));
    FAILS(TROMMEL_ARGUMENT, "scan is NULL",
          trommel_scan_next(NULL, NULL, 0, &len, &len, &error));
    FAILS(TROMMEL_ARGUMENT, "isolation", trommel_transaction_begin(db, 2, &error));
    // Nothing and no bytes are allowed.
    OK(trommel_put(db, NULL, NULL, 0, NULL, 0, &error));
    CHECK(has(db, NULL, "", ""));
    // The error need not be told.
    CHECK(!trommel_put(NULL, NULL, "k", 1, "v", 1, NULL));
    CHECK(trommel_put(db, NULL, "k", 1, "v", 1, NULL));
    close_and_free(db);
}

static void freeing_null_does_nothing(void) {
    trommel_backups_free(NULL);
    trommel_batch_free(NULL);
    trommel_batch_clear(NULL);
    trommel_changes_free(NULL);
    trommel_db_free(NULL);
    trommel_filter_builder_free(NULL);
    trommel_filter_free(NULL);
    trommel_follower_free(NULL);
    trommel_keyspace_free(NULL);
    trommel_moment_free(NULL);
    trommel_names_free(NULL);
    trommel_options_free(NULL);
    trommel_savepoint_free(NULL);
    trommel_scan_free(NULL);
    trommel_snapshot_free(NULL);
    trommel_text_free(NULL);
    trommel_transaction_free(NULL);
    trommel_value_free(NULL);
    CHECK(trommel_value_data(NULL) == NULL && trommel_value_len(NULL) == 0);
    CHECK(trommel_value_expiry(NULL) == 0 && trommel_batch_count(NULL) == 0);
    CHECK(trommel_names_count(NULL) == 0 && trommel_names_get(NULL, 0) == NULL);
    CHECK(trommel_snapshot_sequence(NULL) == 0 && trommel_moment_sequence(NULL) == 0);
}

void test_border(const char *folder) {
    CHECK(trommel_abi_version() == TROMMEL_ABI_VERSION);
    CHECK(strcmp(trommel_version(), "0.2.0") == 0);
    errors_tell_a_code_and_a_message();
    a_panic_is_an_error();
    null_is_told(folder);
    freeing_null_does_nothing();
}
