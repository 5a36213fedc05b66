"""How soon an interrupt ends calls, and that other threads go on during them."""

from __future__ import annotations

import collections
import contextlib
import ctypes
import itertools
import operator
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trommel

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise")

#: The bound that is promised, and what a machine takes to run the threads of a test in turn.
SOON = 0.1 + 0.05
TRIES = 3
VALUE = os.urandom(100)


def interrupted(
    call: Callable[[], object], after: float = 0.05, once: Callable[[], bool] = lambda: True
) -> float:
    """Interrupts a call that is made again and again, some time after something holds, and tells how
    many seconds later it ended."""
    sent = [0.0]

    def send() -> None:
        given_up = time.monotonic() + 60
        while not once() and time.monotonic() < given_up:
            time.sleep(0.005)
        time.sleep(after)
        sent[0] = time.monotonic()
        os.kill(os.getpid(), signal.SIGINT)

    sender = threading.Thread(target=send)
    try:
        with pytest.raises(KeyboardInterrupt):
            sender.start()
            while True:
                call()
    finally:
        ended = time.monotonic()
        sender.join()
    return ended - sent[0]


def end_soon(calls: dict[str, Callable[[], object]]) -> None:
    """Checks how soon calls end. The best try counts: others may have waited for a processor."""
    late = {name: min(interrupted(call) for _ in range(TRIES)) for name, call in calls.items()}
    assert max(late.values()) < SOON, late


def rows(count: int) -> Iterator[tuple[bytes, bytes]]:
    """Rows that C makes: the interpreter looks for no signals meanwhile."""
    return zip(map(b"%08d".__mod__, range(count)), itertools.repeat(VALUE), strict=False)


def test_long_calls_are_interrupted(tmp_path: Path) -> None:
    store = trommel.open(tmp_path / "store", value_threshold=0)
    store.put_many(rows(300_000))
    # Whatever repeats does so in C.
    scans = map(operator.methodcaller("items"), itertools.repeat(store, 100_000))
    endless = itertools.chain.from_iterable(scans)
    numbers = itertools.count()

    def new(name: str) -> Path:
        return tmp_path / f"{name} {next(numbers)}"

    def fill_and_flush() -> None:
        store.put_many([(b"x", VALUE)] * 50_000)
        store.flush()

    def put_and_sync() -> None:
        store.put(b"x", VALUE)
        store.sync()

    end_soon(
        {
            "scan": lambda: collections.deque(endless, maxlen=0),
            "count": lambda: store.count(),
            "put_many": lambda: store.put_many(itertools.repeat((b"x", VALUE), 3_000_000)),
            "get_many": lambda: store.get_many([b"%08d" % number for number in range(50_000)]),
            "compact": lambda: store.compact(),
            "flush": fill_and_flush,
            "sync": put_and_sync,
            "settle": lambda: store.settle(),
            "verify": lambda: store.verify(),
            "backup": lambda: store.backup(new("backup")),
            "checkpoint": lambda: store.checkpoint(new("copy")),
        }
    )
    assert store.get(b"%08d" % 7) == VALUE
    store.close()
    with trommel.open(tmp_path / "store") as again:
        assert again.verify().damage == [] and again.get(b"%08d" % 7) == VALUE


def test_loads_and_backups_are_interrupted(tmp_path: Path) -> None:
    backups, numbers = tmp_path / "backups", itertools.count()
    with trommel.open(tmp_path / "store", kept_log_bytes="1GiB") as store:
        loaded = store.keyspace("loaded")
        end_soon({"ingest": lambda: loaded.ingest(rows(10_000_000))})
        assert loaded.first() is None
        store.put_many(rows(300_000))
        store.backup(backups)

        def put_and_ship() -> None:
            store.put_many(rows(20_000))
            # The folder is locked for a while by the call before, which was interrupted.
            with contextlib.suppress(trommel.LockedError):
                store.ship(backups)

        end_soon({"ship": put_and_ship})

    def prune() -> None:
        with contextlib.suppress(trommel.LockedError):
            trommel.prune(backups, keep=1)

    end_soon(
        {
            "prune": prune,
            "generations": lambda: trommel.generations(backups),
            "verify_backup": lambda: trommel.verify_backup(backups),
            "restore": lambda: trommel.restore(backups, tmp_path / f"copy {next(numbers)}"),
        }
    )
    assert trommel.verify_backup(backups) == []


def test_openings_are_interrupted(tmp_path: Path) -> None:
    path, count = tmp_path / "store", 300_000
    with trommel.open(path, write_buffer_bytes="256MiB", sync="never") as store:
        store.put_many(rows(count))
    # One that was interrupted is locked for a while.
    copies = [tmp_path / f"copy {number}" for number in range(TRIES)]
    for copy in copies:
        shutil.copytree(path, copy)
    others = itertools.cycle([path, *copies])

    def open_it() -> None:
        with contextlib.suppress(trommel.LockedError):
            trommel.open(next(others), write_buffer_bytes="256MiB").close()

    end_soon({"open": open_it, "follow": lambda: trommel.follow(path).close()})
    # It is closed, and so unlocked, by what was interrupted.
    unlocked_by = time.monotonic() + 60
    while True:
        try:
            store = trommel.open(path, write_buffer_bytes="256MiB")
            break
        except trommel.LockedError:
            assert time.monotonic() < unlocked_by
            time.sleep(0.01)
    with store, trommel.follow(path) as follower:

        def catch_up() -> None:
            store.put_many(rows(50_000))
            follower.catch_up()

        end_soon({"catch_up": catch_up, "approximate_count": lambda: store.approximate_count()})
        assert store.count() == count


# Nobody looked for signals before there was a row.
def test_what_passes_over_deleted_rows_is_interrupted(tmp_path: Path) -> None:
    with trommel.open(tmp_path / "store", write_buffer_bytes="256MiB", sync="never") as store:
        count = 1_000_000
        store.put_many(rows(count))
        with store.write_batch() as batch:
            for key, _ in rows(count):
                batch.delete(key)
        tx = store.transaction()
        # A handler that returns ends nothing, and may go on with the rows, or is told that it cannot.
        for rows_of in (store.items(), store.keys(reverse=True), tx.items()):
            told: list[object] = []

            def go_on(*_: object, rows_of: Any = rows_of, told: list[object] = told) -> None:
                try:
                    told.append(next(rows_of, None))
                except ValueError as refused:
                    told.append(refused)

            before = signal.signal(signal.SIGUSR1, go_on)
            try:
                timer = threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGUSR1))
                timer.start()
                assert list(rows_of) == []
                timer.join()
                assert len(told) == 1 and (told[0] is None or "waits" in str(told[0]))
            finally:
                signal.signal(signal.SIGUSR1, before)
        end_soon(
            {
                "items": lambda: list(store.items()),
                "reversed": lambda: list(store.keys(reverse=True)),
                "count": lambda: store.count(),
                "first": lambda: store.first(),
                "last": lambda: store.last(),
                "transaction": lambda: list(tx.items()),
            }
        )
        store.put(b"x", b"")
        assert list(store) == [b"x"] and list(tx.items()) == []


def test_a_load_of_one_long_batch_is_interrupted(store: trommel.Store) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow cannot be had")
    keys = pyarrow.array(range(1_000_000), pyarrow.uint64())
    column = pyarrow.array([VALUE] * len(keys))
    table = pyarrow.table({"key": keys, "value": column})
    end_soon({"from_arrow": lambda: store.from_arrow(table)})
    assert store.first() is None


def test_writes_that_wait_are_interrupted_and_write_nothing(tmp_path: Path) -> None:
    with trommel.open(tmp_path / "store", lock_timeout=60) as store:
        tx, other = store.transaction(), store.transaction()
        tx.get_for_update(b"a")
        end_soon(
            {
                "put": lambda: store.put(b"a", b"1"),
                "lock": lambda: other.get_for_update(b"a"),
            }
        )
        tx.roll_back()
        assert store.get(b"a") is None
        store.put(b"a", b"2")
    # Writes come faster than merges, which are held back, and so are stopped.
    with trommel.open(
        tmp_path / "slow",
        write_buffer_bytes="4KiB",
        slow_down_runs=2,
        stop_runs=11,
        merge_bytes_per_second=1000,
    ) as slow:

        def fill() -> None:
            for number in range(1_000_000):
                slow.put(b"%08d" % number, b"%08d" % number * 50)

        stops = [0.0]

        def is_stopped_again() -> bool:
            return bool(slow.stats()["stops.count"] > stops[0])

        late: list[float] = []
        for _ in range(TRIES):
            late.append(interrupted(fill, once=is_stopped_again))
            stops[0] = slow.stats()["stops.count"] - 1
        assert min(late) < SOON, late


# They waited for the end of the load.
def test_what_waits_behind_a_bulk_load_is_interrupted(store: trommel.Store) -> None:
    begun, ends = threading.Event(), threading.Event()
    store.keyspace("dropped")

    def slow_rows() -> Iterator[tuple[bytes, bytes]]:
        for number, row in enumerate(rows(2000)):
            # Rows before it are asked for before other writes have to wait.
            if number == 1000:
                begun.set()
                ends.wait(60)
            yield row

    load = threading.Thread(target=store.ingest, args=(slow_rows(),))
    behind = threading.Thread(target=store.put, args=(b"behind", b"1"))
    load.start()
    begun.wait()
    behind.start()
    try:
        end_soon(
            {
                "put": lambda: store.put(b"a", b"1"),
                "put_many": lambda: store.put_many({b"b": b"1"}),
                "flush": lambda: store.flush(),
                "drop_keyspace": lambda: store.drop_keyspace("dropped"),
            }
        )
    finally:
        ends.set()
        load.join()
        behind.join()
    assert store.get(b"behind") == b"1" and b"a" not in store and b"b" not in store


class Ticker:
    """A thread that counts while it may run."""

    def __init__(self) -> None:
        self.ticks = 0
        self._is_over = False
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._is_over:
            time.sleep(0.001)
            self.ticks += 1

    def __enter__(self) -> Ticker:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        self._thread.join()


class ArrowStream(ctypes.Structure):
    """A stream of Arrow, as C has it."""

    _fields_ = [
        ("get_schema", ctypes.c_void_p),
        ("get_next", ctypes.c_void_p),
        ("get_last_error", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    ]


def next_batch(capsule: object) -> None:
    """Reads a batch as a library does that keeps the interpreter's lock."""
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    at = pointer_of(capsule, b"arrow_array_stream")
    stream = ArrowStream.from_address(at)
    # What a batch is told by: lengths, counts, pointers; the last but one is its own release.
    array = (ctypes.c_int64 * 10)()
    get_next = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(stream.get_next)
    assert get_next(at, ctypes.addressof(array)) == 0 and array[0] > 0
    ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(array[8])(ctypes.addressof(array))


@pytest.mark.parametrize(
    "name",
    ["verify", "compact", "get_many", "count", "restore", "open", "catch_up", "arrow"],
)
def test_other_threads_go_on_during_a_call(tmp_path: Path, name: str) -> None:
    path, count, numbers = tmp_path / "store", 100_000, itertools.count()
    options: dict[str, Any] = {"write_buffer_bytes": "64MiB", "block_cache_bytes": "1MiB"}
    if name not in ("open", "catch_up"):
        with trommel.open(path, **options) as store:
            store.put_many(rows(count))
            store.flush()
            store.backup(tmp_path / "backups")
    store = trommel.open(path, **options)
    follower = trommel.follow(path)
    if name in ("open", "catch_up"):
        store.put_many(rows(count))
    keys = [key for key, _ in rows(count)]
    stores, table = [store], store.to_arrow(batch_rows=count)
    streams = [table.__arrow_c_stream__() for _ in range(TRIES)]
    calls: dict[str, Callable[[], object]] = {
        "verify": lambda: store.verify(),
        "compact": lambda: store.compact(),
        "get_many": lambda: store.get_many(keys),
        "count": lambda: store.count(),
        "restore": lambda: trommel.restore(
            tmp_path / "backups", tmp_path / f"copy {next(numbers)}"
        ),
        "open": lambda: stores.append(trommel.open(path, **options)),
        "catch_up": lambda: follower.catch_up(),
        "arrow": lambda: next_batch(streams.pop()),
    }
    most = 0
    with Ticker() as ticker:
        for _ in range(TRIES):
            if name == "open":
                stores[-1].close()
            before = ticker.ticks
            calls[name]()
            most = max(most, ticker.ticks - before)
    # At either end of a call that keeps the lock there may be one.
    assert most > 3, most
    follower.close()
    stores[-1].close()
