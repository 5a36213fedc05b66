// Filters alone: no key is lost, wrong orders are told, and bytes of any origin are bytes alone.

#include "check.h"

enum { KEYS = 300 };

static char names[KEYS][16];
static trommel_bytes keys[KEYS];

static void no_key_is_lost(const trommel_filter *filter) {
    for (int at = 0; at < KEYS; at++) {
        CHECK(trommel_filter_may_contain(filter, keys[at].data, keys[at].len));
        CHECK(trommel_filter_may_contain_range(filter, keys[at].data, keys[at].len, keys[at].data,
                                               keys[at].len));
    }
    CHECK(trommel_filter_may_contain_range(filter, NULL, 0, NULL, 0));
    CHECK(trommel_filter_may_contain_range(filter, keys[5].data, keys[5].len, NULL, 0));
    CHECK(trommel_filter_may_contain_range(filter, NULL, 0, keys[5].data, keys[5].len));
}

// Changes each byte in some ways, and cuts: a filter or an error must come of it, and answers.
static void any_bytes_are_taken(const char *kind, const trommel_value *bytes) {
    trommel_error *error;
    size_t len = trommel_value_len(bytes), read = 0, refused = 0;
    uint8_t *copy = malloc(len + 1);
    CHECK(copy != NULL);
    size_t step = len / 97 + 1;
    for (size_t at = 0; at < len; at += step) {
        for (int way = 0; way < 4; way++) {
            memcpy(copy, trommel_value_data(bytes), len);
            size_t used = way == 3 ? at : len;
            copy[at] = way == 0 ? 0 : way == 1 ? 0xff : (uint8_t)(copy[at] ^ 0x10);
            // Its own allocation, so that a look beyond the end is seen.
            uint8_t *exact = malloc(used ? used : 1);
            CHECK(exact != NULL);
            memcpy(exact, copy, used);
            trommel_filter *filter = trommel_filter_read(kind, exact, used, &error);
            free(exact);
            if (filter == NULL) {
                CHECK(trommel_error_code(error) == TROMMEL_NO_FILTER);
                trommel_error_free(error);
                refused++;
                continue;
            }
            for (int key = 0; key < KEYS; key += 37) {
                trommel_filter_may_contain(filter, keys[key].data, keys[key].len);
                trommel_filter_may_contain_range(filter, keys[key].data, keys[key].len, "z", 1);
                trommel_filter_may_contain_range(filter, "", 0, keys[key].data, keys[key].len);
            }
            trommel_filter_free(filter);
            read++;
        }
    }
    free(copy);
    CHECK(read + refused > 0 && refused > 0);
}

static void all_of_a_kind(const char *kind) {
    trommel_error *error;
    trommel_value *bytes;
    OK(bytes = trommel_filter_build(kind, 14, keys, KEYS, &error));
    trommel_filter *filter, *by_tag;
    OK(filter = trommel_filter_read(kind, trommel_value_data(bytes), trommel_value_len(bytes),
                                    &error));
    CHECK(strcmp(trommel_filter_kind(filter), kind) == 0);
    CHECK(trommel_filter_size(filter) > 0);
    no_key_is_lost(filter);
    by_tag = trommel_filter_read(NULL, trommel_value_data(bytes), trommel_value_len(bytes), &error);
    if (by_tag == NULL) {
        CHECK(trommel_error_code(error) == TROMMEL_NO_FILTER);
        trommel_error_free(error);
    } else {
        CHECK(strcmp(trommel_filter_kind(by_tag), kind) == 0);
        no_key_is_lost(by_tag);
        trommel_filter_free(by_tag);
    }
    // Most of what is not there is denied.
    int maybe = 0;
    for (int at = 0; at < 1000; at++) {
        char absent[16];
        int len = snprintf(absent, sizeof absent, "no%d", at * 7919);
        maybe += trommel_filter_may_contain(filter, absent, (size_t)len);
    }
    CHECK(maybe < 500);
    any_bytes_are_taken(kind, bytes);
    trommel_filter_free(filter);
    trommel_value_free(bytes);
    OK(bytes = trommel_filter_build(kind, 14, NULL, 0, &error));
    OK(filter = trommel_filter_read(kind, trommel_value_data(bytes), trommel_value_len(bytes),
                                    &error));
    trommel_filter_free(filter);
    trommel_value_free(bytes);
}

static void builders(void) {
    trommel_error *error;
    trommel_filter_builder *builder;
    FAILS(TROMMEL_ARGUMENT, "there are: ",
          trommel_filter_builder_new("sieve", 12, NULL, &error));
    FAILS(TROMMEL_ARGUMENT, "bits per key",
          trommel_filter_builder_new("bloom", 0.0 / 1.0, NULL, &error));
    double zero = 0.0;
    FAILS(TROMMEL_ARGUMENT, "bits per key",
          trommel_filter_builder_new("bloom", zero / zero, NULL, &error));
    FAILS(TROMMEL_ARGUMENT, "bits per key",
          trommel_filter_builder_new("bloom", 1e18, NULL, &error));
    trommel_options *options = trommel_options_new();
    OK(builder = trommel_filter_builder_new("surf-real", 14, options, &error));
    trommel_options_free(options);
    OK(trommel_filter_builder_add(builder, S("bern"), &error));
    CHECK(!trommel_filter_builder_add(builder, S("aarau"), &error));
    size_t len;
    CHECK(trommel_error_code(error) == TROMMEL_UNSORTED);
    CHECK(memcmp(trommel_error_key(error, &len), "aarau", 5) == 0 && len == 5);
    trommel_error_free(error);
    OK(trommel_filter_builder_add(builder, S("zug"), &error));
    trommel_value *bytes;
    OK(bytes = trommel_filter_builder_finish(builder, &error));
    FAILS(TROMMEL_ARGUMENT, "finished", trommel_filter_builder_finish(builder, &error));
    FAILS(TROMMEL_ARGUMENT, "finished", trommel_filter_builder_add(builder, S("zz"), &error));
    trommel_filter_builder_free(builder);
    trommel_filter *filter;
    OK(filter = trommel_filter_read(NULL, trommel_value_data(bytes), trommel_value_len(bytes),
                                    &error));
    trommel_value_free(bytes);
    CHECK(trommel_filter_may_contain(filter, S("bern")));
    CHECK(trommel_filter_may_contain(filter, S("zug")));
    CHECK(trommel_filter_may_contain_range(filter, S("aa"), S("c")));
    CHECK(!trommel_filter_may_contain_range(filter, S("d"), S("y")));
    CHECK(!trommel_filter_may_contain_range(filter, S("y"), S("d")));
    // What cannot be asked is a maybe.
    CHECK(trommel_filter_may_contain(NULL, S("x")));
    CHECK(trommel_filter_may_contain(filter, NULL, 1));
    CHECK(trommel_filter_may_contain_range(filter, NULL, 1, S("d")));
    CHECK(trommel_filter_kind(NULL) == NULL && trommel_filter_size(NULL) == 0);
    trommel_filter_free(filter);
    FAILS(TROMMEL_UNSORTED, "ascending",
          trommel_filter_build("gap", 12, (trommel_bytes[]){{"b", 1}, {"a", 1}}, 2, &error));
    FAILS(TROMMEL_NO_FILTER, "no filter", trommel_filter_read(NULL, "", 0, &error));
    FAILS(TROMMEL_NO_FILTER, "no filter", trommel_filter_read("surf-real", S("?"), &error));
}

void test_filters(const char *folder) {
    (void)folder;
    trommel_error *error;
    for (int at = 0; at < KEYS; at++) {
        int len = snprintf(names[at], sizeof names[at], "key%06d", at * 31);
        keys[at] = (trommel_bytes){names[at], (size_t)len};
    }
    builders();
    CHECK(trommel_filter_kind_knows_ranges("surf-real"));
    CHECK(!trommel_filter_kind_knows_ranges("bloom"));
    CHECK(!trommel_filter_kind_knows_ranges("sieve"));
    CHECK(!trommel_filter_kind_knows_ranges(NULL));
    trommel_names *kinds;
    OK(kinds = trommel_filter_kinds(&error));
    CHECK(trommel_names_count(kinds) >= 18);
    for (size_t at = 0; at < trommel_names_count(kinds); at++) {
        all_of_a_kind(trommel_names_get(kinds, at));
    }
    trommel_names_free(kinds);
}
