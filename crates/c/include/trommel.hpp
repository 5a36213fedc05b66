// Trommel for C++17: owning handles and exceptions over trommel.h. Header only; link the library.
//
//   trommel::Db db("words");
//   db.put("drum", "turns");
//   if (auto value = db.get("drum")) std::cout << value->view();
//   for (auto row : db.scan()) std::cout << row.key << row.value;
//
// A handle frees itself. An error is a trommel::Error. Keys and values are std::string_view, of any
// bytes. Threads: as trommel.h says of each function.

#ifndef TROMMEL_HPP
#define TROMMEL_HPP

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "trommel.h"

namespace trommel {

/// Bytes of a key or a value.
using Bytes = std::string_view;

namespace detail {

template <auto release>
struct Release {
    template <typename T>
    void operator()(T *handle) const noexcept {
        release(handle);
    }
};

/// A handle that frees itself.
template <typename T, auto release>
using Owner = std::unique_ptr<T, Release<release>>;

// No bytes are a pointer too, where NULL would mean that there is no value.
inline const void *data(Bytes bytes) noexcept { return bytes.data() ? bytes.data() : ""; }

inline Bytes bytes(const void *data, std::size_t len) noexcept {
    return Bytes(static_cast<const char *>(data), len);
}

}  // namespace detail

/// Why a call has failed.
class Error : public std::runtime_error {
  public:
    explicit Error(const trommel_error *error)
        : std::runtime_error(trommel_error_message(error)),
          code_(trommel_error_code(error)),
          keyspace_(trommel_error_keyspace(error)),
          damage_(trommel_error_tells_of_damage(error)) {
        std::size_t len = 0;
        const void *key = trommel_error_key(error, &len);
        if (key) key_ = std::string(static_cast<const char *>(key), len);
    }

    /// One of the constants of trommel.h, such as TROMMEL_CONFLICT.
    std::uint32_t code() const noexcept { return code_; }
    /// The key that it is about, if there is one.
    const std::optional<std::string> &key() const noexcept { return key_; }
    /// The number of that key's key space.
    std::uint32_t keyspace() const noexcept { return keyspace_; }
    /// Whether bytes are wrong, or a file is missing.
    bool tells_of_damage() const noexcept { return damage_; }
    /// Whether a transaction is to be run again.
    bool is_retryable() const noexcept {
        return code_ == TROMMEL_CONFLICT || code_ == TROMMEL_DEADLOCK;
    }

  private:
    std::uint32_t code_;
    std::uint32_t keyspace_;
    bool damage_;
    std::optional<std::string> key_;
};

namespace detail {

/// The place for an error of one call; `check` throws it.
class Place {
  public:
    Place() = default;
    Place(const Place &) = delete;
    Place &operator=(const Place &) = delete;
    ~Place() { trommel_error_free(error_); }

    operator trommel_error **() noexcept { return &error_; }

    template <typename T>
    T check(T given) const {
        if (!given && error_) throw Error(error_);
        return given;
    }

  private:
    trommel_error *error_ = nullptr;
};

inline std::string take(char *text) {
    Owner<char, &trommel_text_free> owner(text);
    return std::string(owner.get());
}

inline std::vector<std::string> take(trommel_names *names) {
    Owner<trommel_names, &trommel_names_free> owner(names);
    std::vector<std::string> all;
    for (std::size_t at = 0; at < trommel_names_count(names); ++at)
        all.emplace_back(trommel_names_get(names, at));
    return all;
}

inline std::vector<trommel_bytes> list(const std::vector<Bytes> &keys) {
    std::vector<trommel_bytes> all;
    all.reserve(keys.size());
    for (Bytes key : keys) all.push_back({data(key), key.size()});
    return all;
}

}  // namespace detail

/// Whether this header and the library are of one kind. A program asks it once.
inline bool fits() noexcept { return trommel_abi_version() == TROMMEL_ABI_VERSION; }

/// The version of Trommel.
inline std::string version() { return trommel_version(); }

/// A value where it lies in the store's memory. It is cheap to move, and keeps a block in memory.
class Value {
  public:
    explicit Value(trommel_value *value) noexcept : value_(value) {}

    const char *data() const noexcept {
        return static_cast<const char *>(trommel_value_data(value_.get()));
    }
    std::size_t size() const noexcept { return trommel_value_len(value_.get()); }
    /// Its bytes, as long as the value lives.
    Bytes view() const noexcept { return Bytes(data(), size()); }
    std::string str() const { return std::string(view()); }
    /// When it expires, in milliseconds since the start of 1970; 0: it does not.
    std::uint64_t expiry() const noexcept { return trommel_value_expiry(value_.get()); }

  private:
    detail::Owner<trommel_value, &trommel_value_free> value_;
};

namespace detail {

inline std::optional<Value> value_if(trommel_value *value) {
    if (!value) return std::nullopt;
    return std::optional<Value>(Value(value));
}

inline std::vector<std::optional<Value>> values(const std::vector<trommel_value *> &raw) {
    std::vector<std::optional<Value>> all;
    all.reserve(raw.size());
    for (trommel_value *value : raw) all.push_back(value_if(value));
    return all;
}

}  // namespace detail

/// A range of keys. What it is made of must live until the call that takes it has returned.
class Range {
  public:
    /// All keys.
    static Range all() noexcept { return Range(); }
    /// From `from` on and before `to`.
    static Range of(Bytes from, Bytes to) noexcept { return Range().from(from).to(to); }
    /// All keys that begin with some bytes.
    static Range prefix(Bytes prefix) noexcept {
        Range range = Range().from(prefix);
        range.flags_ |= TROMMEL_PREFIX;
        return range;
    }

    Range from(Bytes key) const noexcept { return begin(key, 0); }
    Range after(Bytes key) const noexcept { return begin(key, TROMMEL_FROM_EXCLUDED); }
    Range to(Bytes key) const noexcept { return end(key, 0); }
    Range through(Bytes key) const noexcept { return end(key, TROMMEL_TO_INCLUDED); }
    /// Of a scan: from the last key to the first.
    Range reversed() const noexcept { return with(TROMMEL_REVERSE); }
    /// Of a scan: values are not read.
    Range keys_only() const noexcept { return with(TROMMEL_KEYS_ONLY); }

    const trommel_range *get() const noexcept { return &range_; }
    std::uint32_t flags() const noexcept { return flags_; }

  private:
    Range with(std::uint32_t flag) const noexcept {
        Range range = *this;
        range.flags_ |= flag;
        return range;
    }
    Range begin(Bytes key, std::uint32_t flag) const noexcept {
        Range range = *this;
        range.flags_ &= ~std::uint32_t(TROMMEL_FROM_EXCLUDED | TROMMEL_PREFIX);
        range.flags_ |= flag;
        range.range_.from = detail::data(key);
        range.range_.from_len = key.size();
        return range;
    }
    Range end(Bytes key, std::uint32_t flag) const noexcept {
        Range range = *this;
        range.flags_ &= ~std::uint32_t(TROMMEL_TO_INCLUDED);
        range.flags_ |= flag;
        range.range_.to = detail::data(key);
        range.range_.to_len = key.size();
        return range;
    }

    trommel_range range_{nullptr, 0, nullptr, 0};
    std::uint32_t flags_ = 0;
};

/// A row of a scan. Its bytes lie in the scan until the next row is asked for.
struct Row {
    Bytes key;
    Bytes value;
};

/// The rows of a range, once, in order: `for (auto row : scan)`. Many rows come with each call.
class Scan {
  public:
    Scan(trommel_scan *scan, bool reversed) noexcept : scan_(scan), reversed_(reversed) {}
    Scan(Scan &&other) noexcept
        : scan_(std::move(other.scan_)), reversed_(other.reversed_), buffer_(std::move(other.buffer_)),
          at_(std::exchange(other.at_, 0)), filled_(std::exchange(other.filled_, 0)) {}
    Scan &operator=(Scan &&other) noexcept {
        scan_ = std::move(other.scan_);
        reversed_ = other.reversed_;
        buffer_ = std::move(other.buffer_);
        at_ = std::exchange(other.at_, 0);
        filled_ = std::exchange(other.filled_, 0);
        return *this;
    }

    /// The next row; none: it has ended. It lies in the scan until the next call.
    std::optional<Row> next() {
        if (at_ == filled_ && !fill()) return std::nullopt;
        return read(at_);
    }

    /// Goes on at a key. A scan goes one way: to a key that it has passed it does not come back.
    void seek(Bytes key) {
        while (at_ < filled_) {
            std::size_t behind = at_;
            Row row = read(behind);
            if (reversed_ ? row.key <= key : row.key >= key) return;
            at_ = behind;
        }
        detail::Place error;
        error.check(trommel_scan_seek(scan_.get(), detail::data(key), key.size(), error));
    }

    class Iterator {
      public:
        using iterator_category = std::input_iterator_tag;
        using value_type = Row;
        using difference_type = std::ptrdiff_t;
        using pointer = const Row *;
        using reference = const Row &;

        Iterator() = default;
        explicit Iterator(Scan &scan) : scan_(&scan), row_(scan.next()) {}

        reference operator*() const { return *row_; }
        pointer operator->() const { return &*row_; }
        Iterator &operator++() {
            row_ = scan_->next();
            return *this;
        }
        void operator++(int) { ++*this; }
        friend bool operator==(const Iterator &one, const Iterator &other) {
            return one.row_.has_value() == other.row_.has_value();
        }
        friend bool operator!=(const Iterator &one, const Iterator &other) {
            return !(one == other);
        }

      private:
        Scan *scan_ = nullptr;
        std::optional<Row> row_;
    };

    Iterator begin() { return Iterator(*this); }
    Iterator end() { return Iterator(); }

  private:
    // Short scans take little memory, long ones few calls.
    static constexpr std::size_t kBufferMin = std::size_t(1) << 12;
    static constexpr std::size_t kBufferMax = std::size_t(1) << 16;

    Row read(std::size_t &place) const {
        const void *key = nullptr, *value = nullptr;
        std::size_t key_len = 0, value_len = 0;
        trommel_row(buffer_.data(), filled_, &place, &key, &key_len, &value, &value_len);
        return Row{detail::bytes(key, key_len), detail::bytes(value, value_len)};
    }

    bool fill() {
        if (buffer_.empty())
            buffer_.resize(kBufferMin);
        else if (buffer_.size() < kBufferMax)
            buffer_.resize(buffer_.size() * 2);
        for (;;) {
            std::size_t rows = 0, len = 0;
            at_ = filled_ = 0;
            detail::Place error;
            error.check(trommel_scan_next(scan_.get(), buffer_.data(), buffer_.size(), &len,
                                          &rows, error));
            if (rows > 0) {
                filled_ = len;
                return true;
            }
            if (len == 0) return false;
            buffer_.resize(len);
        }
    }

    detail::Owner<trommel_scan, &trommel_scan_free> scan_;
    bool reversed_;
    std::vector<char> buffer_;
    std::size_t at_ = 0;
    std::size_t filled_ = 0;
};

/// Options by name and text.
class Options {
  public:
    Options() : options_(trommel_options_new()) {
        if (!options_) throw std::bad_alloc();
    }
    /// For a kind of machine: "server", "small-device", "many-stores".
    static Options preset(const std::string &name) {
        detail::Place error;
        return Options(error.check(trommel_options_preset(name.c_str(), error)));
    }
    /// All of them, as JSON.
    static std::string list() {
        detail::Place error;
        return detail::take(error.check(trommel_options_list(error)));
    }

    Options &set(const std::string &name, const std::string &value) {
        detail::Place error;
        error.check(trommel_options_set(get(), name.c_str(), value.c_str(), error));
        return *this;
    }
    /// Has an option hold for one opening alone.
    Options &for_now(const std::string &name) {
        detail::Place error;
        error.check(trommel_options_for_now(get(), name.c_str(), error));
        return *this;
    }
    std::string get(const std::string &name) const {
        detail::Place error;
        return detail::take(error.check(trommel_options_get(get(), name.c_str(), error)));
    }
    trommel_options *get() const noexcept { return options_.get(); }

  private:
    explicit Options(trommel_options *options) noexcept : options_(options) {}

    detail::Owner<trommel_options, &trommel_options_free> options_;
};

/// A key space of a store. One that is made without arguments is the default one of any store. One
/// that was moved from is none: using it throws `std::logic_error`.
class Keyspace {
  public:
    Keyspace() = default;
    explicit Keyspace(trommel_keyspace *keyspace) noexcept
        : keyspace_(keyspace), is_default_(false) {}
    Keyspace(Keyspace &&other) noexcept
        : keyspace_(std::move(other.keyspace_)),
          is_default_(std::exchange(other.is_default_, false)) {}
    Keyspace &operator=(Keyspace &&other) noexcept {
        keyspace_ = std::move(other.keyspace_);
        is_default_ = std::exchange(other.is_default_, false);
        return *this;
    }

    /// Its name, as it is now.
    std::string name() const {
        if (is_default_) return "default";
        detail::Place error;
        return detail::take(error.check(trommel_keyspace_name(get(), error)));
    }
    trommel_keyspace *get() const {
        // To C, none is the default one.
        if (!keyspace_ && !is_default_) throw std::logic_error("a key space that was moved from");
        return keyspace_.get();
    }

  private:
    detail::Owner<trommel_keyspace, &trommel_keyspace_free> keyspace_;
    bool is_default_ = true;
};

namespace detail {
/// Where a call names no key space.
inline const Keyspace &main() {
    static const Keyspace keyspace;
    return keyspace;
}
}  // namespace detail

/// Writes that are applied together.
class Batch {
  public:
    Batch() : batch_(trommel_batch_new()) {
        if (!batch_) throw std::bad_alloc();
    }
    /// Of packed writes: see trommel_batch_from_packed.
    static Batch from_packed(Bytes bytes) {
        detail::Place error;
        return Batch(
            error.check(trommel_batch_from_packed(detail::data(bytes), bytes.size(), error)));
    }

    Batch &put(Bytes key, Bytes value, const Keyspace &in = detail::main()) {
        detail::Place error;
        error.check(trommel_batch_put(get(), in.get(), detail::data(key), key.size(),
                                      detail::data(value), value.size(), error));
        return *this;
    }
    Batch &put_ttl(Bytes key, Bytes value, std::uint64_t milliseconds,
                   const Keyspace &in = detail::main()) {
        detail::Place error;
        error.check(trommel_batch_put_ttl(get(), in.get(), detail::data(key), key.size(),
                                          detail::data(value), value.size(), milliseconds,
                                          error));
        return *this;
    }
    Batch &merge(Bytes key, Bytes operand, const Keyspace &in = detail::main()) {
        detail::Place error;
        error.check(trommel_batch_merge(get(), in.get(), detail::data(key), key.size(),
                                        detail::data(operand), operand.size(), error));
        return *this;
    }
    Batch &erase(Bytes key, const Keyspace &in = detail::main()) {
        detail::Place error;
        error.check(
            trommel_batch_delete(get(), in.get(), detail::data(key), key.size(), error));
        return *this;
    }
    Batch &erase_range(Bytes from, Bytes to, const Keyspace &in = detail::main()) {
        detail::Place error;
        error.check(trommel_batch_delete_range(get(), in.get(), detail::data(from), from.size(),
                                               detail::data(to), to.size(), error));
        return *this;
    }
    /// It is written only if the key then has this value; none: only if it has none.
    Batch &only_if(Bytes key, std::optional<Bytes> value, const Keyspace &in = detail::main()) {
        detail::Place error;
        error.check(trommel_batch_only_if(get(), in.get(), detail::data(key), key.size(),
                                          value ? detail::data(*value) : nullptr,
                                          value ? value->size() : 0, error));
        return *this;
    }
    std::size_t size() const noexcept { return trommel_batch_count(get()); }
    bool empty() const noexcept { return size() == 0; }
    void clear() noexcept { trommel_batch_clear(get()); }
    trommel_batch *get() const noexcept { return batch_.get(); }

  private:
    explicit Batch(trommel_batch *batch) noexcept : batch_(batch) {}

    detail::Owner<trommel_batch, &trommel_batch_free> batch_;
};

/// A store at one moment, or a key space of a follower.
class Snapshot {
  public:
    explicit Snapshot(trommel_snapshot *snapshot) noexcept : snapshot_(snapshot) {}

    std::uint64_t sequence() const noexcept { return trommel_snapshot_sequence(get()); }
    std::optional<Value> get(Bytes key, const Keyspace &in = detail::main()) const {
        detail::Place error;
        trommel_value *value = nullptr;
        error.check(trommel_snapshot_get(get(), in.get(), detail::data(key), key.size(), &value,
                                         error));
        return detail::value_if(value);
    }
    /// Copies a value that has room in a buffer. Its length; none: there is no value.
    std::optional<std::size_t> get_into(Bytes key, void *buffer, std::size_t capacity,
                                        const Keyspace &in = detail::main()) const {
        detail::Place error;
        std::size_t len = 0;
        error.check(trommel_snapshot_get_into(get(), in.get(), detail::data(key), key.size(),
                                              buffer, capacity, &len, error));
        if (len == TROMMEL_ABSENT) return std::nullopt;
        return len;
    }
    std::vector<std::optional<Value>> multi_get(const std::vector<Bytes> &keys,
                                                const Keyspace &in = detail::main()) const {
        detail::Place error;
        std::vector<trommel_value *> values(keys.size());
        error.check(trommel_snapshot_multi_get(get(), in.get(), detail::list(keys).data(),
                                               keys.size(), values.data(), error));
        return detail::values(values);
    }
    /// As trommel_snapshot_multi_get_into: lengths, and that of all together.
    std::size_t multi_get_into(const std::vector<Bytes> &keys, void *buffer, std::size_t capacity,
                               std::vector<std::size_t> &lens,
                               const Keyspace &in = detail::main()) const {
        detail::Place error;
        std::size_t len = 0;
        lens.resize(keys.size());
        error.check(trommel_snapshot_multi_get_into(get(), in.get(), detail::list(keys).data(),
                                                    keys.size(), buffer, capacity, lens.data(),
                                                    &len, error));
        return len;
    }
    Scan scan(const Range &range = Range::all(), const Keyspace &in = detail::main()) const {
        detail::Place error;
        return Scan(error.check(trommel_snapshot_scan(get(), in.get(), range.get(), range.flags(),
                                                      error)),
                    range.flags() & TROMMEL_REVERSE);
    }
    bool may_contain(const Range &range, const Keyspace &in = detail::main()) const {
        detail::Place error;
        bool may = true;
        error.check(trommel_snapshot_may_contain_range(get(), in.get(), range.get(),
                                                       range.flags(), &may, error));
        return may;
    }
    trommel_count count(const Range &range, const Keyspace &in = detail::main()) const {
        detail::Place error;
        trommel_count count{};
        error.check(trommel_snapshot_approximate_count(get(), in.get(), range.get(),
                                                       range.flags(), &count, error));
        return count;
    }
    trommel_snapshot *get() const noexcept { return snapshot_.get(); }

  private:
    detail::Owner<trommel_snapshot, &trommel_snapshot_free> snapshot_;
};

/// A place to which a transaction's writes can go back.
class Savepoint {
  public:
    explicit Savepoint(trommel_savepoint *savepoint) noexcept : savepoint_(savepoint) {}
    trommel_savepoint *get() const noexcept { return savepoint_.get(); }

  private:
    detail::Owner<trommel_savepoint, &trommel_savepoint_free> savepoint_;
};

/// Reads of one moment and writes on top. Gone without a commit, nothing of it is written.
class Transaction {
  public:
    explicit Transaction(trommel_transaction *transaction) noexcept : transaction_(transaction) {}

    std::optional<Value> get(Bytes key, const Keyspace &in = detail::main()) const {
        detail::Place error;
        trommel_value *value = nullptr;
        error.check(trommel_transaction_get(get(), in.get(), detail::data(key), key.size(),
                                            &value, error));
        return detail::value_if(value);
    }
    /// Locks a key until the transaction ends, and gives its newest value.
    std::optional<Value> get_for_update(Bytes key, const Keyspace &in = detail::main()) const {
        detail::Place error;
        trommel_value *value = nullptr;
        error.check(trommel_transaction_get_for_update(get(), in.get(), detail::data(key),
                                                       key.size(), &value, error));
        return detail::value_if(value);
    }
    void put(Bytes key, Bytes value, const Keyspace &in = detail::main()) {
        detail::Place error;
        error.check(trommel_transaction_put(get(), in.get(), detail::data(key), key.size(),
                                            detail::data(value), value.size(), error));
    }
    void put_ttl(Bytes key, Bytes value, std::uint64_t milliseconds,
                 const Keyspace &in = detail::main()) {
        detail::Place error;
        error.check(trommel_transaction_put_ttl(get(), in.get(), detail::data(key), key.size(),
                                                detail::data(value), value.size(), milliseconds,
                                                error));
    }
    void merge(Bytes key, Bytes operand, const Keyspace &in = detail::main()) {
        detail::Place error;
        error.check(trommel_transaction_merge(get(), in.get(), detail::data(key), key.size(),
                                              detail::data(operand), operand.size(), error));
    }
    void erase(Bytes key, const Keyspace &in = detail::main()) {
        detail::Place error;
        error.check(
            trommel_transaction_delete(get(), in.get(), detail::data(key), key.size(), error));
    }
    void erase_range(Bytes from, Bytes to, const Keyspace &in = detail::main()) {
        detail::Place error;
        error.check(trommel_transaction_delete_range(get(), in.get(), detail::data(from),
                                                     from.size(), detail::data(to), to.size(),
                                                     error));
    }
    /// What it sees now. The scan must be gone before the commit.
    Scan scan(const Range &range = Range::all(), const Keyspace &in = detail::main()) const {
        detail::Place error;
        return Scan(error.check(trommel_transaction_scan(get(), in.get(), range.get(),
                                                         range.flags(), error)),
                    range.flags() & TROMMEL_REVERSE);
    }
    Savepoint savepoint() const {
        detail::Place error;
        return Savepoint(error.check(trommel_transaction_savepoint(get(), error)));
    }
    void roll_back_to(const Savepoint &savepoint) {
        detail::Place error;
        error.check(trommel_transaction_roll_back_to(get(), savepoint.get(), error));
    }
    /// Writes all of it or nothing. The number of its last write.
    std::uint64_t commit(bool synced = false) {
        detail::Place error;
        std::uint64_t sequence = 0;
        error.check(trommel_transaction_commit(get(), synced, &sequence, error));
        return sequence;
    }
    trommel_transaction *get() const noexcept { return transaction_.get(); }

  private:
    detail::Owner<trommel_transaction, &trommel_transaction_free> transaction_;
};

/// A change of a feed. Its bytes lie in the feed until the next one is asked for.
class Change {
  public:
    explicit Change(const trommel_change &change) noexcept : change_(change) {}

    std::uint64_t sequence() const noexcept { return change_.sequence; }
    /// One of TROMMEL_CHANGE_PUT and its neighbours.
    std::uint32_t kind() const noexcept { return change_.kind; }
    Bytes key() const noexcept { return detail::bytes(change_.key, change_.key_len); }
    Bytes value() const noexcept { return detail::bytes(change_.value, change_.value_len); }
    std::uint64_t expiry() const noexcept { return change_.expiry; }
    std::uint32_t keyspace() const noexcept { return change_.keyspace; }
    /// None: the key space was dropped before.
    std::optional<Bytes> keyspace_name() const noexcept {
        if (!change_.keyspace_name) return std::nullopt;
        return Bytes(change_.keyspace_name, change_.keyspace_name_len);
    }
    bool ends_batch() const noexcept { return change_.ends_batch; }

  private:
    trommel_change change_;
};

/// All committed writes, in their order.
class Changes {
  public:
    explicit Changes(trommel_changes *changes) noexcept : changes_(changes) {}

    /// The next one; none: there is nothing more now.
    std::optional<Change> next() {
        detail::Place error;
        trommel_change change{};
        error.check(trommel_changes_next(changes_.get(), &change, error));
        if (change.kind == TROMMEL_CHANGE_NONE) return std::nullopt;
        return Change(change);
    }

  private:
    detail::Owner<trommel_changes, &trommel_changes_free> changes_;
};

/// A report as JSON, and how many entries it has of what is wrong.
struct Report {
    std::string json;
    std::size_t wrong;
    bool ok() const noexcept { return wrong == 0; }
};

/// An open store. It is closed when it goes; close() tells what went wrong.
class Db {
  public:
    explicit Db(const std::string &folder) : Db(folder, nullptr) {}
    Db(const std::string &folder, const Options &options) : Db(folder, options.get()) {}

    void close() {
        detail::Place error;
        error.check(trommel_close(get(), error));
    }

    void put(Bytes key, Bytes value, const Keyspace &in = detail::main()) {
        detail::Place error;
        error.check(trommel_put(get(), in.get(), detail::data(key), key.size(),
                                detail::data(value), value.size(), error));
    }
    void put_ttl(Bytes key, Bytes value, std::uint64_t milliseconds,
                 const Keyspace &in = detail::main()) {
        detail::Place error;
        error.check(trommel_put_ttl(get(), in.get(), detail::data(key), key.size(),
                                    detail::data(value), value.size(), milliseconds, error));
    }
    void merge(Bytes key, Bytes operand, const Keyspace &in = detail::main()) {
        detail::Place error;
        error.check(trommel_merge(get(), in.get(), detail::data(key), key.size(),
                                  detail::data(operand), operand.size(), error));
    }
    void erase(Bytes key, const Keyspace &in = detail::main()) {
        detail::Place error;
        error.check(trommel_delete(get(), in.get(), detail::data(key), key.size(), error));
    }
    void erase_range(Bytes from, Bytes to, const Keyspace &in = detail::main()) {
        detail::Place error;
        error.check(trommel_delete_range(get(), in.get(), detail::data(from), from.size(),
                                         detail::data(to), to.size(), error));
    }
    /// Sets a key that has no value. The value that it has; none: it was set.
    std::optional<Value> put_if_absent(Bytes key, Bytes value,
                                       const Keyspace &in = detail::main()) {
        detail::Place error;
        bool was_set = false;
        trommel_value *existing = nullptr;
        error.check(trommel_put_if_absent(get(), in.get(), detail::data(key), key.size(),
                                          detail::data(value), value.size(), &was_set, &existing,
                                          error));
        return detail::value_if(existing);
    }
    /// Sets or deletes (`value` is none) a key that has what is expected. Whether it had that;
    /// `found`: what it has else.
    bool compare_and_swap(Bytes key, std::optional<Bytes> expected, std::optional<Bytes> value,
                          std::optional<Value> *found = nullptr,
                          const Keyspace &in = detail::main()) {
        detail::Place error;
        bool swapped = false;
        trommel_value *other = nullptr;
        error.check(trommel_compare_and_swap(
            get(), in.get(), detail::data(key), key.size(),
            expected ? detail::data(*expected) : nullptr, expected ? expected->size() : 0,
            value ? detail::data(*value) : nullptr, value ? value->size() : 0, &swapped, &other,
            error));
        std::optional<Value> has = detail::value_if(other);
        if (found) *found = std::move(has);
        return swapped;
    }
    /// Adds to a counter of 8 bytes. What it was before.
    std::int64_t fetch_add(Bytes key, std::int64_t add, const Keyspace &in = detail::main()) {
        detail::Place error;
        std::int64_t before = 0;
        error.check(trommel_fetch_add(get(), in.get(), detail::data(key), key.size(), add,
                                      &before, error));
        return before;
    }
    /// Writes packed rows whose keys ascend as one run: see trommel_ingest. How many there were.
    std::uint64_t ingest(Bytes rows, const Keyspace &in = detail::main()) {
        detail::Place error;
        std::uint64_t count = 0;
        error.check(trommel_ingest(get(), in.get(), detail::data(rows), rows.size(), &count,
                                   error));
        return count;
    }
    /// Applies a batch, which is empty then.
    void write(Batch &batch, bool synced = false) {
        detail::Place error;
        error.check(trommel_write(get(), batch.get(), synced, error));
    }

    std::optional<Value> get(Bytes key, const Keyspace &in = detail::main()) const {
        detail::Place error;
        trommel_value *value = nullptr;
        error.check(
            trommel_get(get(), in.get(), detail::data(key), key.size(), &value, error));
        return detail::value_if(value);
    }
    /// Copies a value that has room in a buffer. Its length; none: there is no value.
    std::optional<std::size_t> get_into(Bytes key, void *buffer, std::size_t capacity,
                                        const Keyspace &in = detail::main()) const {
        detail::Place error;
        std::size_t len = 0;
        error.check(trommel_get_into(get(), in.get(), detail::data(key), key.size(), buffer,
                                     capacity, &len, error));
        if (len == TROMMEL_ABSENT) return std::nullopt;
        return len;
    }
    std::vector<std::optional<Value>> multi_get(const std::vector<Bytes> &keys,
                                                const Keyspace &in = detail::main()) const {
        detail::Place error;
        std::vector<trommel_value *> values(keys.size());
        error.check(trommel_multi_get(get(), in.get(), detail::list(keys).data(), keys.size(),
                                      values.data(), error));
        return detail::values(values);
    }
    /// As trommel_multi_get_into: lengths, and that of all together.
    std::size_t multi_get_into(const std::vector<Bytes> &keys, void *buffer, std::size_t capacity,
                               std::vector<std::size_t> &lens,
                               const Keyspace &in = detail::main()) const {
        detail::Place error;
        std::size_t len = 0;
        lens.resize(keys.size());
        error.check(trommel_multi_get_into(get(), in.get(), detail::list(keys).data(),
                                           keys.size(), buffer, capacity, lens.data(), &len,
                                           error));
        return len;
    }
    Scan scan(const Range &range = Range::all(), const Keyspace &in = detail::main()) const {
        detail::Place error;
        return Scan(error.check(trommel_scan_begin(get(), in.get(), range.get(), range.flags(),
                                                   error)),
                    range.flags() & TROMMEL_REVERSE);
    }
    /// False proves that no key is there.
    bool may_contain(const Range &range, const Keyspace &in = detail::main()) const {
        detail::Place error;
        bool may = true;
        error.check(trommel_may_contain_range(get(), in.get(), range.get(), range.flags(), &may,
                                              error));
        return may;
    }
    trommel_count count(const Range &range, const Keyspace &in = detail::main()) const {
        detail::Place error;
        trommel_count count{};
        error.check(trommel_approximate_count(get(), in.get(), range.get(), range.flags(), &count,
                                              error));
        return count;
    }
    Snapshot snapshot() const {
        detail::Place error;
        return Snapshot(error.check(trommel_snapshot_take(get(), error)));
    }

    Transaction transaction(std::uint32_t isolation = TROMMEL_SERIALIZABLE) {
        detail::Place error;
        return Transaction(error.check(trommel_transaction_begin(get(), isolation, error)));
    }
    /// Runs a transaction and commits it; again as long as others are faster.
    template <typename Work>
    auto run(Work work) -> std::invoke_result_t<Work &, Transaction &> {
        using Result = std::invoke_result_t<Work &, Transaction &>;
        for (;;) {
            try {
                Transaction running = transaction();
                if constexpr (std::is_void_v<Result>) {
                    work(running);
                    running.commit();
                    return;
                } else {
                    Result result = work(running);
                    running.commit();
                    return result;
                }
            } catch (const Error &error) {
                if (!error.is_retryable()) throw;
            }
        }
    }

    /// The key space of a name, which is made if it is not there.
    Keyspace make_keyspace(const std::string &name) { return make_keyspace(name, nullptr); }
    Keyspace make_keyspace(const std::string &name, const Options &options) {
        return make_keyspace(name, options.get());
    }
    Keyspace keyspace(const std::string &name) const {
        detail::Place error;
        return Keyspace(error.check(trommel_keyspace_open(get(), name.c_str(), error)));
    }
    std::vector<std::string> keyspaces() const {
        detail::Place error;
        return detail::take(error.check(trommel_keyspaces(get(), error)));
    }
    void drop_keyspace(const std::string &name) {
        detail::Place error;
        error.check(trommel_keyspace_drop(get(), name.c_str(), error));
    }
    void rename_keyspace(const std::string &from, const std::string &to) {
        detail::Place error;
        error.check(trommel_keyspace_rename(get(), from.c_str(), to.c_str(), error));
    }

    void sync() {
        detail::Place error;
        error.check(trommel_sync(get(), error));
    }
    void flush() {
        detail::Place error;
        error.check(trommel_flush(get(), error));
    }
    void compact() {
        detail::Place error;
        error.check(trommel_compact(get(), error));
    }
    void settle() {
        detail::Place error;
        error.check(trommel_settle(get(), error));
    }
    std::string stats(const Keyspace &in = detail::main()) const {
        detail::Place error;
        return detail::take(error.check(trommel_stats(get(), in.get(), error)));
    }
    Report verify() const {
        detail::Place error;
        std::size_t damages = 0;
        std::string json = detail::take(error.check(trommel_verify(get(), &damages, error)));
        return Report{std::move(json), damages};
    }
    void checkpoint(const std::string &folder) const {
        detail::Place error;
        error.check(trommel_checkpoint(get(), folder.c_str(), error));
    }
    Changes changes_since(std::uint64_t sequence) const {
        detail::Place error;
        return Changes(error.check(trommel_changes_since(get(), sequence, error)));
    }
    trommel_db *get() const noexcept { return db_.get(); }

  private:
    Db(const std::string &folder, const trommel_options *options) {
        detail::Place error;
        db_.reset(error.check(trommel_open(folder.c_str(), options, error)));
    }
    Keyspace make_keyspace(const std::string &name, const trommel_options *options) {
        detail::Place error;
        return Keyspace(
            error.check(trommel_keyspace_make(get(), name.c_str(), options, error)));
    }

    detail::Owner<trommel_db, &trommel_db_free> db_;
};

/// Repairs a store that nobody has open.
inline Report repair(const std::string &folder) {
    detail::Place error;
    std::size_t losses = 0;
    std::string json = detail::take(error.check(trommel_repair(folder.c_str(), &losses, error)));
    return Report{std::move(json), losses};
}

/// All key spaces of a store that is followed, at one moment.
class Moment {
  public:
    explicit Moment(trommel_moment *moment) noexcept : moment_(moment) {}

    std::uint64_t sequence() const noexcept { return trommel_moment_sequence(moment_.get()); }
    Snapshot snapshot() const { return named(nullptr); }
    Snapshot snapshot(const std::string &keyspace) const { return named(keyspace.c_str()); }

  private:
    Snapshot named(const char *keyspace) const {
        detail::Place error;
        return Snapshot(error.check(trommel_moment_snapshot(moment_.get(), keyspace, error)));
    }

    detail::Owner<trommel_moment, &trommel_moment_free> moment_;
};

/// A store read along that another process writes.
class Follower {
  public:
    /// `interval`: how often a thread catches up, in milliseconds; 0: only calls do.
    explicit Follower(const std::string &folder, std::uint64_t interval = 0)
        : Follower(folder, nullptr, interval) {}
    Follower(const std::string &folder, const Options &options, std::uint64_t interval = 0)
        : Follower(folder, options.get(), interval) {}

    /// Whether there was something new.
    bool catch_up() {
        detail::Place error;
        bool moved = false;
        error.check(trommel_follower_catch_up(get(), &moved, error));
        return moved;
    }
    trommel_staleness staleness(std::optional<std::string> *failure = nullptr) const {
        detail::Place error;
        trommel_staleness staleness{};
        char *why = nullptr;
        error.check(trommel_follower_staleness(get(), &staleness, &why, error));
        std::optional<std::string> told;
        if (why) told = detail::take(why);
        if (failure) *failure = std::move(told);
        return staleness;
    }
    Snapshot snapshot() const { return named(nullptr); }
    Snapshot snapshot(const std::string &keyspace) const { return named(keyspace.c_str()); }
    Moment moment() const {
        detail::Place error;
        return Moment(error.check(trommel_follower_moment(get(), error)));
    }
    std::vector<std::string> keyspaces() const {
        detail::Place error;
        return detail::take(error.check(trommel_follower_keyspaces(get(), error)));
    }
    std::string stats() const {
        detail::Place error;
        return detail::take(error.check(trommel_follower_stats(get(), nullptr, error)));
    }
    std::string stats(const std::string &keyspace) const {
        detail::Place error;
        return detail::take(
            error.check(trommel_follower_stats(get(), keyspace.c_str(), error)));
    }
    Report verify() const {
        detail::Place error;
        std::size_t damages = 0;
        std::string json =
            detail::take(error.check(trommel_follower_verify(get(), &damages, error)));
        return Report{std::move(json), damages};
    }
    void checkpoint(const std::string &folder) const {
        detail::Place error;
        error.check(trommel_follower_checkpoint(get(), folder.c_str(), error));
    }
    void close() {
        detail::Place error;
        error.check(trommel_follower_close(get(), error));
    }
    trommel_follower *get() const noexcept { return follower_.get(); }

  private:
    Follower(const std::string &folder, const trommel_options *options, std::uint64_t interval) {
        detail::Place error;
        follower_.reset(error.check(trommel_follow(folder.c_str(), options, interval, error)));
    }
    Snapshot named(const char *keyspace) const {
        detail::Place error;
        return Snapshot(error.check(trommel_follower_snapshot(get(), keyspace, error)));
    }

    detail::Owner<trommel_follower, &trommel_follower_free> follower_;
};

/// Backups of one store in a folder, which is locked meanwhile.
class Backups {
  public:
    explicit Backups(const std::string &folder) {
        detail::Place error;
        backups_.reset(error.check(trommel_backups_open(folder.c_str(), error)));
    }

    /// Stores a new generation. Its number.
    std::uint64_t create(const Db &db) {
        detail::Place error;
        std::uint64_t number = 0;
        error.check(trommel_backups_create(get(), db.get(), &number, error));
        return number;
    }
    /// All generations, as JSON.
    std::string list() const {
        detail::Place error;
        return detail::take(error.check(trommel_backups_list(get(), error)));
    }
    Report verify(std::uint64_t number) const {
        detail::Place error;
        std::size_t damages = 0;
        std::string json =
            detail::take(error.check(trommel_backups_verify(get(), number, &damages, error)));
        return Report{std::move(json), damages};
    }
    void restore(std::uint64_t number, const std::string &folder) const {
        detail::Place error;
        error.check(trommel_backups_restore(get(), number, folder.c_str(), error));
    }
    /// Removes all but the newest `keep`. How many went.
    std::size_t prune(std::size_t keep) {
        detail::Place error;
        std::size_t removed = 0;
        error.check(trommel_backups_prune(get(), keep, &removed, error));
        return removed;
    }
    trommel_backups *get() const noexcept { return backups_.get(); }

  private:
    detail::Owner<trommel_backups, &trommel_backups_free> backups_;
};

/// A filter of keys, alone: false proves that a key, or any key of a range, is not there.
class Filter {
  public:
    /// Builds one from keys in ascending order.
    class Builder {
      public:
        Builder(const std::string &kind, double bits_per_key)
            : Builder(kind, bits_per_key, nullptr) {}
        Builder(const std::string &kind, double bits_per_key, const Options &options)
            : Builder(kind, bits_per_key, options.get()) {}

        Builder &add(Bytes key) {
            detail::Place error;
            error.check(trommel_filter_builder_add(builder_.get(), detail::data(key), key.size(),
                                                   error));
            return *this;
        }
        /// The filter's bytes.
        Value finish() {
            detail::Place error;
            return Value(error.check(trommel_filter_builder_finish(builder_.get(), error)));
        }

      private:
        Builder(const std::string &kind, double bits_per_key, const trommel_options *options) {
            detail::Place error;
            builder_.reset(error.check(
                trommel_filter_builder_new(kind.c_str(), bits_per_key, options, error)));
        }

        detail::Owner<trommel_filter_builder, &trommel_filter_builder_free> builder_;
    };

    static std::vector<std::string> kinds() {
        detail::Place error;
        return detail::take(error.check(trommel_filter_kinds(error)));
    }
    /// Whether filters of a kind answer for ranges.
    static bool knows_ranges(const std::string &kind) noexcept {
        return trommel_filter_kind_knows_ranges(kind.c_str());
    }
    /// The bytes of a filter of keys in ascending order.
    static Value build(const std::string &kind, double bits_per_key,
                       const std::vector<Bytes> &keys) {
        detail::Place error;
        return Value(error.check(trommel_filter_build(
            kind.c_str(), bits_per_key, detail::list(keys).data(), keys.size(), error)));
    }

    /// Reads a filter; the bytes say which kind it is.
    explicit Filter(Bytes bytes) : filter_(read(bytes, nullptr)) {}
    Filter(Bytes bytes, const std::string &kind) : filter_(read(bytes, kind.c_str())) {}

    bool may_contain(Bytes key) const noexcept {
        return trommel_filter_may_contain(filter_.get(), detail::data(key), key.size());
    }
    /// From `from` to `to`, both included; no `to`: to the last key.
    bool may_contain(Bytes from, std::optional<Bytes> to) const noexcept {
        return trommel_filter_may_contain_range(filter_.get(), detail::data(from), from.size(),
                                                to ? detail::data(*to) : nullptr,
                                                to ? to->size() : 0);
    }
    std::string kind() const { return trommel_filter_kind(filter_.get()); }
    std::size_t size() const noexcept { return trommel_filter_size(filter_.get()); }

  private:
    static trommel_filter *read(Bytes bytes, const char *kind) {
        detail::Place error;
        return error.check(trommel_filter_read(kind, detail::data(bytes), bytes.size(), error));
    }

    detail::Owner<trommel_filter, &trommel_filter_free> filter_;
};

}  // namespace trommel

#endif  // TROMMEL_HPP
