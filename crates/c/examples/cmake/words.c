// Counts the words that it is given, in the store `words` here.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trommel.h"

static void end_if(bool failed, trommel_error *error) {
    if (failed) {
        fprintf(stderr, "words: %s\n", trommel_error_message(error));
        exit(1);
    }
}

int main(int count, char **words) {
    trommel_error *error = NULL;
    trommel_db *db = trommel_open("words", NULL, &error);
    end_if(db == NULL, error);
    static char *some[] = {"", "drum", "tuba", "drum"};
    if (count < 2) {
        words = some;
        count = 4;
    }
    for (int at = 1; at < count; at++) {
        end_if(!trommel_fetch_add(db, NULL, words[at], strlen(words[at]), 1, NULL, &error), error);
    }
    trommel_scan *scan = trommel_scan_begin(db, NULL, NULL, TROMMEL_KEYS_ONLY, &error);
    end_if(scan == NULL, error);
    char buffer[4096];
    size_t len, rows, all = 0;
    do {
        end_if(!trommel_scan_next(scan, buffer, sizeof buffer, &len, &rows, &error), error);
        all += rows;
    } while (rows > 0);
    trommel_scan_free(scan);
    printf("%zu words\n", all);
    end_if(!trommel_close(db, &error), error);
    trommel_db_free(db);
}
