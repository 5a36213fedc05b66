// All that trommel.hpp has, from C++17. The argument is a folder for the stores, which must be empty.

#include "trommel.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <type_traits>

namespace {

[[noreturn]] void failed(int line, const char *what, const char *more = "") {
    std::fprintf(stderr, "wrapper.cpp:%d: %s %s\n", line, what, more);
    std::exit(1);
}

#define CHECK(...)                                      \
    do {                                                \
        if (!(__VA_ARGS__)) failed(__LINE__, #__VA_ARGS__); \
    } while (0)

template <typename Work>
trommel::Error error_of(int line, Work work) {
    try {
        work();
    } catch (const trommel::Error &error) {
        return error;
    }
    failed(line, "nothing was thrown");
}

#define FAILS(expected, ...)                                                          \
    do {                                                                              \
        auto told = error_of(__LINE__, [&] { (void)(__VA_ARGS__); });                 \
        if (told.code() != (expected)) failed(__LINE__, #__VA_ARGS__, told.what());   \
    } while (0)

bool is(const std::optional<trommel::Value> &value, trommel::Bytes bytes) {
    return value && value->view() == bytes;
}

std::string rows(trommel::Scan scan) {
    std::string all;
    for (const trommel::Row &row : scan)
        all.append(row.key).append("=").append(row.value).append(" ");
    return all;
}

// What has expired goes within a millisecond.
void wait_until_gone(const trommel::Db &db, trommel::Bytes key) {
    while (db.get(key)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

std::string in(const std::string &folder, const char *name) { return folder + "/" + name; }

// Handles move, and are not copied.
template <typename T>
constexpr bool owns = std::is_nothrow_move_constructible_v<T> && std::is_move_assignable_v<T> &&
                      !std::is_copy_constructible_v<T> && !std::is_copy_assignable_v<T>;
static_assert(owns<trommel::Db> && owns<trommel::Value> && owns<trommel::Batch>);
static_assert(owns<trommel::Keyspace> && owns<trommel::Snapshot> && owns<trommel::Transaction>);
static_assert(owns<trommel::Savepoint> && owns<trommel::Options> && owns<trommel::Changes>);
static_assert(owns<trommel::Follower> && owns<trommel::Moment> && owns<trommel::Backups>);
static_assert(owns<trommel::Filter> && owns<trommel::Filter::Builder>);
static_assert(std::is_move_constructible_v<trommel::Scan>);
static_assert(!std::is_copy_constructible_v<trommel::Scan>);

void reads_and_writes(const std::string &folder) {
    trommel::Options options;
    options.set("kept_log_bytes", "64MiB").set("merge_operator", "concat:+").for_now("guard");
    CHECK(options.get("kept_log_bytes") == "64MiB");
    CHECK(trommel::Options::preset("server").get("block_cache_bytes") == "1GiB");
    CHECK(trommel::Options::list().front() == '[');
    FAILS(TROMMEL_OPTION, options.set("colour", "red"));
    FAILS(TROMMEL_OPTION, trommel::Options::preset("toaster"));
    trommel::Db db(in(folder, "db"), options);
    FAILS(TROMMEL_LOCKED, trommel::Db(in(folder, "db")));
    db.put("zug", "47.17 N");
    CHECK(is(db.get("zug"), "47.17 N") && !db.get("bern"));
    db.put("", "");
    CHECK(is(db.get(""), "") && db.get("")->str().empty());
    db.put(trommel::Bytes(), trommel::Bytes());
    db.erase("");
    CHECK(!db.get(""));
    db.put_ttl("short", "x", 0);
    db.put_ttl("long", "x", 3600000);
    wait_until_gone(db, "short");
    CHECK(db.get("long")->expiry() > 0 && db.get("zug")->expiry() == 0);
    db.merge("sum", "1");
    db.merge("sum", "2");
    CHECK(is(db.get("sum"), "1+2"));
    CHECK(!db.put_if_absent("new", "1") && is(db.put_if_absent("new", "2"), "1"));
    std::optional<trommel::Value> found;
    CHECK(db.compare_and_swap("new", "1", "2") && !db.compare_and_swap("new", "1", "3", &found));
    CHECK(is(found, "2") && db.compare_and_swap("new", "2", std::nullopt) && !db.get("new"));
    CHECK(db.compare_and_swap("new", std::nullopt, "", &found) && !found && is(db.get("new"), ""));
    CHECK(db.fetch_add("n", 5) == 0 && db.fetch_add("n", -7) == 5);
    db.erase_range("n", "o");
    CHECK(!db.get("n") && !db.get("new"));

    char buffer[16];
    CHECK(db.get_into("zug", buffer, sizeof buffer) == 7u && !db.get_into("no", buffer, 16));
    auto many = db.multi_get({"long", "no", "zug"});
    CHECK(many.size() == 3 && is(many[0], "x") && !many[1] && is(many[2], "47.17 N"));
    std::vector<std::size_t> lens;
    CHECK(db.multi_get_into({"long", "no"}, buffer, sizeof buffer, lens) == 1);
    CHECK(lens == std::vector<std::size_t>{1, TROMMEL_ABSENT});
    CHECK(db.may_contain(trommel::Range::prefix("z")) && db.count(trommel::Range::all()).most >= 3);
    db.flush();
    CHECK(!db.may_contain(trommel::Range::of("za", "zb")));
    db.sync();
    db.compact();
    db.settle();
    CHECK(db.verify().ok() && db.stats().find("\"guard\"") != std::string::npos);
    db.checkpoint(in(folder, "copy"));
    trommel::Db moved = std::move(db);
    CHECK(is(moved.get("zug"), "47.17 N"));
    moved.close();
    FAILS(TROMMEL_CLOSED, moved.get("zug"));
    CHECK(trommel::repair(in(folder, "copy")).ok());
}

void scans(trommel::Db &db) {
    using trommel::Range;
    for (const char *key : {"a", "b", "ba", "c"}) db.put(key, "1");
    CHECK(rows(db.scan()) == "a=1 b=1 ba=1 c=1 ");
    CHECK(rows(db.scan(Range::of("b", "c"))) == "b=1 ba=1 ");
    CHECK(rows(db.scan(Range().after("b").through("c"))) == "ba=1 c=1 ");
    CHECK(rows(db.scan(Range::prefix("b").reversed())) == "ba=1 b=1 ");
    CHECK(rows(db.scan(Range().to("b").keys_only())) == "a= ");
    // What is said last of an end holds.
    CHECK(rows(db.scan(Range().after("b").from("b").to("c"))) == "b=1 ba=1 ");
    CHECK(rows(db.scan(Range().through("c").to("c"))) == "a=1 b=1 ba=1 ");
    CHECK(rows(db.scan(Range::prefix("b").from("ba"))) == "ba=1 c=1 ");
    trommel::Keyspace loaded = db.make_keyspace("loaded");
    CHECK(db.ingest(trommel::Bytes("\1\0\0\0\1\0\0\0k1", 10), loaded) == 1);
    CHECK(is(db.get("k", loaded), "1"));
    db.drop_keyspace("loaded");
    trommel::Scan scan = db.scan();
    scan.seek("b");
    CHECK(scan.next()->key == "b");
    scan.seek("bb");
    CHECK(scan.next()->key == "c" && !scan.next());
    scan = db.scan(Range::all().reversed());
    CHECK(scan.next()->key == "c");
    scan.seek("b");
    CHECK(scan.next()->key == "b");
    // More rows than one buffer has, and one that is longer than it.
    trommel::Keyspace long_rows = db.make_keyspace("long rows");
    trommel::Batch batch;
    std::string value(100000, 'v');
    for (int at = 0; at < 2000; ++at) batch.put(std::to_string(10000 + at), "short", long_rows);
    batch.put("10500x", value, long_rows);
    db.write(batch);
    std::size_t count = 0, longest = 0;
    std::string last;
    for (auto row : db.scan(Range::all(), long_rows)) {
        CHECK(last < row.key);
        last = row.key;
        longest = std::max(longest, row.value.size());
        ++count;
    }
    CHECK(count == 2001 && longest == value.size());
    trommel::Scan moved = db.scan(Range::all(), long_rows);
    CHECK(moved.next()->key == "10000");
    moved.seek("11999");
    trommel::Scan other = std::move(moved);
    FAILS(TROMMEL_ARGUMENT, moved.next());
    CHECK(other.next()->key == "11999" && !other.next());
}

void keyspaces_and_snapshots(trommel::Db &db) {
    trommel::Keyspace events = db.make_keyspace("events", trommel::Options());
    CHECK(events.name() == "events" && trommel::Keyspace().name() == "default");
    trommel::Keyspace given = std::move(events);
    bool is_refused = false;
    try {
        db.erase_range("", "\xff", events);  // not those of the default key space
    } catch (const std::logic_error &) {
        is_refused = true;
    }
    CHECK(is_refused && given.name() == "events");
    events = std::move(given);
    db.put("k", "1", events);
    trommel::Snapshot then = db.snapshot();
    db.put("k", "2", events);
    CHECK(is(then.get("k", events), "1") && !then.get("k") && is(db.get("k", events), "2"));
    char buffer[4];
    std::vector<std::size_t> lens;
    CHECK(then.get_into("k", buffer, 4, events) == 1u && then.sequence() > 0);
    CHECK(is(then.multi_get({"k"}, events)[0], "1"));
    CHECK(then.multi_get_into({"k"}, buffer, 4, lens, events) == 1 && lens[0] == 1);
    CHECK(rows(then.scan(trommel::Range::all(), events)) == "k=1 ");
    CHECK(then.may_contain(trommel::Range::prefix("k"), events));
    CHECK(then.count(trommel::Range::all(), events).most >= 1);
    db.rename_keyspace("events", "days");
    CHECK(is(db.get("k", db.keyspace("days")), "2"));
    FAILS(TROMMEL_NO_KEYSPACE, db.keyspace("events"));
    CHECK(db.keyspaces().size() == 3 && db.keyspaces()[0] == "default");
    db.drop_keyspace("days");
    auto thrown = error_of(__LINE__, [&] { db.put("k", "3", events); });
    CHECK(thrown.code() == TROMMEL_KEYSPACE_DROPPED && !thrown.is_retryable());

    trommel::Batch batch;
    CHECK(batch.empty());
    batch.put("ba", "2").put_ttl("bb", "x", 0).merge("bc", "1").erase("c").erase_range("d", "e");
    batch.only_if("ba", "1").only_if("bd", std::nullopt);
    CHECK(batch.size() == 5);
    db.write(batch, true);
    wait_until_gone(db, "bb");
    CHECK(is(db.get("ba"), "2") && is(db.get("bc"), "1") && !db.get("c"));
    batch.only_if("ba", "1").put("ba", "3");
    thrown = error_of(__LINE__, [&] { db.write(batch); });
    CHECK(thrown.code() == TROMMEL_CONFLICT && thrown.key() == "ba" && thrown.keyspace() == 0);
    CHECK(thrown.is_retryable() && !thrown.tells_of_damage());
    batch.put("x", "x");
    batch.clear();
    CHECK(batch.empty());
    FAILS(TROMMEL_MALFORMED, trommel::Batch::from_packed("\x01"));
    CHECK(trommel::Batch::from_packed(trommel::Bytes("\2\1\0\0\0\0\0\0\0a", 10)).size() == 1);
}

void transactions(trommel::Db &db) {
    db.put("ann", "70");
    int left = db.run([](trommel::Transaction &tx) {
        int money = std::stoi(tx.get_for_update("ann")->str()) - 20;
        tx.put("ann", std::to_string(money));
        tx.put("bob", "20");
        return money;
    });
    CHECK(left == 50 && is(db.get("bob"), "20"));
    trommel::Transaction own = db.transaction(TROMMEL_SNAPSHOT_ISOLATION);
    own.put("cleo", "1");
    trommel::Savepoint place = own.savepoint();
    own.erase("cleo");
    own.put_ttl("dora", "1", 0);
    own.merge("emil", "1");
    own.erase_range("a", "b");
    CHECK(!own.get("ann") && rows(own.scan(trommel::Range::prefix("emil"))) == "emil=1 ");
    own.roll_back_to(place);
    CHECK(is(own.get("ann"), "50") && is(own.get("cleo"), "1") && !own.get("emil"));
    CHECK(own.commit(true) > 0 && is(db.get("cleo"), "1"));
    FAILS(TROMMEL_ENDED, own.commit());
    { db.transaction().put("never", "1"); }
    CHECK(!db.get("never"));
    // Each of several threads adds, and none is lost.
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 3; ++thread) {
        threads.emplace_back([&db] {
            for (int at = 0; at < 20; ++at) {
                db.run([](trommel::Transaction &tx) {
                    auto old = tx.get("visits");
                    tx.put("visits", std::to_string((old ? std::stoi(old->str()) : 0) + 1));
                });
            }
        });
    }
    for (std::thread &thread : threads) thread.join();
    CHECK(is(db.get("visits"), "60"));
    // What the work throws comes out, and nothing is written.
    bool came_out = false;
    try {
        db.run([](trommel::Transaction &tx) {
            tx.put("never", "1");
            throw std::logic_error("no");
        });
    } catch (const std::logic_error &) {
        came_out = true;
    }
    CHECK(came_out && !db.get("never"));
}

void feeds_followers_backups(const std::string &folder) {
    trommel::Options options;
    options.set("kept_log_bytes", "64MiB");
    trommel::Db db(in(folder, "fed"), options);
    std::uint64_t begin = db.snapshot().sequence();
    db.put("k", "1");
    db.sync();
    trommel::Changes changes = db.changes_since(begin);
    std::optional<trommel::Change> change = changes.next();
    CHECK(change && change->key() == "k" && change->value() == "1" && change->ends_batch());
    CHECK(change->kind() == TROMMEL_CHANGE_PUT && change->keyspace() == 0);
    CHECK(change->keyspace_name() == "default" && change->expiry() == 0);
    CHECK(change->sequence() > begin && !changes.next());

    trommel::Follower follower(in(folder, "fed"));
    db.put("k", "2");
    db.make_keyspace("events");
    db.flush();
    CHECK(follower.catch_up() && is(follower.snapshot().get("k"), "2"));
    CHECK(is(follower.moment().snapshot().get("k"), "2") && follower.moment().sequence() > 0);
    CHECK(!follower.snapshot("events").get("k") && !follower.moment().snapshot("events").get("k"));
    CHECK(follower.keyspaces().size() == 2 && follower.verify().ok());
    std::optional<std::string> failure = "x";
    CHECK(follower.staleness(&failure).sequence > 0 && !failure);
    CHECK(follower.stats().front() == '{' && follower.stats("events").front() == '{');
    follower.checkpoint(in(folder, "followed"));
    follower.close();
    FAILS(TROMMEL_CLOSED, follower.catch_up());
    trommel::Follower with_options(in(folder, "followed"), options, 10);
    CHECK(is(with_options.snapshot().get("k"), "2"));

    trommel::Backups backups(in(folder, "backups"));
    std::uint64_t first = backups.create(db);
    db.put("k", "3");
    backups.create(db);
    CHECK(backups.verify(first).ok() && backups.list().front() == '[');
    backups.restore(first, in(folder, "restored"));
    CHECK(is(trommel::Db(in(folder, "restored")).get("k"), "2"));
    CHECK(backups.prune(1) == 1);
    FAILS(TROMMEL_FILE_MISSING, backups.verify(first));
}

void filters() {
    std::vector<trommel::Bytes> keys{"bern", "chur", "zug"};
    for (const std::string &kind : trommel::Filter::kinds()) {
        trommel::Value bytes = trommel::Filter::build(kind, 14, keys);
        trommel::Filter filter(bytes.view(), kind);
        for (trommel::Bytes key : keys) CHECK(filter.may_contain(key) && filter.may_contain(key, key));
        CHECK(filter.kind() == kind && filter.size() > 0 && filter.may_contain("", std::nullopt));
    }
    trommel::Filter::Builder builder("surf-real", 14, trommel::Options());
    FAILS(TROMMEL_UNSORTED, builder.add("b").add("a"));
    trommel::Value bytes = builder.add("z").finish();
    trommel::Filter filter(bytes.view());
    CHECK(filter.may_contain("b") && filter.may_contain("z") && !filter.may_contain("c", "y"));
    CHECK(trommel::Filter::knows_ranges("surf-real") && !trommel::Filter::knows_ranges("bloom"));
    FAILS(TROMMEL_NO_FILTER, trommel::Filter("hostile"));
    FAILS(TROMMEL_ARGUMENT, trommel::Filter::Builder("sieve", 14));
}

}  // namespace

int main(int count, char **arguments) {
    if (count != 2) failed(__LINE__, "usage: wrapper FOLDER");
    std::string folder = arguments[1];
    CHECK(trommel::fits() && trommel::version() == "0.2.0");
    reads_and_writes(folder);
    trommel::Options options;
    options.set("merge_operator", "concat:+");
    trommel::Db db(in(folder, "more"), options);
    scans(db);
    keyspaces_and_snapshots(db);
    transactions(db);
    db.close();
    feeds_followers_backups(folder);
    filters();
    std::printf("6 passed, 0 failed\n");
}
