// Checks of the test programs. A check that fails ends the program and says where.

#ifndef CHECK_H
#define CHECK_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trommel.h"

// Each test is a function of the folder that it may use, which is there and empty.
void test_border(const char *folder);
void test_options(const char *folder);
void test_store(const char *folder);
void test_reads(const char *folder);
void test_values(const char *folder);
void test_single_keys(const char *folder);
void test_batches(const char *folder);
void test_scans(const char *folder);
void test_snapshots(const char *folder);
void test_keyspaces(const char *folder);
void test_transactions(const char *folder);
void test_followers(const char *folder);
void test_changes(const char *folder);
void test_tools(const char *folder);
void test_backups(const char *folder);
void test_filters(const char *folder);
void test_threads(const char *folder);
void test_forks(const char *folder);

// A path in the test's folder. It is good until the fourth call after this one.
const char *path_in(const char *folder, const char *name);

_Noreturn void failed(const char *file, int line, const char *what, const trommel_error *error);

#define CHECK(condition)                                       \
    do {                                                       \
        if (!(condition)) {                                    \
            failed(__FILE__, __LINE__, #condition, NULL);      \
        }                                                      \
    } while (0)

// A call that goes well. It has `error` as its place for an error.
#define OK(call)                                               \
    do {                                                       \
        error = (trommel_error *)1;                            \
        if (!(call)) {                                         \
            failed(__FILE__, __LINE__, #call, error);          \
        }                                                      \
        CHECK(error == NULL);                                  \
    } while (0)

// A call that fails, with this code and with a message that has these words.
#define FAILS(expected, words, call)                                             \
    do {                                                                         \
        error = (trommel_error *)1;                                              \
        CHECK(!(call));                                                          \
        CHECK(error != NULL);                                                    \
        if (trommel_error_code(error) != (expected)) {                           \
            failed(__FILE__, __LINE__, #call " gives another error", error);     \
        }                                                                        \
        if (!strstr(trommel_error_message(error), (words))) {                    \
            failed(__FILE__, __LINE__, "the message lacks: " words, error);      \
        }                                                                        \
        trommel_error_free(error);                                               \
        error = NULL;                                                            \
    } while (0)

// A text as pointer and length.
#define S(text) (text), strlen(text)

bool is_value(const trommel_value *value, const char *text);

// Short forms. Each ends the program if the call fails.
trommel_db *open_at(const char *path);
void close_and_free(trommel_db *db);
void put(trommel_db *db, const char *key, const char *value);
// Whether a key has this value; NULL: none.
bool has(trommel_db *db, const trommel_keyspace *keyspace, const char *key, const char *value);
// Returns when a key has no value any more: one that has expired goes within a millisecond.
void wait_until_gone(trommel_db *db, const trommel_keyspace *keyspace, const char *key);
// All rows of a scan, as "key=value key=value", freed with it.
char *rows_of(trommel_scan *scan);
bool shows(trommel_scan *scan, const char *rows);

#endif
