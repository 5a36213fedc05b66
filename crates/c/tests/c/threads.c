// Handles that several threads use at once; and a child process.

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { THREADS = 4, ROUNDS = 60 };

typedef struct {
    trommel_db *db;
    trommel_keyspace *events;
    const trommel_snapshot *snapshot;
    int number;
} work;

static void *writes_and_reads(void *argument) {
    const work *own = argument;
    trommel_error *error;
    char key[32];
    for (int at = 0; at < ROUNDS; at++) {
        snprintf(key, sizeof key, "t%d-%04d", own->number, at);
        OK(trommel_put(own->db, own->events, S(key), S("x"), &error));
        CHECK(has(own->db, own->events, key, "x"));
        OK(trommel_fetch_add(own->db, NULL, S("count"), 1, NULL, &error));
        trommel_value *value;
        OK(trommel_snapshot_get(own->snapshot, own->events, S(key), &value, &error));
        CHECK(value == NULL);
        if (at % 16 == 0) {
            trommel_scan *scan;
            trommel_range range = {key, 2, NULL, 0};
            OK(scan = trommel_scan_begin(own->db, own->events, &range, TROMMEL_PREFIX, &error));
            const void *found, *bytes;
            size_t found_len, len;
            int rows = 0;
            for (;;) {
                OK(trommel_scan_row(scan, &found, &found_len, &bytes, &len, &error));
                if (found == NULL) break;
                rows++;
            }
            CHECK(rows == at + 1);
            trommel_scan_free(scan);
        }
    }
    return NULL;
}

// Adds with transactions that may have to run again.
static void *transfers(void *argument) {
    const work *own = argument;
    for (int at = 0; at < ROUNDS; at++) {
        for (;;) {
            trommel_error *error;
            trommel_transaction *one;
            trommel_value *value;
            OK(one = trommel_transaction_begin(own->db, TROMMEL_SERIALIZABLE, &error));
            OK(trommel_transaction_get(one, NULL, S("sum"), &value, &error));
            char text[32] = "0";
            if (value != NULL) {
                memcpy(text, trommel_value_data(value), trommel_value_len(value));
                text[trommel_value_len(value)] = 0;
            }
            trommel_value_free(value);
            snprintf(text, sizeof text, "%d", atoi(text) + 1);
            OK(trommel_transaction_put(one, NULL, S("sum"), S(text), &error));
            bool committed = trommel_transaction_commit(one, false, NULL, &error);
            uint32_t code = trommel_error_code(error);
            trommel_error_free(error);
            trommel_transaction_free(one);
            if (committed) break;
            CHECK(code == TROMMEL_CONFLICT);
        }
    }
    return NULL;
}

// Works until the store is closed under it.
static void *until_closed(void *argument) {
    const work *own = argument;
    for (;;) {
        trommel_error *error;
        if (!trommel_put(own->db, NULL, S("until"), S("closed"), &error)) {
            CHECK(trommel_error_code(error) == TROMMEL_CLOSED);
            trommel_error_free(error);
            return NULL;
        }
    }
}

static void run(const work *all, void *(*task)(void *), pthread_t *threads) {
    for (int at = 0; at < THREADS; at++) {
        CHECK(pthread_create(&threads[at], NULL, task, (void *)&all[at]) == 0);
    }
}

static void join(const pthread_t *threads) {
    for (int at = 0; at < THREADS; at++) {
        CHECK(pthread_join(threads[at], NULL) == 0);
    }
}

void test_threads(const char *folder) {
    trommel_error *error;
    trommel_db *db = open_at(path_in(folder, "db"));
    trommel_keyspace *events;
    OK(events = trommel_keyspace_make(db, "events", NULL, &error));
    trommel_snapshot *before;
    OK(before = trommel_snapshot_take(db, &error));
    work all[THREADS];
    pthread_t threads[THREADS];
    for (int at = 0; at < THREADS; at++) {
        all[at] = (work){db, events, before, at};
    }
    run(all, writes_and_reads, threads);
    OK(trommel_flush(db, &error));
    join(threads);
    int64_t count;
    OK(trommel_fetch_add(db, NULL, S("count"), 0, &count, &error));
    CHECK(count == THREADS * ROUNDS);
    run(all, transfers, threads);
    join(threads);
    char sum[16];
    snprintf(sum, sizeof sum, "%d", THREADS * ROUNDS);
    CHECK(has(db, NULL, "sum", sum));
    run(all, until_closed, threads);
    put(db, "last", "1");
    OK(trommel_close(db, &error));
    join(threads);
    trommel_snapshot_free(before);
    trommel_keyspace_free(events);
    trommel_db_free(db);
}

void test_forks(const char *folder) {
    trommel_error *error;
    trommel_db *db = open_at(path_in(folder, "db"));
    put(db, "k", "parent");
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        trommel_value *value;
        FAILS(TROMMEL_FORKED, "forked", trommel_put(db, NULL, S("k"), S("child"), &error));
        FAILS(TROMMEL_FORKED, "forked", trommel_get(db, NULL, S("k"), &value, &error));
        FAILS(TROMMEL_FORKED, "forked", trommel_close(db, &error));
        trommel_db_free(db);
        // What a child cannot free is no leak: it becomes another program.
        execl("/bin/true", "true", (char *)NULL);
        _exit(1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    put(db, "l", "parent");
    close_and_free(db);
    db = open_at(path_in(folder, "db"));
    CHECK(has(db, NULL, "k", "parent") && has(db, NULL, "l", "parent"));
    close_and_free(db);
}
