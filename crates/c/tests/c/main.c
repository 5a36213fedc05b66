// All that trommel.h has, from C. The argument is a folder for the stores, which must be empty:
//   surface FOLDER [TEST]

#include <sys/stat.h>

#include "check.h"

static const struct {
    const char *name;
    void (*run)(const char *folder);
} TESTS[] = {
    {"border", test_border},       {"options", test_options},
    {"store", test_store},         {"reads", test_reads},
    {"values", test_values},
    {"single_keys", test_single_keys}, {"batches", test_batches},
    {"scans", test_scans},         {"snapshots", test_snapshots},
    {"keyspaces", test_keyspaces}, {"transactions", test_transactions},
    {"followers", test_followers}, {"changes", test_changes},
    {"tools", test_tools},         {"backups", test_backups},
    {"filters", test_filters},     {"threads", test_threads},
    {"forks", test_forks},
};

int main(int count, char **arguments) {
    if (count < 2) {
        fprintf(stderr, "usage: surface FOLDER [TEST]\n");
        return 2;
    }
    int passed = 0;
    for (size_t at = 0; at < sizeof TESTS / sizeof TESTS[0]; at++) {
        if (count > 2 && strcmp(arguments[2], TESTS[at].name) != 0) {
            continue;
        }
        char folder[512];
        snprintf(folder, sizeof folder, "%s/%s", arguments[1], TESTS[at].name);
        CHECK(mkdir(folder, 0777) == 0);
        fprintf(stderr, "c: %s\n", TESTS[at].name);
        TESTS[at].run(folder);
        passed++;
    }
    CHECK(passed > 0);
    printf("%d passed, 0 failed\n", passed);
    return 0;
}
