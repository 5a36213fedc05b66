#include <time.h>

#include "check.h"

_Noreturn void failed(const char *file, int line, const char *what, const trommel_error *error) {
    fprintf(stderr, "%s:%d: %s", file, line, what);
    if (error != NULL && error != (trommel_error *)1) {
        fprintf(stderr, ": %" PRIu32 ", %s", trommel_error_code(error), trommel_error_message(error));
    }
    fprintf(stderr, "\n");
    exit(1);
}

const char *path_in(const char *folder, const char *name) {
    static char paths[4][512];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

bool is_value(const trommel_value *value, const char *text) {
    return value != NULL && trommel_value_len(value) == strlen(text) &&
           memcmp(trommel_value_data(value), text, strlen(text)) == 0;
}

trommel_db *open_at(const char *path) {
    trommel_error *error;
    trommel_db *db;
    OK(db = trommel_open(path, NULL, &error));
    return db;
}

void close_and_free(trommel_db *db) {
    trommel_error *error;
    OK(trommel_close(db, &error));
    trommel_db_free(db);
}

void put(trommel_db *db, const char *key, const char *value) {
    trommel_error *error;
    OK(trommel_put(db, NULL, S(key), S(value), &error));
}

bool has(trommel_db *db, const trommel_keyspace *keyspace, const char *key, const char *value) {
    trommel_error *error;
    trommel_value *found;
    OK(trommel_get(db, keyspace, S(key), &found, &error));
    bool is_so = value == NULL ? found == NULL : is_value(found, value);
    trommel_value_free(found);
    return is_so;
}

void wait_until_gone(trommel_db *db, const trommel_keyspace *keyspace, const char *key) {
    const struct timespec millisecond = {0, 1000000};
    while (!has(db, keyspace, key, NULL)) {
        nanosleep(&millisecond, NULL);
    }
}

char *rows_of(trommel_scan *scan) {
    trommel_error *error;
    size_t used = 0, room = 1 << 16;
    char *text = malloc(room);
    char buffer[64];
    CHECK(text != NULL);
    text[0] = 0;
    for (;;) {
        size_t len, rows, place = 0;
        OK(trommel_scan_next(scan, buffer, sizeof buffer, &len, &rows, &error));
        if (rows == 0) {
            CHECK(len == 0);
            break;
        }
        const void *key, *value;
        size_t key_len, value_len;
        while (trommel_row(buffer, len, &place, &key, &key_len, &value, &value_len)) {
            CHECK(used + key_len + value_len + 3 < room);
            used += (size_t)snprintf(text + used, room - used, "%s%.*s=%.*s", used ? " " : "",
                                     (int)key_len, (const char *)key, (int)value_len,
                                     (const char *)value);
            rows--;
        }
        CHECK(place == len && rows == 0);
    }
    trommel_scan_free(scan);
    return text;
}

bool shows(trommel_scan *scan, const char *rows) {
    CHECK(scan != NULL);
    char *text = rows_of(scan);
    bool same = strcmp(text, rows) == 0;
    if (!same) {
        fprintf(stderr, "rows are: %s\n", text);
    }
    free(text);
    return same;
}
