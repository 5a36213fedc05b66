"""Transactions."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
import trommel


def test_a_block_is_committed_or_forgotten(store: trommel.Store) -> None:
    with store.transaction() as tx:
        tx.put(b"a", b"1")
        assert tx.get(b"a") == b"1" and b"a" in tx and store.get(b"a") is None
        assert tx.get(b"x", b"?") == b"?"
    assert store.get(b"a") == b"1"
    with pytest.raises(RuntimeError, match="on purpose"), store.transaction() as tx:
        tx.put(b"a", b"2")
        raise RuntimeError("on purpose")
    assert store.get(b"a") == b"1"
    with pytest.raises(trommel.ClosedError, match="has ended"):
        tx.get(b"a")


def test_who_was_slower_gets_a_conflict(store: trommel.Store) -> None:
    store.put(b"a", b"1")
    tx = store.transaction()
    assert tx.get(b"a") == b"1"
    store.put(b"a", b"2")
    tx.put(b"b", b"1")
    with pytest.raises(trommel.ConflictError):
        tx.commit()
    assert store.get(b"b") is None
    with pytest.raises(trommel.ClosedError):
        tx.commit()


def test_snapshot_isolation_looks_at_what_is_written(store: trommel.Store) -> None:
    tx = store.transaction(isolation="snapshot")
    assert tx.get(b"a") is None
    store.put(b"a", b"2")
    tx.put(b"b", b"1")
    assert tx.commit() == store.snapshot().sequence
    with pytest.raises(ValueError, match="isolation"):
        store.transaction(isolation="none")  # type: ignore[arg-type]


def test_rows_show_its_own_writes_and_count_as_read(store: trommel.Store) -> None:
    store.put_many({b"%03d" % number: b"old" for number in range(200)})
    tx = store.transaction()
    tx.put(b"005", b"new")
    tx.delete(b"006")
    tx.put(b"9", b"last")
    expected = [b"%03d" % number for number in range(200) if number != 6] + [b"9"]
    assert [key for key, _ in tx.items()] == expected
    assert [key for key, _ in tx.items(reverse=True)] == expected[::-1]
    assert dict(tx.items(b"004", b"007")) == {b"004": b"old", b"005": b"new"}
    assert [key for key, _ in tx.items(prefix=b"00")] == [
        b"%03d" % number for number in range(10) if number != 6
    ]
    store.put(b"150x", b"phantom")
    with pytest.raises(trommel.ConflictError):
        tx.commit()


def test_pieces_of_rows_that_end_at_a_piece(store: trommel.Store) -> None:
    for count in (15, 16, 17, 16 + 64, 16 + 64 + 1):
        store.delete_range(b"", b"\xff")
        rows = [(b"%03d" % number, b"v") for number in range(count)]
        store.put_many(rows)
        with store.transaction() as tx:
            assert list(tx.items()) == rows
            assert list(tx.items(reverse=True)) == rows[::-1]


def test_what_was_not_gone_over_is_not_read(store: trommel.Store) -> None:
    store.put_many({b"%03d" % number: b"old" for number in range(200)})
    with store.transaction() as tx:
        assert next(tx.items())[0] == b"000"
        store.put(b"199", b"new")
        tx.put(b"x", b"1")
    assert store.get(b"x") == b"1"


def test_savepoints(store: trommel.Store) -> None:
    with store.transaction() as tx:
        tx.put(b"a", b"1")
        place = tx.savepoint()
        tx.put(b"a", b"2")
        tx.put(b"b", b"2")
        tx.roll_back_to(place)
        with store.transaction() as other, pytest.raises(ValueError, match="another"):
            other.roll_back_to(place)
    assert dict(store.items()) == {b"a": b"1"}


def test_several_key_spaces(store: trommel.Store, tmp_path: Path) -> None:
    events = store.keyspace("events")
    with store.transaction() as tx:
        tx.put(b"a", b"1")
        inside = tx.of(events)
        inside.put(b"e", b"2")
        inside.delete_range(b"f", b"g")
        assert dict(inside.items()) == {b"e": b"2"} and dict(tx.items()) == {b"a": b"1"}
    assert events.get(b"e") == b"2" and store.get(b"e") is None
    with trommel.open(tmp_path / "other") as other, pytest.raises(ValueError, match="another"):
        store.transaction().of(other)


def test_threads_that_run_lose_no_update(store: trommel.Store) -> None:
    def add(tx: trommel.Transaction) -> int:
        number = int(tx.get(b"n", b"0"))
        tx.put(b"n", b"%d" % (number + 1))
        return number

    given: list[int] = []

    def many() -> None:
        for _ in range(50):
            given.append(store.run(add))

    threads = [threading.Thread(target=many) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.get(b"n") == b"200" and sorted(given) == list(range(200))


def test_run_passes_errors_on(store: trommel.Store) -> None:
    runs: list[trommel.Transaction] = []

    def fail(tx: trommel.Transaction) -> None:
        runs.append(tx)
        tx.put(b"a", b"1")
        raise LookupError("on purpose")

    with pytest.raises(LookupError):
        store.run(fail)
    assert len(runs) == 1 and store.get(b"a") is None

    def slow(tx: trommel.Transaction) -> str:
        tx.get(b"a")
        if len(runs) < 4:
            runs.append(tx)
            store.put(b"a", b"2")
        tx.put(b"b", b"1")
        return "done"

    assert store.run(slow) == "done" and len(runs) == 4 and store.get(b"b") == b"1"


def test_a_lock_is_waited_for(store: trommel.Store) -> None:
    tx = store.transaction()
    assert tx.get_for_update(b"a") is None
    began = threading.Event()

    def write() -> None:
        began.set()
        store.put(b"a", b"by another")

    thread = threading.Thread(target=write)
    thread.start()
    began.wait()
    tx.put(b"a", b"first")
    tx.commit()
    thread.join()
    assert store.get(b"a") == b"by another"


def test_a_lock_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    with trommel.open(tmp_path / "store", lock_timeout=0) as store:
        with store.transaction() as tx:
            tx.get_for_update(b"a")
            with pytest.raises(trommel.LockTimeoutError):
                store.put(b"a", b"1")


def test_a_transaction_that_is_dropped_frees_its_locks(store: trommel.Store) -> None:
    tx = store.transaction()
    tx.get_for_update(b"a")
    tx.roll_back()
    store.put(b"a", b"1")
    tx = store.transaction()
    tx.get_for_update(b"a")
    del tx
    store.put(b"a", b"2")
