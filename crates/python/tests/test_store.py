"""Reading and writing."""

from __future__ import annotations

import array
import ctypes
import datetime
import errno
import gc
import importlib
import random
import re
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trommel


def filled(store: trommel.Keyspace, count: int = 1000) -> dict[bytes, bytes]:
    rows = {b"%06d" % number: b"value %d" % number for number in range(count)}
    assert store.put_many(rows) == count
    return rows


def test_a_value_is_what_was_put(store: trommel.Store) -> None:
    store.put(b"zug", b"47.17 N")
    assert store.get(b"zug") == b"47.17 N"
    assert store.get(b"bern") is None
    assert store.get(b"bern", b"?") == b"?"
    assert b"zug" in store and b"bern" not in store
    assert store[b"zug"] == b"47.17 N"
    with pytest.raises(KeyError):
        store[b"bern"]
    store.delete(b"zug")
    store.delete(b"zug")
    assert store.get(b"zug") is None


def test_any_buffer_is_a_key_and_a_value(store: trommel.Store) -> None:
    for kind in (bytes, bytearray, memoryview):
        store.put(kind(b"key"), kind(b"value"))
        assert store.get(kind(b"key")) == b"value"
    backwards = memoryview(b"abc")[::-1]
    store.put(backwards, b"turned")
    assert store.get(b"cba") == b"turned"
    store.put(b"", b"")
    assert store.get(b"") == b""


# Buffers other than bytes were copied twice.
def test_a_buffer_is_copied_once(store: trommel.Store) -> None:
    value = bytearray(8 << 20)
    for whole in (value, memoryview(value)):
        tracemalloc.start()
        try:
            store.put(b"key", whole)
            # What Python itself allocates: the copy is the store's.
            assert tracemalloc.get_traced_memory()[1] < 1 << 20
        finally:
            tracemalloc.stop()
        assert len(store[b"key"]) == len(value)


def test_text_is_refused_with_a_hint(store: trommel.Store) -> None:
    with pytest.raises(TypeError, match=r"encode the text"):
        store.put("key", b"value")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"not int"):
        store.get(5)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match=r"not list"):
        store.get([1, 2])  # type: ignore[call-overload]
    with pytest.raises(TypeError, match=r"not a single one"):
        store.get_many(b"key")


# Numbers alone were of the machine's order, and not found in arrays of them.
def test_a_key_is_of_single_bytes(store: trommel.Store) -> None:
    for number in (array.array("Q", [5]), memoryview(array.array("I", [5])), ctypes.c_uint64(5)):
        calls: list[Callable[[], object]] = [
            lambda: store.put(number, b"1"),
            lambda: store.get(number),
            lambda: number in store,
            lambda: store.get_many([number]),
            lambda: store.put_many([(number, b"1")]),
            lambda: store.put_many_packed([number], [b"1"]),
            lambda: store.ingest([(number, b"1")]),
            lambda: store.items(number),
            lambda: store.write_batch().put(number, b"1"),
            lambda: store.transaction().get(number),
            lambda: trommel.RangeFilter.build([b"a"]).may_contain(number),
        ]
        for call in calls:
            with pytest.raises(TypeError, match=r"to_bytes\(8, .big.\)"):
                call()
        assert store.first() is None
    for key in (b"a", bytearray(b"b"), memoryview(b"c"), array.array("B", b"d")):
        store.put(key, b"1")
        assert store.get_many([key]) == [store.get(key)] == [b"1"]
    assert list(store) == [b"a", b"b", b"c", b"d"]
    # Of a value the bytes are what they are.
    store.put(b"value", array.array("I", [1, 2]))
    assert store.get(b"value") == array.array("I", [1, 2]).tobytes()


def test_ranges_go_both_ways(store: trommel.Store) -> None:
    rows = sorted(filled(store).items())
    keys = [key for key, _ in rows]
    assert list(store.items()) == rows
    assert list(store.items(reverse=True)) == rows[::-1]
    assert list(store.keys()) == list(store) == keys
    assert list(store.values(reverse=True)) == [value for _, value in rows][::-1]
    assert list(store.keys(b"000010", b"000020")) == keys[10:20]
    assert list(store.keys(b"000010", b"000020", reverse=True)) == keys[10:20][::-1]
    assert list(store.keys(prefix=b"00001")) == keys[10:20]
    assert list(store.keys(b"000990")) == keys[990:]
    assert list(store.keys(None, b"000003")) == keys[:3]
    assert list(store.items(b"b", b"a")) == []
    assert store.first() == rows[0] and store.last() == rows[-1]
    assert store.count() == 1000 and store.count(prefix=b"00001") == 10
    least, estimate, most = store.approximate_count()
    assert least <= 1000 <= most and least <= estimate <= most
    with pytest.raises(ValueError, match="not both"):
        store.items(b"a", prefix=b"b")


def test_pieces_of_an_iterator_lose_no_row(store: trommel.Store) -> None:
    rows = {b"%05d" % number: bytes(number % 700) for number in range(5000)}
    store.put_many(rows)
    store.flush()
    assert dict(store.items()) == rows
    assert list(store.keys(reverse=True)) == sorted(rows, reverse=True)
    some = store.items()
    assert next(some)[0] == b"00000"
    some.close()
    assert list(some) == []


def test_an_iterator_shows_one_moment(store: trommel.Store) -> None:
    filled(store, 10)
    rows = store.keys()
    store.put(b"000000a", b"later")
    store.delete(b"000009")
    assert len(list(rows)) == 10


def test_len_is_refused_with_a_hint(store: trommel.Store) -> None:
    filled(store, 3)
    with pytest.raises(TypeError, match=r"count\(\)"):
        len(store)
    assert store and len(list(store)) == 3 and dict(store) == dict(store.items())


def test_a_value_expires(store: trommel.Store) -> None:
    store.put(b"short", b"1", ttl=0.05)
    store.put(b"long", b"2", ttl=datetime.timedelta(hours=1))
    with store.write_batch() as batch:
        batch.put(b"in batch", b"3", ttl=0.05)
    while store.get(b"short") is not None or store.get(b"in batch") is not None:
        time.sleep(0.01)
    assert store.get(b"long") == b"2"
    for bad in (-1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="no time to come"):
            store.put(b"short", b"1", ttl=bad)
    with pytest.raises(TypeError, match="seconds, or a timedelta"):
        store.put(b"short", b"1", ttl="1")  # type: ignore[arg-type]


def test_a_batch_is_all_or_nothing(store: trommel.Store) -> None:
    filled(store, 20)
    with store.write_batch() as batch:
        batch.put(b"new", b"1")
        batch.delete(b"000001")
        batch.delete_range(b"000005", b"000010")
        assert len(batch) == 3 and store.get(b"new") is None
    assert store.get(b"new") == b"1" and store.count() == 15 and len(batch) == 0
    with pytest.raises(RuntimeError, match="on purpose"), store.write_batch() as batch:
        batch.put(b"never", b"1")
        raise RuntimeError("on purpose")
    assert store.get(b"never") is None and len(batch) == 0
    batch.put(b"again", b"1")
    batch.write(sync=True)
    assert store.get(b"again") == b"1"


def test_a_batch_may_expect_something(store: trommel.Store) -> None:
    with store.write_batch() as batch:
        batch.only_if(b"name", None)
        batch.put(b"name", b"ann")
    with pytest.raises(trommel.ConflictError) as caught, store.write_batch() as batch:
        batch.only_if(b"name", b"bob")
        batch.put(b"name", b"eve")
    assert caught.value.code == 25 and store.get(b"name") == b"ann"


def test_ranges_are_deleted(store: trommel.Store) -> None:
    filled(store, 100)
    store.delete_range(b"000010", b"000090")
    assert store.count() == 20
    with pytest.raises(trommel.InvertedRangeError):
        store.delete_range(b"b", b"a")


def test_many_values_come_at_once(store: trommel.Store) -> None:
    rows = filled(store, 3000)
    asked = [*rows, b"missing"]
    random.Random(1).shuffle(asked)
    assert store.get_many(asked) == [rows.get(key) for key in asked]
    for some in ([], asked[:127], asked[:128], asked[:129], [*asked[:300], *asked[:300]]):
        expected = [rows.get(key) for key in some]
        assert store.get_many(some) == store.get_many(tuple(some)) == expected
        assert store.get_many(bytearray(key) for key in some) == expected
    packed = store.get_many_packed(asked)
    for place, key in enumerate(asked):
        value = packed.data[packed.offsets[place] : packed.offsets[place + 1]]
        assert (value if packed.found[place] else None) == rows.get(key)
    assert store.get_many([]) == []


def test_pairs_that_are_none_are_refused(store: trommel.Store) -> None:
    for bad in ([b"key"], [(b"a", b"b", b"c")], [5]):
        with pytest.raises(TypeError):
            store.put_many(bad)  # type: ignore[arg-type]


def test_single_keys_are_read_and_written_in_one_step(store: trommel.Store) -> None:
    assert store.put_if_absent(b"a", b"1") is None
    assert store.put_if_absent(b"a", b"2") == b"1"
    assert store.compare_and_swap(b"a", b"1", b"3") == (True, b"1")
    assert store.compare_and_swap(b"a", b"1", b"4") == (False, b"3")
    assert store.compare_and_swap(b"b", None, b"1") == (True, None)
    assert store.compare_and_swap(b"b", b"1", None) == (True, b"1")
    assert store.get(b"b") is None
    assert store.fetch_add(b"n") == 0 and store.fetch_add(b"n", 5) == 1
    assert store.get(b"n") == (6).to_bytes(8, "little")
    with pytest.raises(trommel.NoCounterError):
        store.fetch_add(b"a")
    assert store.take(b"a") == b"3" and store.take(b"a") is None
    with pytest.raises(KeyError):
        del store[b"a"]


def test_update_calls_back(store: trommel.Store) -> None:
    assert store.update(b"words", lambda old: trommel.KEEP) is None
    assert store.get(b"words") is None
    assert store.update(b"words", lambda old: b"a" if old is None else old + b"b") is None
    assert store.update(b"words", lambda old: (old or b"") + b"b") == b"a"
    assert store.get(b"words") == b"ab"
    with pytest.raises(ZeroDivisionError):
        store.update(b"words", lambda old: b"x" * (1 // 0))
    with pytest.raises(TypeError, match="encode"):
        store.update(b"words", lambda old: "text")  # type: ignore[arg-type, return-value]
    assert store.get(b"words") == b"ab"
    store.update(b"words", lambda old: None)
    assert store.get(b"words") is None


def test_sorted_rows_are_ingested(store: trommel.Store) -> None:
    rows = [(b"%06d" % number, b"v") for number in range(3000)]
    assert store.ingest(iter(rows)) == 3000
    assert list(store.items()) == rows
    with pytest.raises(trommel.UnsortedError):
        store.ingest([(b"b", b""), (b"a", b"")])

    def broken() -> list[tuple[bytes, bytes]]:
        raise LookupError("on purpose")

    with pytest.raises(LookupError, match="on purpose"):
        store.ingest(pair for _ in range(2) for pair in broken())
    assert store.count() == 3000


def test_a_snapshot_stays_what_it_is(store: trommel.Store) -> None:
    rows = filled(store, 2000)
    events = store.keyspace("events")
    events.put(b"today", b"rain")
    before = store.snapshot()
    store.delete_range(b"0", b"1")
    events.put(b"today", b"snow")
    assert store.count() == 0
    assert dict(before.items()) == rows and before.get(b"000000") == rows[b"000000"]
    assert before.get_many(list(rows)) == list(rows.values())
    assert before.of(events).get(b"today") == b"rain"
    assert before.sequence < store.snapshot().sequence


def test_key_spaces_have_keys_of_their_own(store: trommel.Store, tmp_path: Path) -> None:
    events = store.keyspace("events", write_buffer_bytes="1MiB")
    events.put(b"a", b"1")
    assert events.name == "events" and store.name == "default"
    assert store.get(b"a") is None and events.get(b"a") == b"1"
    with store.write_batch() as batch:
        batch.put(b"here", b"1")
        batch.put(b"there", b"2", keyspace=events)
        batch.put(b"here too", b"3")
    assert list(store) == [b"here", b"here too"] and list(events) == [b"a", b"there"]
    with events.write_batch() as batch:
        batch.put(b"b", b"1")
        batch.put(b"other", b"1", keyspace=store)
    assert events.get(b"b") == b"1" and store.get(b"other") == b"1"
    assert store.keyspaces() == ["default", "events"]
    store.rename_keyspace("events", "old")
    assert store.keyspace("old", create=False).get(b"a") == b"1"
    with pytest.raises(trommel.NoKeyspaceError):
        store.keyspace("events", create=False)
    store.drop_keyspace("old")
    with pytest.raises(trommel.KeyspaceDroppedError):
        events.get(b"a")
    with pytest.raises(trommel.OptionError):
        store.keyspace("x", sync="always")
    with trommel.open(tmp_path / "other") as other:
        alien = other.keyspace("events")
        with pytest.raises(ValueError, match="another store"), store.write_batch() as batch:
            batch.put(b"k", b"v", keyspace=alien)
        with pytest.raises(ValueError, match="another store"):
            store.snapshot().of(alien)


def test_operands_are_merged(tmp_path: Path) -> None:
    with trommel.open(tmp_path / "store", merge_operator="concat:, ") as store:
        store.put(b"fruit", b"apple")
        store.merge(b"fruit", b"pear")
        with store.write_batch() as batch:
            batch.merge(b"fruit", b"plum")
        assert store.get(b"fruit") == b"apple, pear, plum"
    with trommel.open(tmp_path / "plain") as store, pytest.raises(trommel.NoMergeOperatorError):
        store.merge(b"fruit", b"pear")


def test_options_are_values_of_python(tmp_path: Path) -> None:
    with trommel.open(
        tmp_path / "store",
        preset="small_device",
        write_buffer_bytes=1 << 20,
        block_cache_bytes="2MiB",
        bits_per_key=14.5,
        monkey=False,
        stop_runs=None,
        compression=None,
        sync="always",
        lock_timeout=datetime.timedelta(seconds=2),
    ) as store:
        store.put(b"a", b"1")
    with pytest.raises(trommel.OptionError, match="did you mean sync") as caught:
        trommel.open(tmp_path / "store", synk="always")
    assert caught.value.code == 16 and isinstance(caught.value, ValueError)
    with pytest.raises(trommel.OptionError, match="None"):
        trommel.open(tmp_path / "store", block_bytes=None)
    with pytest.raises(TypeError, match="list"):
        trommel.open(tmp_path / "store", block_bytes=[1])  # type: ignore[arg-type]
    with pytest.raises(trommel.OptionError):
        trommel.open(tmp_path / "store", block_bytes=-1)
    names = [name for name, *_ in trommel.options()]
    assert "write_buffer_bytes" in names and len(names) == len(set(names))


def test_errors_have_the_codes_of_the_store(tmp_path: Path) -> None:
    kinds = [kind for kind in trommel.Error.__subclasses__()]
    assert sorted(kind.code for kind in kinds) == list(range(1, 33))
    assert all(getattr(trommel, kind.__name__) is kind for kind in kinds)
    with pytest.raises(trommel.MissingError) as missing:
        trommel.open(tmp_path / "none", create_if_missing=False)
    assert missing.value.code == 6
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("x")
    with pytest.raises(trommel.NotAStoreError):
        trommel.open(tmp_path / "full")
    with trommel.open(tmp_path / "store") as store:
        with pytest.raises(trommel.LockedError):
            trommel.open(tmp_path / "store")
        with pytest.raises(trommel.KeyTooLongError):
            store.put(bytes(1 << 20), b"")
    with pytest.raises(OSError) as disk:
        trommel.open(tmp_path / ("x" * 300))
    assert isinstance(disk.value, trommel.DiskError)
    assert (disk.value.code, disk.value.errno) == (1, errno.ENAMETOOLONG)


def test_what_was_written_is_there_later(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with trommel.open(path) as store:
        rows = filled(store)
        store.compact()
        stats = store.stats()
        assert stats["writes"] == 1000 and stats["failure"] is None
        assert isinstance(stats["runs"], dict)
        assert store.path == path and "store" in repr(store)
    with trommel.open(path) as store:
        assert dict(store.items()) == rows
        assert store.verify().damage == []
        store.checkpoint(tmp_path / "copy")
        store.sync()
        store.settle()
    with trommel.open(tmp_path / "copy") as store:
        assert dict(store.items()) == rows


def test_a_store_that_nobody_refers_to_is_closed(tmp_path: Path) -> None:
    store = trommel.open(tmp_path / "store")
    events = store.keyspace("events")
    del store
    gc.collect()
    events.put(b"a", b"1")
    with pytest.raises(trommel.LockedError):
        trommel.open(tmp_path / "store")
    del events
    gc.collect()
    trommel.open(tmp_path / "store").close()


def test_damage_is_an_error_with_a_code(tmp_path: Path) -> None:
    with trommel.open(tmp_path / "store") as store:
        filled(store)
        store.flush()
    [table] = (tmp_path / "store").glob("*.table")
    data = bytearray(table.read_bytes())
    data[100] ^= 1
    table.write_bytes(data)
    with pytest.raises(trommel.CorruptError) as caught, trommel.open(tmp_path / "store") as store:
        list(store.items())
    assert caught.value.code == 2
    with trommel.open(tmp_path / "store") as store:
        assert store.verify().damage


def test_rows_before_damage_come_before_the_error(tmp_path: Path) -> None:
    with trommel.open(tmp_path / "store", compression=None) as store:
        rows = sorted(filled(store, 20_000).items())
        store.flush()
    [table] = (tmp_path / "store").glob("*.table")
    data = bytearray(table.read_bytes())
    data[len(data) // 2] ^= 1
    table.write_bytes(data)
    seen: list[tuple[bytes, bytes]] = []
    with trommel.open(tmp_path / "store") as store:
        damaged = store.items()
        with pytest.raises(trommel.CorruptError):
            for row in damaged:
                seen.append(row)
        assert list(damaged) == []
    # A block has some hundred rows, and the one that is damaged is in the middle.
    assert 9_000 < len(seen) < 11_000 and seen == rows[: len(seen)]


def test_backups_come_back(tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    with trommel.open(tmp_path / "store", kept_log_bytes="1MiB") as store:
        store.put(b"drum", b"turns")
        first = store.backup(folder)
        store.put(b"drum", b"rests")
        at = store.snapshot().sequence
        store.put(b"drum", b"goes")
        assert store.ship(folder)[1] > at
        second = store.backup(folder)
    assert [it.number for it in trommel.generations(folder)] == [first.number, second.number]
    assert trommel.verify_backup(folder) == []
    assert trommel.restore(folder, tmp_path / "one", generation=first.number) is None
    assert trommel.restore(folder, tmp_path / "two", sequence=at) == at
    trommel.restore(folder, tmp_path / "three")
    for name, value in (("one", b"turns"), ("two", b"rests"), ("three", b"goes")):
        with trommel.open(tmp_path / name) as store:
            assert store.get(b"drum") == value
    with pytest.raises(trommel.NotEmptyError):
        trommel.restore(folder, tmp_path / "one")
    with pytest.raises(ValueError, match="not several"):
        trommel.restore(folder, tmp_path / "x", generation=1, sequence=2)
    assert trommel.prune(folder, keep=1) == [first.number]
    with pytest.raises(trommel.FileMissingError):
        trommel.restore(folder, tmp_path / "four", generation=first.number)


def test_changes_are_told(tmp_path: Path) -> None:
    with trommel.open(tmp_path / "store", kept_log_bytes="1MiB") as store:
        begin = store.snapshot().sequence
        feed = store.changes_since(begin)
        assert list(feed) == []
        store.put(b"a", b"1")
        with store.write_batch() as batch:
            batch.delete(b"a")
            batch.delete_range(b"b", b"c")
            batch.put(b"d", b"2", ttl=100)
        store.keyspace("events").put(b"e", b"3")
        store.sync()
        batches = list(feed)
        told = [
            (it.keyspace_name, it.kind, it.key, it.value) for batch in batches for it in batch.changes
        ]
        assert told == [
            ("default", "put", b"a", b"1"),
            ("default", "delete", b"a", None),
            ("default", "delete_range", b"b", b"c"),
            ("default", "put", b"d", b"2"),
            ("events", "put", b"e", b"3"),
        ]
        expiry = batches[1].changes[2].expiry
        assert expiry is not None and 0 < expiry - time.time() < 200
        assert feed.sequence == batches[-1].sequence == store.snapshot().sequence
        with pytest.raises(trommel.GoneError):
            store.changes_since(10**6)


# It was gone, and `sequence` was behind it.
def test_a_change_that_was_interrupted_is_told_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with trommel.open(tmp_path / "store", kept_log_bytes="1MiB") as store:
        begin = store.snapshot().sequence
        feed = store.changes_since(begin)
        for key in (b"a", b"b"):
            store.put(key, b"1")
            store.sync()

        def interrupt(*_: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr("trommel._types.Change", interrupt)
            for _ in range(2):
                with pytest.raises(KeyboardInterrupt):
                    next(feed)
                assert feed.sequence == begin
        assert [it.key for it in next(feed).changes] == [b"a"]
        assert feed.sequence == begin + 1
        assert [it.key for batch in feed for it in batch.changes] == [b"b"]
        assert feed.sequence == store.snapshot().sequence


def test_a_feed_that_goes_on_while_it_tells_gives_each_batch_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with trommel.open(tmp_path / "store", kept_log_bytes="1MiB") as store:
        feed = store.changes_since(store.snapshot().sequence)
        for key in (b"a", b"b", b"c"):
            store.put(key, b"1")
            store.sync()
        original, told = trommel.Change, list[trommel.ChangeBatch]()

        def within(*parts: Any) -> trommel.Change:
            if not told:
                monkeypatch.undo()
                told.append(next(feed))
            return original(*parts)

        monkeypatch.setattr("trommel._types.Change", within)
        told.extend(feed)
        assert [it.key for batch in told for it in batch.changes] == [b"a", b"b", b"c"]


def test_a_store_is_followed(tmp_path: Path) -> None:
    with trommel.open(tmp_path / "store") as store:
        store.put(b"drum", b"turns")
        store.keyspace("events").put(b"e", b"1")
        store.flush()
        with trommel.follow(tmp_path / "store") as follower:
            assert follower.get(b"drum") == b"turns" and list(follower) == [b"drum"]
            assert follower.keyspaces() == ["default", "events"]
            assert follower.keyspace("events").get(b"e") == b"1"
            before = follower.snapshot()
            store.put(b"drum", b"stops")
            store.flush()
            assert follower.catch_up() and follower.get(b"drum") == b"stops"
            assert before.get(b"drum") == b"turns"
            assert follower.staleness().failure is None
            assert follower.get_many([b"drum"] * 2000) == [b"stops"] * 2000
            assert follower.verify().damage == []
            follower.checkpoint(tmp_path / "copy")
        with pytest.raises(trommel.ClosedError):
            follower.get(b"drum")
    with trommel.open(tmp_path / "copy") as store:
        assert store.get(b"drum") == b"stops"


def test_the_mapping_is_a_mapping(store: trommel.Store) -> None:
    view = store.mapping()
    assert not view and list(view) == []
    view[b"b"] = b"2"
    assert view.setdefault(b"a", b"1") == b"1" and view.setdefault(b"a", b"9") == b"1"
    view.update({b"c": b"3"})
    assert view and dict(view) == {b"a": b"1", b"b": b"2", b"c": b"3"}
    assert list(reversed(view)) == [b"c", b"b", b"a"] and view.get(b"x") is None
    assert view.pop(b"a") == b"1" and view.pop(b"a", None) is None
    with pytest.raises(KeyError):
        view.pop(b"a")
    with pytest.raises(KeyError):
        del view[b"a"]
    assert view.popitem() == (b"c", b"3")
    with pytest.raises(TypeError, match=r"count\(\)"):
        len(view)
    view.clear()
    assert store.count() == 0
    with pytest.raises(KeyError):
        view.popitem()


# Each row was looked up by its key, which may be gone.
def test_views_of_the_mapping_show_one_moment(store: trommel.Store) -> None:
    view = store.mapping()
    rows = filled(store, 3000)
    keys, values, items = view.keys(), view.values(), view.items()
    forward = [iter(keys), iter(values), iter(items)]
    backward = [reversed(it) for it in (keys, values, items)]
    for each in (*forward, *backward):
        next(each)
    view.clear()
    view[b"later"] = b"1"
    expected: list[list[Any]] = [list(rows), list(rows.values()), list(rows.items())]
    for row, (there, back) in zip(expected, zip(forward, backward, strict=True), strict=True):
        assert list(there) == row[1:] and list(back) == row[-2::-1]
    assert list(keys) == [b"later"] and list(values) == [b"1"]
    assert list(items) == [(b"later", b"1")]
    assert b"later" in keys and b"1" in values and (b"later", b"1") in items
    assert b"x" not in keys and b"x" not in values and (b"later", b"x") not in items


def test_a_default_is_needed_only_where_there_is_nothing(store: trommel.Store) -> None:
    view = store.mapping()
    view[b"a"] = b"1"
    assert view.setdefault(b"a") == b"1"
    with pytest.raises(TypeError, match="name the default"):
        view.setdefault(b"b")
    assert list(view) == [b"a"]


def test_each_code_has_its_class() -> None:
    header = Path(__file__).parents[2] / "c" / "include" / "trommel.h"
    text = header.read_text(encoding="utf-8")
    codes = text[text.index("#define TROMMEL_OK ") : text.index("#define TROMMEL_ARGUMENT ")]
    found = [int(code) for code in re.findall(r"#define TROMMEL_\w+ (\d+)", codes)]
    assert found[0] == 0 and len(found) > 30
    classes = importlib.import_module("trommel._errors").BY_CODE
    assert sorted(found[1:]) == sorted(classes)


# The key behind it is too long to be named.
def test_the_mapping_is_cleared_of_the_longest_key(store: trommel.Store) -> None:
    view = store.mapping()
    view.update({b"": b"1", b"a": b"2", b"\xff" * 65536: b"3"})
    view.clear()
    assert store.count() == 0
    view[b""] = b"1"
    view.clear()
    assert store.count() == 0
