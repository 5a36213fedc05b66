// Scans and snapshots.

#include "check.h"

static trommel_scan *scan_of(trommel_db *db, const char *from, const char *to, uint32_t flags) {
    trommel_error *error;
    trommel_range range = {from, from ? strlen(from) : 0, to, to ? strlen(to) : 0};
    trommel_scan *scan;
    OK(scan = trommel_scan_begin(db, NULL, &range, flags, &error));
    return scan;
}

static void bounds_mean_what_they_say(trommel_db *db) {
    CHECK(shows(scan_of(db, NULL, NULL, 0), "a=1 b=2 ba=3 c=4"));
    CHECK(shows(scan_of(db, "b", "c", 0), "b=2 ba=3"));
    CHECK(shows(scan_of(db, "b", "c", TROMMEL_TO_INCLUDED), "b=2 ba=3 c=4"));
    CHECK(shows(scan_of(db, "b", "c", TROMMEL_FROM_EXCLUDED), "ba=3"));
    CHECK(shows(scan_of(db, "b", NULL, TROMMEL_PREFIX), "b=2 ba=3"));
    CHECK(shows(scan_of(db, "b", NULL, TROMMEL_PREFIX | TROMMEL_REVERSE), "ba=3 b=2"));
    CHECK(shows(scan_of(db, NULL, "b", TROMMEL_REVERSE | TROMMEL_TO_INCLUDED), "b=2 a=1"));
    CHECK(shows(scan_of(db, "b", NULL, TROMMEL_KEYS_ONLY), "b= ba= c="));
    CHECK(shows(scan_of(db, "c", "b", 0), ""));
    // An empty bound is a bound.
    trommel_error *error;
    trommel_scan *scan;
    OK(scan = trommel_scan_begin(db, NULL, &(trommel_range){"", 0, "", 0}, 0, &error));
    CHECK(shows(scan, ""));
    OK(scan = trommel_scan_begin(db, NULL, NULL, 0, &error));
    CHECK(shows(scan, "a=1 b=2 ba=3 c=4"));
    FAILS(TROMMEL_ARGUMENT, "flags", trommel_scan_begin(db, NULL, NULL, 64, &error));
}

static void rows_that_do_not_fit_wait(trommel_db *db) {
    trommel_error *error;
    trommel_scan *scan = scan_of(db, NULL, NULL, 0);
    char buffer[64];
    size_t len, rows;
    OK(trommel_scan_next(scan, NULL, 0, &len, &rows, &error));
    CHECK(rows == 0 && len == 10);
    OK(trommel_scan_next(scan, buffer, 9, &len, &rows, &error));
    CHECK(rows == 0 && len == 10);
    OK(trommel_scan_next(scan, buffer, 29, &len, &rows, &error));
    CHECK(rows == 2 && len == 20);
    CHECK(memcmp(buffer, "\1\0\0\0\1\0\0\0a1\1\0\0\0\1\0\0\0b2", 20) == 0);
    // Whoever asks for it: the one that waits comes first.
    const void *key, *value;
    size_t key_len, value_len;
    OK(trommel_scan_row(scan, &key, &key_len, &value, &value_len, &error));
    CHECK(key_len == 2 && memcmp(key, "ba", 2) == 0 && value_len == 1);
    OK(trommel_scan_next(scan, buffer, 64, &len, &rows, &error));
    CHECK(rows == 1 && len == 10 && buffer[8] == 'c');
    OK(trommel_scan_next(scan, buffer, 64, &len, &rows, &error));
    CHECK(rows == 0 && len == 0);
    OK(trommel_scan_row(scan, &key, &key_len, &value, &value_len, &error));
    CHECK(key == NULL && key_len == 0 && value_len == 0);
    trommel_scan_free(scan);

    // A row that is cut off is none.
    size_t place = 0;
    CHECK(!trommel_row("\1\0\0\0\1\0\0\0a", 9, &place, NULL, NULL, NULL, NULL) && place == 0);
    CHECK(!trommel_row("\1\0\0", 3, &place, NULL, NULL, NULL, NULL));
    CHECK(!trommel_row("\377\377\377\377\377\377\377\377a", 9, &place, NULL, NULL, NULL, NULL));
    CHECK(!trommel_row(NULL, 0, &place, NULL, NULL, NULL, NULL));
    CHECK(!trommel_row("", 0, NULL, NULL, NULL, NULL, NULL));
    place = 100;
    CHECK(!trommel_row(buffer, 10, &place, NULL, NULL, NULL, NULL) && place == 100);
    place = 0;
    CHECK(trommel_row(buffer, 10, &place, NULL, NULL, NULL, NULL) && place == 10);
}

static void seeks_go_one_way(trommel_db *db) {
    trommel_error *error;
    char buffer[64];
    size_t len, rows;
    trommel_scan *scan = scan_of(db, NULL, NULL, 0);
    OK(trommel_scan_seek(scan, S("b"), &error));
    // The row that waits is passed over only by a seek behind it.
    OK(trommel_scan_next(scan, NULL, 0, &len, &rows, &error));
    CHECK(len == 10);
    OK(trommel_scan_seek(scan, S("a"), &error));
    OK(trommel_scan_seek(scan, S("b"), &error));
    OK(trommel_scan_next(scan, buffer, 10, &len, &rows, &error));
    CHECK(rows == 1 && buffer[8] == 'b');
    OK(trommel_scan_next(scan, NULL, 0, &len, &rows, &error));
    OK(trommel_scan_seek(scan, S("bb"), &error));
    CHECK(shows(scan, "c=4"));
    scan = scan_of(db, NULL, NULL, TROMMEL_REVERSE);
    OK(trommel_scan_next(scan, NULL, 0, &len, &rows, &error));
    OK(trommel_scan_seek(scan, S("bb"), &error));
    OK(trommel_scan_seek(scan, S("c"), &error));
    OK(trommel_scan_next(scan, NULL, 0, &len, &rows, &error));
    OK(trommel_scan_seek(scan, S("ba"), &error));
    CHECK(shows(scan, "ba=3 b=2 a=1"));
}

static void an_error_comes_behind_its_rows(const char *folder) {
    trommel_error *error;
    trommel_db *db = open_at(path_in(folder, "closing"));
    put(db, "a", "1");
    put(db, "b", "2");
    trommel_scan *scan = scan_of(db, NULL, NULL, 0);
    size_t len, rows;
    char buffer[64];
    // One waits; then the store is closed under the scan.
    OK(trommel_scan_next(scan, NULL, 0, &len, &rows, &error));
    close_and_free(db);
    OK(trommel_scan_next(scan, buffer, 64, &len, &rows, &error));
    CHECK(rows == 1 && buffer[8] == 'a');
    FAILS(TROMMEL_CLOSED, "closed", trommel_scan_next(scan, buffer, 64, &len, &rows, &error));
    OK(trommel_scan_next(scan, buffer, 64, &len, &rows, &error));
    CHECK(rows == 0 && len == 0);
    trommel_scan_free(scan);
}

static void rows_of_one_are_loaded_into_another(trommel_db *db) {
    trommel_error *error;
    trommel_keyspace *copy;
    OK(copy = trommel_keyspace_make(db, "copy", NULL, &error));
    trommel_scan *scan = scan_of(db, NULL, NULL, 0);
    char buffer[64];
    size_t len, rows;
    OK(trommel_scan_next(scan, buffer, sizeof buffer, &len, &rows, &error));
    CHECK(rows == 4);
    trommel_scan_free(scan);
    uint64_t count = 0;
    OK(trommel_ingest(db, copy, buffer, len, &count, &error));
    CHECK(count == 4);
    OK(scan = trommel_scan_begin(db, copy, NULL, 0, &error));
    CHECK(shows(scan, "a=1 b=2 ba=3 c=4"));
    OK(trommel_ingest(db, copy, NULL, 0, NULL, &error));
    // Nothing is written if a row is cut off, or comes before another one.
    FAILS(TROMMEL_MALFORMED, "at byte 10", trommel_ingest(db, copy, buffer, 19, NULL, &error));
    const char unsorted[] = "\1\0\0\0\1\0\0\0z1\1\0\0\0\1\0\0\0y2";
    CHECK(!trommel_ingest(db, copy, unsorted, 20, NULL, &error));
    CHECK(trommel_error_code(error) == TROMMEL_UNSORTED);
    CHECK(memcmp(trommel_error_key(error, &len), "y", 1) == 0 && len == 1);
    trommel_error_free(error);
    OK(scan = trommel_scan_begin(db, copy, NULL, 0, &error));
    CHECK(shows(scan, "a=1 b=2 ba=3 c=4"));
    trommel_keyspace_free(copy);
    OK(trommel_keyspace_drop(db, "copy", &error));
}

void test_scans(const char *folder) {
    trommel_db *db = open_at(path_in(folder, "db"));
    put(db, "a", "1");
    put(db, "b", "2");
    put(db, "ba", "3");
    put(db, "c", "4");
    for (int round = 0; round < 2; round++) {
        bounds_mean_what_they_say(db);
        rows_that_do_not_fit_wait(db);
        seeks_go_one_way(db);
        rows_of_one_are_loaded_into_another(db);
        // From memory, then from a table.
        trommel_error *error;
        OK(trommel_flush(db, &error));
    }
    an_error_comes_behind_its_rows(folder);

    // As of the moment when it began; and it may outlive the handle.
    trommel_scan *scan = scan_of(db, NULL, NULL, 0);
    put(db, "aa", "5");
    CHECK(shows(scan, "a=1 b=2 ba=3 c=4"));

    // Many rows, longer than the buffer at times.
    trommel_error *error;
    enum { ROWS = 3000 };
    trommel_batch *batch = trommel_batch_new();
    char key[16], *value = calloc(1, 300);
    CHECK(value != NULL);
    for (int at = 0; at < ROWS; at++) {
        snprintf(key, sizeof key, "row%06d", at);
        OK(trommel_batch_put(batch, NULL, S(key), value, (size_t)(at % 300), &error));
    }
    OK(trommel_write(db, batch, false, &error));
    trommel_batch_free(batch);
    free(value);
    scan = scan_of(db, "row", NULL, TROMMEL_PREFIX);
    char buffer[1000];
    size_t len, rows, seen = 0;
    for (;;) {
        OK(trommel_scan_next(scan, buffer, sizeof buffer, &len, &rows, &error));
        if (rows == 0) break;
        size_t place = 0, key_len, value_len;
        const void *found, *bytes;
        while (trommel_row(buffer, len, &place, &found, &key_len, &bytes, &value_len)) {
            snprintf(key, sizeof key, "row%06d", (int)seen);
            CHECK(key_len == 9 && memcmp(found, key, 9) == 0 && value_len == seen % 300);
            seen++;
        }
    }
    CHECK(len == 0 && seen == ROWS);
    trommel_scan_free(scan);
    close_and_free(db);
}

void test_snapshots(const char *folder) {
    trommel_error *error;
    trommel_db *db = open_at(path_in(folder, "db"));
    trommel_keyspace *events;
    OK(events = trommel_keyspace_make(db, "events", NULL, &error));
    put(db, "k", "old");
    OK(trommel_put(db, events, S("k"), S("event"), &error));
    trommel_snapshot *then, *later;
    OK(then = trommel_snapshot_take(db, &error));
    put(db, "k", "new");
    put(db, "l", "new");
    OK(trommel_delete(db, events, S("k"), &error));
    OK(later = trommel_snapshot_take(db, &error));
    CHECK(trommel_snapshot_sequence(then) < trommel_snapshot_sequence(later));
    trommel_snapshot_free(later);
    for (int round = 0; round < 2; round++) {
        trommel_value *value, *values[2];
        OK(trommel_snapshot_get(then, NULL, S("k"), &value, &error));
        CHECK(is_value(value, "old"));
        trommel_value_free(value);
        OK(trommel_snapshot_get(then, events, S("k"), &value, &error));
        CHECK(is_value(value, "event"));
        trommel_value_free(value);
        OK(trommel_snapshot_get(then, NULL, S("l"), &value, &error));
        CHECK(value == NULL);
        char buffer[8];
        size_t len, lens[2];
        OK(trommel_snapshot_get_into(then, NULL, S("k"), buffer, 8, &len, &error));
        CHECK(len == 3 && memcmp(buffer, "old", 3) == 0);
        const trommel_bytes keys[] = {{"l", 1}, {"k", 1}};
        OK(trommel_snapshot_multi_get(then, NULL, keys, 2, values, &error));
        CHECK(values[0] == NULL && is_value(values[1], "old"));
        trommel_value_free(values[1]);
        OK(trommel_snapshot_multi_get_into(then, NULL, keys, 2, buffer, 8, lens, &len, &error));
        CHECK(len == 3 && lens[0] == TROMMEL_ABSENT && lens[1] == 3);
        trommel_scan *scan;
        OK(scan = trommel_snapshot_scan(then, NULL, NULL, 0, &error));
        CHECK(shows(scan, "k=old"));
        OK(scan = trommel_snapshot_scan(then, events, NULL, TROMMEL_KEYS_ONLY, &error));
        CHECK(shows(scan, "k="));
        bool may;
        trommel_range range = {"k", 1, "l", 1};
        OK(trommel_snapshot_may_contain_range(then, NULL, &range, 0, &may, &error));
        CHECK(may);
        trommel_count count;
        OK(trommel_snapshot_approximate_count(then, NULL, &range, 0, &count, &error));
        CHECK(count.most >= 1);
        // What it sees stays when all is merged.
        OK(trommel_compact(db, &error));
    }
    trommel_db *other = open_at(path_in(folder, "other"));
    trommel_keyspace *theirs;
    trommel_value *value;
    OK(theirs = trommel_keyspace_make(other, "theirs", NULL, &error));
    FAILS(TROMMEL_ARGUMENT, "another store",
          trommel_snapshot_get(then, theirs, S("k"), &value, &error));
    trommel_keyspace_free(theirs);
    close_and_free(other);
    // A scan outlives its snapshot.
    trommel_scan *scan;
    OK(scan = trommel_snapshot_scan(then, NULL, NULL, 0, &error));
    trommel_snapshot_free(then);
    CHECK(shows(scan, "k=old"));
    OK(then = trommel_snapshot_take(db, &error));
    trommel_keyspace_free(events);
    close_and_free(db);
    FAILS(TROMMEL_CLOSED, "closed", trommel_snapshot_get(then, NULL, S("k"), &value, &error));
    trommel_snapshot_free(then);
}
