// Followers, change feeds, reports, checkpoints and backups.

#include <sys/stat.h>

#include "check.h"

static bool tells(char *json, const char *words) {
    CHECK(json != NULL);
    bool does = strstr(json, words) != NULL;
    if (!does) {
        fprintf(stderr, "the report is: %s\n", json);
    }
    trommel_text_free(json);
    return does;
}

// Overwrites some bytes in the middle of the first file of a folder whose name ends so.
static void damage(const char *folder, const char *end) {
    char command[700];
    snprintf(command, sizeof command,
             "f=$(ls '%s'/*%s | head -n 1) && s=$(stat -c %%s \"$f\") && "
             "printf 'DAMAGED' | dd of=\"$f\" bs=1 seek=$((s / 3)) conv=notrunc status=none",
             folder, end);
    CHECK(system(command) == 0);
}

void test_followers(const char *folder) {
    trommel_error *error;
    const char *path = path_in(folder, "db");
    FAILS(TROMMEL_MISSING, "no store", trommel_follow(path, NULL, 0, &error));
    trommel_db *db = open_at(path);
    put(db, "k", "1");
    OK(trommel_flush(db, &error));
    trommel_follower *follower;
    OK(follower = trommel_follow(path, NULL, 0, &error));
    trommel_snapshot *then, *now;
    trommel_value *value;
    OK(then = trommel_follower_snapshot(follower, NULL, &error));
    OK(trommel_snapshot_get(then, NULL, S("k"), &value, &error));
    CHECK(is_value(value, "1"));
    trommel_value_free(value);
    put(db, "k", "2");
    trommel_keyspace *events;
    OK(events = trommel_keyspace_make(db, "events", NULL, &error));
    OK(trommel_put(db, events, S("e"), S("3"), &error));
    OK(trommel_flush(db, &error));
    bool moved;
    OK(trommel_follower_catch_up(follower, &moved, &error));
    CHECK(moved);
    OK(trommel_follower_catch_up(follower, NULL, &error));
    trommel_moment *moment;
    OK(moment = trommel_follower_moment(follower, &error));
    OK(now = trommel_moment_snapshot(moment, NULL, &error));
    CHECK(trommel_moment_sequence(moment) == trommel_snapshot_sequence(now));
    OK(trommel_snapshot_get(now, NULL, S("k"), &value, &error));
    CHECK(is_value(value, "2"));
    trommel_value_free(value);
    OK(trommel_snapshot_get(then, NULL, S("k"), &value, &error));
    CHECK(is_value(value, "1"));
    trommel_value_free(value);
    // A key space of the store is none of the follower's.
    FAILS(TROMMEL_ARGUMENT, "another store",
          trommel_snapshot_get(now, events, S("e"), &value, &error));
    trommel_snapshot_free(now);
    OK(now = trommel_moment_snapshot(moment, "events", &error));
    OK(trommel_snapshot_get(now, NULL, S("e"), &value, &error));
    CHECK(is_value(value, "3"));
    trommel_value_free(value);
    trommel_snapshot_free(now);
    FAILS(TROMMEL_NO_KEYSPACE, "words", trommel_moment_snapshot(moment, "words", &error));
    trommel_moment_free(moment);
    OK(now = trommel_follower_snapshot(follower, "events", &error));
    trommel_scan *scan;
    OK(scan = trommel_snapshot_scan(now, NULL, NULL, 0, &error));
    CHECK(shows(scan, "e=3"));
    FAILS(TROMMEL_NO_KEYSPACE, "words", trommel_follower_snapshot(follower, "words", &error));
    trommel_names *names;
    OK(names = trommel_follower_keyspaces(follower, &error));
    CHECK(trommel_names_count(names) == 2 && strcmp(trommel_names_get(names, 1), "events") == 0);
    trommel_names_free(names);
    trommel_staleness staleness;
    char *failure = (char *)1;
    OK(trommel_follower_staleness(follower, &staleness, &failure, &error));
    CHECK(failure == NULL && staleness.sequence >= 3);
    OK(trommel_follower_staleness(follower, &staleness, NULL, &error));
    size_t damages = 7;
    char *json;
    OK(json = trommel_follower_verify(follower, &damages, &error));
    CHECK(damages == 0 && tells(json, "\"ok\":true"));
    OK(json = trommel_follower_stats(follower, NULL, &error));
    CHECK(tells(json, "\"guard\""));
    OK(json = trommel_follower_stats(follower, "events", &error));
    CHECK(tells(json, "\"guard\""));
    OK(trommel_follower_checkpoint(follower, path_in(folder, "copy"), &error));
    OK(trommel_follower_close(follower, &error));
    OK(trommel_follower_close(follower, &error));
    FAILS(TROMMEL_CLOSED, "closed", trommel_follower_catch_up(follower, &moved, &error));
    FAILS(TROMMEL_CLOSED, "closed", trommel_snapshot_get(then, NULL, S("k"), &value, &error));
    trommel_follower_free(follower);
    trommel_snapshot_free(then);
    trommel_snapshot_free(now);
    trommel_keyspace_free(events);
    close_and_free(db);
    // With a thread; and freed without being closed.
    OK(follower = trommel_follow(path_in(folder, "copy"), NULL, 10, &error));
    OK(now = trommel_follower_snapshot(follower, NULL, &error));
    trommel_follower_free(follower);
    trommel_snapshot_free(now);
    db = open_at(path_in(folder, "copy"));
    CHECK(has(db, NULL, "k", "2"));
    close_and_free(db);
}

static bool told(const trommel_change *change, uint32_t kind, const char *key, const char *value) {
    return change->kind == kind && change->key_len == strlen(key) &&
           memcmp(change->key, key, change->key_len) == 0 && change->value_len == strlen(value) &&
           memcmp(change->value, value, change->value_len) == 0;
}

void test_changes(const char *folder) {
    trommel_error *error;
    trommel_options *options = trommel_options_new();
    OK(trommel_options_set(options, "kept_log_bytes", "64MiB", &error));
    OK(trommel_options_set(options, "merge_operator", "concat:+", &error));
    trommel_db *db;
    OK(db = trommel_open(path_in(folder, "db"), options, &error));
    trommel_options_free(options);
    trommel_snapshot *begin;
    OK(begin = trommel_snapshot_take(db, &error));
    trommel_changes *changes;
    OK(changes = trommel_changes_since(db, trommel_snapshot_sequence(begin), &error));
    trommel_snapshot_free(begin);
    trommel_change change;
    OK(trommel_changes_next(changes, &change, &error));
    CHECK(change.kind == TROMMEL_CHANGE_NONE && change.key == NULL);

    trommel_keyspace *events;
    OK(events = trommel_keyspace_make(db, "events", NULL, &error));
    trommel_batch *batch = trommel_batch_new();
    OK(trommel_batch_put(batch, NULL, S("a"), S("1"), &error));
    OK(trommel_batch_put_ttl(batch, events, S("b"), S("2"), 3600000, &error));
    OK(trommel_batch_delete(batch, NULL, S("c"), &error));
    OK(trommel_batch_delete_range(batch, NULL, S("d"), S("e"), &error));
    OK(trommel_batch_merge(batch, NULL, S("f"), S("3"), &error));
    OK(trommel_write(db, batch, true, &error));
    trommel_batch_free(batch);
    put(db, "g", "4");
    OK(trommel_sync(db, &error));

    OK(trommel_changes_next(changes, &change, &error));
    CHECK(told(&change, TROMMEL_CHANGE_PUT, "a", "1") && !change.ends_batch);
    CHECK(change.keyspace == 0 && change.keyspace_name_len == 7 && change.expiry == 0);
    uint64_t last = change.sequence;
    OK(trommel_changes_next(changes, &change, &error));
    CHECK(told(&change, TROMMEL_CHANGE_PUT_WITH_EXPIRY, "b", "2") && change.sequence > last);
    CHECK(change.keyspace != 0 && memcmp(change.keyspace_name, "events", 6) == 0);
    CHECK(change.expiry > UINT64_C(1600000000000));
    OK(trommel_changes_next(changes, &change, &error));
    CHECK(told(&change, TROMMEL_CHANGE_DELETE, "c", ""));
    OK(trommel_changes_next(changes, &change, &error));
    CHECK(told(&change, TROMMEL_CHANGE_DELETE_RANGE, "d", "e") && !change.ends_batch);
    OK(trommel_changes_next(changes, &change, &error));
    CHECK(told(&change, TROMMEL_CHANGE_MERGE, "f", "3"));
    // The batch, and what was logged with it, end here or behind the next write.
    OK(trommel_changes_next(changes, &change, &error));
    CHECK(told(&change, TROMMEL_CHANGE_PUT, "g", "4") && change.ends_batch);
    last = change.sequence;
    OK(trommel_changes_next(changes, &change, &error));
    CHECK(change.kind == TROMMEL_CHANGE_NONE && !change.ends_batch);
    trommel_changes_free(changes);

    // Another feed goes on behind a batch.
    put(db, "h", "5");
    OK(trommel_sync(db, &error));
    OK(changes = trommel_changes_since(db, last, &error));
    OK(trommel_changes_next(changes, &change, &error));
    CHECK(told(&change, TROMMEL_CHANGE_PUT, "h", "5") && change.ends_batch);
    FAILS(TROMMEL_GONE, "cannot be told", trommel_changes_since(db, 1000, &error));
    FAILS(TROMMEL_ARGUMENT, "change is NULL", trommel_changes_next(changes, NULL, &error));
    trommel_keyspace_free(events);
    close_and_free(db);
    FAILS(TROMMEL_CLOSED, "closed", trommel_changes_next(changes, &change, &error));
    trommel_changes_free(changes);
}

void test_tools(const char *folder) {
    trommel_error *error;
    char *json;
    size_t wrong = 7;
    const char *path = path_in(folder, "db");
    trommel_db *db = open_at(path);
    char key[16];
    for (int at = 0; at < 500; at++) {
        snprintf(key, sizeof key, "key%05d", at);
        put(db, key, "a value that takes some room in the table");
    }
    OK(trommel_flush(db, &error));
    put(db, "last", "in memory");
    OK(json = trommel_stats(db, NULL, &error));
    CHECK(tells(json, "\"failure\":null"));
    OK(json = trommel_verify(db, &wrong, &error));
    CHECK(wrong == 0 && tells(json, "\"tables\":1"));
    OK(trommel_checkpoint(db, path_in(folder, "copy"), &error));
    FAILS(TROMMEL_NOT_EMPTY, "not empty", trommel_checkpoint(db, path_in(folder, "copy"), &error));
    FAILS(TROMMEL_LOCKED, "open", trommel_repair(path, &wrong, &error));
    close_and_free(db);
    db = open_at(path_in(folder, "copy"));
    CHECK(has(db, NULL, "last", "in memory") && has(db, NULL, "key00499", NULL) == false);
    close_and_free(db);

    OK(json = trommel_repair(path, &wrong, &error));
    CHECK(wrong == 0 && tells(json, "\"changed\":false"));
    damage(path, ".table");
    db = open_at(path);
    OK(json = trommel_verify(db, &wrong, &error));
    CHECK(wrong > 0 && tells(json, "\"ok\":false"));
    OK(json = trommel_verify(db, NULL, &error));
    trommel_text_free(json);
    // A read of what is damaged says so.
    trommel_scan *scan;
    OK(scan = trommel_scan_begin(db, NULL, NULL, 0, &error));
    char buffer[4096];
    size_t len, rows = 1;
    bool went_well = true;
    while (went_well && rows > 0) {
        went_well = trommel_scan_next(scan, buffer, sizeof buffer, &len, &rows, &error);
    }
    CHECK(!went_well && trommel_error_code(error) == TROMMEL_CORRUPT);
    CHECK(trommel_error_tells_of_damage(error));
    trommel_error_free(error);
    trommel_scan_free(scan);
    close_and_free(db);
    OK(json = trommel_repair(path, &wrong, &error));
    CHECK(wrong > 0 && tells(json, "\"lost\":[{"));
    db = open_at(path);
    OK(json = trommel_verify(db, &wrong, &error));
    CHECK(wrong == 0);
    trommel_text_free(json);
    CHECK(has(db, NULL, "last", "in memory"));
    close_and_free(db);
    FAILS(TROMMEL_MISSING, "no store", trommel_repair(path_in(folder, "none"), NULL, &error));
    CHECK(mkdir(path_in(folder, "strange"), 0777) == 0);
    FILE *file = fopen(path_in(folder, "strange/file"), "w");
    CHECK(file != NULL && fclose(file) == 0);
    FAILS(TROMMEL_NOT_A_STORE, "no MANIFEST", trommel_open(path_in(folder, "strange"), NULL, &error));
}

void test_backups(const char *folder) {
    trommel_error *error;
    char *json;
    trommel_db *db = open_at(path_in(folder, "db"));
    put(db, "k", "1");
    trommel_backups *backups;
    OK(backups = trommel_backups_open(path_in(folder, "backups"), &error));
    uint64_t first, second;
    OK(trommel_backups_create(backups, db, &first, &error));
    put(db, "k", "2");
    OK(trommel_backups_create(backups, db, &second, &error));
    OK(trommel_backups_create(backups, db, NULL, &error));
    CHECK(second > first);
    OK(json = trommel_backups_list(backups, &error));
    CHECK(tells(json, "\"sequence\""));
    size_t wrong = 7;
    OK(json = trommel_backups_verify(backups, first, &wrong, &error));
    CHECK(wrong == 0 && tells(json, "\"ok\":true"));
    FAILS(TROMMEL_FILE_MISSING, "no generation",
          trommel_backups_verify(backups, 1000, &wrong, &error));
    OK(trommel_backups_restore(backups, first, path_in(folder, "restored"), &error));
    FAILS(TROMMEL_NOT_EMPTY, "not empty",
          trommel_backups_restore(backups, first, path_in(folder, "restored"), &error));
    OK(trommel_backups_prune(backups, 1, &wrong, &error));
    CHECK(wrong == 2);
    OK(trommel_backups_prune(backups, 1, NULL, &error));
    FAILS(TROMMEL_FILE_MISSING, "no generation",
          trommel_backups_restore(backups, first, path_in(folder, "other"), &error));
    trommel_backups_free(backups);
    close_and_free(db);
    db = open_at(path_in(folder, "restored"));
    CHECK(has(db, NULL, "k", "1"));
    close_and_free(db);
}
