"""Closing, forking, exiting, interrupts, threads."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
import subprocess
import sys
import sysconfig
import textwrap
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trommel

ROWS = 20_000


def filled(path: Path, **options: Any) -> trommel.Store:
    store = trommel.open(path, **options)
    store.put_many((b"%08d" % number, b"v" * 50) for number in range(ROWS))
    return store


def run(code: str, *arguments: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    """Runs a program in an interpreter of its own."""
    return subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(code), *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
    )


def test_handles_of_a_closed_store_say_so(tmp_path: Path) -> None:
    store = filled(tmp_path / "store", kept_log_bytes=1 << 20)
    events = store.keyspace("events")
    rows, unused, snapshot = store.items(), store.keys(), store.snapshot()
    tx, batch, feed = store.transaction(), store.write_batch(), store.changes_since(0)
    tx.put(b"a", b"1")
    batch.put(b"a", b"1")
    next(rows)
    store.close()
    store.close()
    calls: list[Callable[[], object]] = [
        lambda: store.get(b"a"),
        lambda: store.put(b"a", b"1"),
        lambda: store.get_many([b"a"]),
        lambda: store.get_many([b"a"] * 2000),
        lambda: store.may_contain_range(b"a", b"b"),
        lambda: store.may_contain_many([b"a"]),
        lambda: store.stats(),
        lambda: store.snapshot(),
        lambda: store.keyspace("x"),
        lambda: store.run(lambda tx: tx.get(b"a")),
        lambda: store.flush(),
        lambda: store.compact(),
        lambda: store.verify(),
        lambda: store.ingest([(b"a", b"1")]),
        lambda: store.changes_since(0),
        lambda: list(store.items()),
        lambda: events.put(b"a", b"1"),
        lambda: events.count(),
        lambda: list(rows),
        lambda: list(unused),
        lambda: snapshot.get(b"a"),
        lambda: list(snapshot.items()),
        lambda: tx.get(b"b"),
        lambda: tx.commit(),
        lambda: batch.write(),
        lambda: list(feed),
    ]
    for call in calls:
        with pytest.raises(trommel.ClosedError):
            call()
    # All of these live on, and the folder is free.
    with trommel.open(tmp_path / "store") as again:
        assert again.get(b"%08d" % 7) == b"v" * 50
        with pytest.raises(trommel.ClosedError):
            store.get(b"a")


def test_threads_share_an_iterator(tmp_path: Path) -> None:
    with filled(tmp_path / "store") as store:
        for rows in (store.items(), store.items(reverse=True)):
            seen: list[list[bytes]] = [[], []]

            def eat(mine: list[bytes], rows: trommel.Rows = rows) -> None:  # type: ignore[assignment]
                mine.extend(key for key, _ in rows)

            threads = [threading.Thread(target=eat, args=(mine,)) for mine in seen]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert sorted(seen[0] + seen[1]) == [b"%08d" % number for number in range(ROWS)]


def together(threads: int, work: Callable[[int], None]) -> None:
    """Runs threads that begin at the same time, each with its number."""
    began, failures = threading.Barrier(threads), list[BaseException]()

    def begin(me: int) -> None:
        began.wait()
        try:
            work(me)
        except BaseException as error:
            failures.append(error)

    all_of_them = [threading.Thread(target=begin, args=(me,)) for me in range(threads)]
    for thread in all_of_them:
        thread.start()
    for thread in all_of_them:
        thread.join()
    assert failures == []


def test_threads_share_every_handle(tmp_path: Path) -> None:
    threads, rounds = 4, 50
    all_of_them = threads * rounds
    with trommel.open(tmp_path / "store", kept_log_bytes="16MiB") as store:
        empty, batch, events = store.snapshot(), store.write_batch(), store.keyspace("events")
        known = trommel.RangeFilter.build([b"%04d" % number for number in range(rounds)])

        def add_one(tx: trommel.Transaction) -> None:
            tx.put(b"sum", b"%d" % (int(tx.get(b"sum", b"0")) + 1))

        def write(me: int) -> None:
            for number in range(rounds):
                key = b"%d %04d" % (me, number)
                store[key] = key
                events.put(key, b"1")
                batch.put(b"batch " + key, key, keyspace=events if number % 2 else store)
                store.fetch_add(b"count")
                store.run(add_one)
                assert store.get(key) == key and key in store and list(empty.items()) == []
                assert store.get_many([key] * 200) == [key] * 200
                assert known.may_contain(b"%04d" % number)

        together(threads, write)
        assert len(batch) == all_of_them
        batch.write()
        assert store.count(prefix=b"batch ") + events.count(prefix=b"batch ") == all_of_them
        assert store.get(b"count") == all_of_them.to_bytes(8, "little")
        assert store.get(b"sum") == b"%d" % all_of_them
        store.sync()
        feed, told = store.changes_since(empty.sequence), [list[int]() for _ in range(threads)]
        together(threads, lambda me: told[me].extend(it.sequence for it in feed))
        expected = [it.sequence for it in store.changes_since(empty.sequence)]
        assert sorted(itertools.chain(*told)) == expected
        tx, seen = store.transaction(), [list[bytes]() for _ in range(threads)]
        rows = tx.items(b"0", b"9")
        together(threads, lambda me: seen[me].extend(key for key, _ in rows))
        assert sorted(itertools.chain(*seen)) == list(store.keys(b"0", b"9"))


def test_many_values_are_of_one_moment(tmp_path: Path) -> None:
    keys = [b"%04d" % number for number in range(300)]
    with trommel.open(tmp_path / "store") as store:
        store.put_many(dict.fromkeys(keys, b"0"))
        is_over = threading.Event()

        def write() -> None:
            for number in itertools.count(1):
                if is_over.is_set():
                    return
                with store.write_batch() as batch:
                    for key in keys:
                        batch.put(key, b"%d" % number)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for _ in range(200):
                assert len(set(store.get_many(keys))) == 1
        finally:
            is_over.set()
            writer.join()


@pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this interpreter has a lock"
)
def test_an_interpreter_without_a_lock_gets_none() -> None:
    ended = run("import sys, trommel; print(sys._is_gil_enabled())")
    assert (ended.returncode, ended.stdout.strip()) == (0, "False")


def test_closing_while_a_thread_reads_and_writes(tmp_path: Path) -> None:
    store = filled(tmp_path / "store")
    failures: list[BaseException] = []
    began = threading.Barrier(3)

    def until_closed(call: Callable[[], object]) -> None:
        began.wait()
        try:
            while True:
                call()
        except BaseException as error:
            failures.append(error)

    calls: list[Callable[[], object]] = [
        lambda: list(store.items()),
        lambda: store.put(b"a", b"1"),
    ]
    threads = [threading.Thread(target=until_closed, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    began.wait()
    time.sleep(0.05)
    store.close()
    for thread in threads:
        thread.join()
    assert [type(error) for error in failures] == [trommel.ClosedError] * 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_is_refused_and_the_parent_loses_nothing(tmp_path: Path) -> None:
    store = filled(tmp_path / "store", write_buffer_bytes=1 << 16)
    rows, snapshot, tx, batch = store.items(), store.snapshot(), store.transaction(), store.write_batch()
    next(rows)
    batch.put(b"a", b"1")
    child = os.fork()
    if child == 0:
        status = 0
        calls: list[Callable[[], object]] = [
            lambda: store.get(b"a"),
            lambda: store.put(b"a", b"child"),
            lambda: list(store.items()),
            lambda: store.get_many([b"a"] * 2000),
            lambda: store.name,
            lambda: store.keyspaces(),
            lambda: store.snapshot(),
            lambda: store.transaction(),
            lambda: next(rows),
            lambda: snapshot.get(b"a"),
            lambda: tx.get(b"a"),
            lambda: len(batch),
            lambda: [tx.put(b"x", b"y"), tx.commit()],  # type: ignore[func-returns-value]
            lambda: batch.write(),
            lambda: store.flush(),
            lambda: store.close(),
        ]
        for place, call in enumerate(calls):
            try:
                call()
                status = place + 1
            except trommel.ForkedError:
                pass
            except BaseException:
                status = place + 101
            if status:
                break
        else:
            # A child may have stores of its own.
            with trommel.open(tmp_path / "child") as own:
                own.put(b"a", b"1")
        os._exit(status)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    for number in range(1000):
        store.put(b"after %d" % number, b"1")
    assert len(list(rows)) == ROWS - 1
    store.close()
    with trommel.open(tmp_path / "store") as again:
        assert again.count(prefix=b"after") == 1000 and again.get(b"a") is None
    with trommel.open(tmp_path / "child") as own:
        assert own.get(b"a") == b"1"


def in_child(path: str, shared: object, answers: multiprocessing.SimpleQueue[str]) -> None:
    """What a child process does; `shared` is the parent's store where it was forked."""
    try:
        if isinstance(shared, trommel.Store):
            shared.get(b"a")
        trommel.open(path)
        answers.put("opened")
    except trommel.Error as error:
        answers.put(type(error).__name__)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_multiprocessing(tmp_path: Path, method: str) -> None:
    if method == "forkserver":
        pytest.skip("as spawn, from another process")
    context: Any = multiprocessing.get_context(method)
    with filled(tmp_path / "store") as store:
        answers = context.SimpleQueue()
        shared = store if method == "fork" else None
        process = context.Process(target=in_child, args=(str(tmp_path / "store"), shared, answers))
        process.start()
        answer = answers.get()
        process.join()
        assert process.exitcode == 0
        assert answer == ("ForkedError" if method == "fork" else "LockedError")
        store.put(b"later", b"1")
    with trommel.open(tmp_path / "store") as again:
        assert again.get(b"later") == b"1" and again.count() == ROWS + 1


def test_exit_amid_writes_loses_nothing_acknowledged(tmp_path: Path) -> None:
    code = """
        import sys, threading, time, trommel
        store = trommel.open(sys.argv[1], write_buffer_bytes=1 << 16, sync="never")
        done = [0, 0]
        def write(me):
            while True:
                try:
                    store.put(b"%d %08d" % (me, done[me]), b"v" * 100)
                except trommel.ClosedError:
                    continue
                done[me] += 1
        def read():
            while True:
                try:
                    list(store.items())
                except trommel.ClosedError:
                    pass
        for target, args in ((write, (0,)), (write, (1,)), (read, ())):
            threading.Thread(target=target, args=args, daemon=True).start()
        while min(done) < 200:
            time.sleep(0.001)
        print(*done)
    """
    for place in range(5):
        path = tmp_path / f"store {place}"
        ended = run(code, str(path))
        assert (ended.returncode, ended.stderr) == (0, "")
        acknowledged = [int(count) for count in ended.stdout.split()]
        with trommel.open(path) as store:
            for me, count in enumerate(acknowledged):
                keys = list(store.keys(prefix=b"%d " % me))
                assert len(keys) >= count >= 200
                assert keys == [b"%d %08d" % (me, number) for number in range(len(keys))]
            assert store.verify().damage == []


# A call that waited for a bulk load kept the interpreter's lock, without which no rows came.
@pytest.mark.parametrize("use", ["close", "put", "nothing"])
@pytest.mark.parametrize("load", ["ingest", "from_arrow"])
def test_exit_amid_bulk_loads(tmp_path: Path, load: str, use: str) -> None:
    if load == "from_arrow":
        pytest.importorskip("pyarrow", reason="pyarrow cannot be had")
    code = """
        import itertools, os, sys, threading, time, trommel
        path, load, use = sys.argv[1:]
        stores = [trommel.open(os.path.join(path, name)) for name in "ab"]
        began = [threading.Event() for _ in stores]
        def rows(me):
            for number in itertools.count():
                yield b"%012d" % number, b"v" * 100
                if number == 2000:
                    began[me].set()
        def table(me):
            import pyarrow
            schema = pyarrow.schema({"key": pyarrow.binary(), "value": pyarrow.binary()})
            def batches():
                for key, value in rows(me):
                    yield pyarrow.record_batch([[key], [value]], schema=schema)
            return pyarrow.RecordBatchReader.from_batches(schema, batches())
        # They stay: what pyarrow frees on a thread that ends with the interpreter may abort it.
        given = [rows(me) if load == "ingest" else table(me) for me in range(2)]
        def ingest(me):
            try:
                getattr(stores[me], load)(given[me])
            except trommel.ClosedError:
                pass
        def close(me):
            try:
                with stores[me]:
                    while True:
                        stores[me].get(b"a")
            except trommel.ClosedError:
                pass
        def put(me):
            try:
                while True:
                    stores[me].put(b"a", b"1")
            except trommel.ClosedError:
                pass
        def nothing(me):
            pass
        for me in range(2):
            threading.Thread(target=ingest, args=(me,), daemon=True).start()
        for each in began:
            each.wait()
        for me in range(2):
            threading.Thread(target=globals()[use], args=(me,), daemon=True).start()
        time.sleep(0.1)
    """
    ended = run(code, str(tmp_path), load, use, timeout=30)
    assert (ended.returncode, ended.stderr) == (0, "")
    for name in "ab":
        with trommel.open(tmp_path / name) as store:
            assert list(store.keys(b"0", b"a")) == [] and store.verify().damage == []


# The closing waited for the load, which waited for a row, for ever.
def test_exit_leaves_a_load_whose_rows_do_not_come(tmp_path: Path) -> None:
    code = """
        import os, queue, sys, threading, time, trommel
        path = sys.argv[1]
        loads = trommel.open(os.path.join(path, "loads"), sync="never")
        waits = trommel.open(os.path.join(path, "waits"), lock_timeout=60)
        loads.put(b"a", b"1")
        tx = waits.transaction()
        tx.get_for_update(b"a")
        began = threading.Event()
        def rows():
            yield b"b", b"2"
            began.set()
            queue.Queue().get()
        def put():
            try:
                waits.put(b"a", b"1")
            except trommel.ClosedError:
                print("closed", flush=True)
        for call in (lambda: loads.ingest(rows()), put):
            threading.Thread(target=call, daemon=True).start()
        began.wait()
        while waits.stats()["lock_waits.count"] == 0:
            time.sleep(0.005)
    """
    ended = run(code, str(tmp_path))
    assert (ended.returncode, ended.stderr) == (0, "")
    # The interpreter may end the thread before it has told all.
    assert "closed\n".startswith(ended.stdout)
    with trommel.open(tmp_path / "loads") as store:
        assert list(store.items()) == [(b"a", b"1")] and store.verify().damage == []


# It waited for hundreds of rows more.
def test_exit_ends_a_load_at_its_next_row(tmp_path: Path) -> None:
    code = """
        import sys, threading, time, trommel
        store = trommel.open(sys.argv[1])
        began = threading.Event()
        def rows():
            for number in range(300):
                yield b"%03d" % number, b""
                began.set()
                time.sleep(0.5)
        threading.Thread(target=store.ingest, args=(rows(),), daemon=True).start()
        threading.excepthook = lambda raised: print(raised.exc_type.__name__, flush=True)
        began.wait()
    """
    ended = run(code, str(tmp_path / "store"))
    assert (ended.returncode, ended.stderr) == (0, "")
    # The interpreter may end the thread before it has told all.
    assert "ClosedError\n".startswith(ended.stdout)
    with trommel.open(tmp_path / "store") as store:
        assert store.first() is None


# A follower is not closed at the exit, which waited until such a stream had another row.
def test_exit_ends_a_stream_of_arrow_among_deleted_rows(tmp_path: Path) -> None:
    code = """
        import atexit, ctypes, sys, threading, time
        def look():
            reads.join()
            print(*told)
        # What was registered first runs last: behind the package's own.
        atexit.register(look)
        import trommel
        with trommel.open(sys.argv[1], sync="never") as store:
            keys = [b"%08d" % number for number in range(500_000)]
            store.put_many_packed(keys, [b""] * len(keys))
            with store.write_batch() as batch:
                for key in keys:
                    batch.delete(key)
        capsule = trommel.follow(sys.argv[1]).to_arrow().__arrow_c_stream__()
        content_of = ctypes.pythonapi.PyCapsule_GetPointer
        content_of.restype = ctypes.c_void_p
        content_of.argtypes = [ctypes.py_object, ctypes.c_char_p]
        stream = content_of(capsule, b"arrow_array_stream")
        # What gives the schema, what gives the next batch.
        calls = (ctypes.c_void_p * 2).from_address(stream)
        next_batch = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(calls[1])
        batch, told = (ctypes.c_int64 * 10)(), []
        def read():
            told.append("failed" if next_batch(stream, ctypes.addressof(batch)) else "no more rows")
        reads = threading.Thread(target=read, daemon=True)
        reads.start()
        time.sleep(0.02)
    """
    ended = run(code, str(tmp_path / "store"))
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "failed\n", "")


# The caller went, but the closing waited until all was read.
def test_exit_ends_a_long_call(tmp_path: Path) -> None:
    code = """
        import sys, threading, time, trommel
        store = trommel.open(sys.argv[1], sync="never")
        keys = [b"%08d" % number for number in range(200_000)]
        store.put_many_packed(keys, [b"v" * 100] * len(keys))
        store.flush()
        begun = time.monotonic()
        store.verify()
        print(time.monotonic() - begun)
        def verify():
            while True:
                store.verify()
        threading.Thread(target=verify, daemon=True).start()
        threading.excepthook = lambda raised: None
        time.sleep(0.05)
        print(time.monotonic())
    """
    delays: list[float] = []
    for _ in range(3):
        ended = run(code, str(tmp_path / "store"), timeout=300)
        at = time.monotonic()
        assert (ended.returncode, ended.stderr) == (0, "")
        takes, exits = map(float, ended.stdout.split())
        delays.append((at - exits) / takes)
    # The best one counts: others may have waited for a processor.
    assert min(delays) < 0.5, delays


def test_exit_serves_the_thread_that_exits(tmp_path: Path) -> None:
    code = """
        import atexit, os, sys
        def work():
            with trommel.open(os.path.join(sys.argv[1], "late")) as late:
                late.put(b"a", b"1")
                late.ingest([(b"b", b"2")])
                late.flush()
                print(list(late.items()))
        # What was registered first runs last: behind the package's own.
        atexit.register(work)
        import trommel
    """
    ended = run(code, str(tmp_path))
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.strip() == "[(b'a', b'1'), (b'b', b'2')]"


def test_exit_closes_what_is_open(tmp_path: Path) -> None:
    code = """
        import atexit, sys
        def look():
            try:
                print(store.get(b"a"))
            except trommel.ClosedError:
                print("closed")
        # What was registered first runs last: behind the package's own.
        atexit.register(look)
        import trommel
        store = trommel.open(sys.argv[1])
        store.put(b"a", b"1")
    """
    ended = run(code, str(tmp_path / "store"))
    assert (ended.returncode, ended.stderr, ended.stdout.strip()) == (0, "", "closed")


def test_exit_with_living_handles(tmp_path: Path) -> None:
    code = """
        import sys, trommel
        store = trommel.open(sys.argv[1])
        store.put(b"a", b"1")
        rows, snapshot, tx = store.items(), store.snapshot(), store.transaction()
        next(rows)
    """
    ended = run(code, str(tmp_path / "store"))
    assert (ended.returncode, ended.stderr) == (0, "")
    with trommel.open(tmp_path / "store") as store:
        assert store.get(b"a") == b"1"


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise")
def test_a_signal_handler_may_close_the_store_that_a_write_waits_for(tmp_path: Path) -> None:
    code = """if True:
        import os, signal, sys, threading, trommel
        options = dict(write_buffer_bytes="4KiB", slow_down_runs=2, stop_runs=11)
        slow = dict(options, merge_bytes_per_second=1000)
        for name, given in [("locked", dict(lock_timeout=60)), ("slow", slow)]:
            store = trommel.open(os.path.join(sys.argv[1], name), **given)
            signal.signal(signal.SIGTERM, lambda *_: store.close())
            waits = lambda: store.stats()["lock_waits.count" if name == "locked" else "stops.count"]
            def kill():
                while not waits(): pass
                os.kill(os.getpid(), signal.SIGTERM)
            threading.Thread(target=kill, daemon=True).start()
            tx = store.transaction()
            if name == "locked":
                tx.get_for_update(b"0")
            try:
                for number in range(1_000_000):
                    store.put(b"%d" % number, b"x" * 400)
            except trommel.ClosedError:
                print(name)
    """
    ended = run(code, str(tmp_path))
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "locked\nslow\n", "")


@contextmanager
def handled_once_a_lock_is_waited_for(
    store: trommel.Store, handle: Callable[..., None]
) -> Generator[None]:
    """Sends this process a signal, which is handled while a call waits for a lock."""
    before = signal.signal(signal.SIGUSR1, handle)

    def send() -> None:
        while store.stats()["lock_waits.count"] == 0:
            time.sleep(0.005)
        os.kill(os.getpid(), signal.SIGUSR1)

    try:
        threading.Thread(target=send, daemon=True).start()
        yield
    finally:
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise")
def test_a_signal_handler_cannot_use_the_transaction_that_waits(store: trommel.Store) -> None:
    holder, waits = store.transaction(), store.transaction()
    holder.get_for_update(b"a")
    told: list[str] = []

    def handle(*_: object) -> None:
        with pytest.raises(ValueError) as refused:
            waits.get_for_update(b"b")
        told.append(str(refused.value))
        holder.roll_back()

    with handled_once_a_lock_is_waited_for(store, handle):
        assert waits.get_for_update(b"a") is None
    assert told == ["this thread is in a call of the transaction, which waits"]


# They ended without a word.
@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise")
def test_rows_of_a_transaction_go_on_after_an_error(store: trommel.Store) -> None:
    store.put_many([(b"%04d" % number, b"") for number in range(100)])
    holder, waits = store.transaction(), store.transaction()
    holder.get_for_update(b"a")
    rows, unread = waits.items(), waits.items(reverse=True)
    for _ in range(16):
        next(rows)

    def handle(*_: object) -> None:
        for each in (rows, unread):
            with pytest.raises(ValueError, match="which waits"):
                next(each)
        holder.roll_back()

    with handled_once_a_lock_is_waited_for(store, handle):
        assert waits.get_for_update(b"a") is None
    assert len(list(rows)) == 84 and len(list(unread)) == 100


# It waited for its own lock, for ever.
@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise")
def test_a_signal_handler_may_go_on_with_the_rows_that_are_read(tmp_path: Path) -> None:
    code = """
        import os, signal, sys, threading, trommel
        store = trommel.open(sys.argv[1])
        store.put_many((b"%08d" % number, b"v" * 100) for number in range(100_000))
        tx = store.transaction()
        for rows in (store.items(), tx.items()):
            taken = []
            def take(*_):
                taken.extend(row for row in [next(rows, None)] if row)
            signal.signal(signal.SIGUSR1, take)
            begun = threading.Event()
            def send():
                begun.wait()
                os.kill(os.getpid(), signal.SIGUSR1)
            sender = threading.Thread(target=send)
            sender.start()
            begun.set()
            # It is written in C, and looks for no signals: reading pieces of rows does.
            seen = list(rows)
            sender.join()
            print(len(seen) + len(taken))
    """
    ended = run(code, str(tmp_path / "store"))
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "100000\n100000\n", "")


def test_a_waiting_call_lets_other_threads_run(tmp_path: Path) -> None:
    with trommel.open(tmp_path / "store") as store:
        tx = store.transaction()
        tx.get_for_update(b"a")
        waits = threading.Thread(target=store.put, args=(b"a", b"1"))
        waits.start()
        # This thread goes on while that one waits for the lock; else nobody would free it.
        for number in range(1000):
            tx.put(b"%d" % number, b"1")
        tx.roll_back()
        waits.join()
        assert store.get(b"a") == b"1"
