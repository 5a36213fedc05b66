"""asyncio, and `logging`."""

from __future__ import annotations

import array
import asyncio
import concurrent.futures
import logging
import threading
from pathlib import Path
from typing import Any

import pytest
import trommel


def test_calls_of_coroutines(tmp_path: Path) -> None:
    async def main() -> None:
        async with await trommel.AsyncStore.open(tmp_path / "store", sync="never") as db:
            assert await db.put_many((b"%04d" % at, b"v") for at in range(1000)) == 1000
            assert await db.put_many({b"a dict": b"1", b"a second": b"2"}) == 2
            assert await db.get_many([b"a dict", b"a second"]) == [b"1", b"2"]
            await db.delete_range(b"a", b"b")
            await db.put(b"x", b"1", ttl=100)
            assert await db.get(b"x") == b"1"
            assert await db.get_many([b"0001", b"y"]) == [b"v", None]
            assert [key async for key, _ in db.items(b"0", b"1")] == [
                b"%04d" % at for at in range(1000)
            ]
            before = await db.snapshot()
            await db.delete_range(b"0", b"1")
            await db.delete(b"x")
            assert [key async for key, _ in db.items()] == []
            assert len([key async for key, _ in db.items(source=before, reverse=True)]) == 1001
            await db.run(lambda tx: tx.put(b"t", b"1"))
            assert await db.call(db.store.count) == 1
            await db.sync()
            async for _ in db.items():
                break
        with pytest.raises(trommel.ClosedError):
            db.store.get(b"x")

    asyncio.run(main())


# Numbers were iterated, and became bytes of the machine's order.
def test_arrays_of_keys_are_read_as_the_store_reads_them(tmp_path: Path) -> None:
    numbers = array.array("Q", [5, 256])

    async def main() -> None:
        async with await trommel.AsyncStore.open(tmp_path / "store") as db:
            db.store.put_many_packed(numbers, [b"five", b"more"])
            assert await db.get_many(numbers) == db.store.get_many(numbers) == [b"five", b"more"]
            keys = [number.to_bytes(8, "big") for number in numbers]
            assert await db.get_many(iter(keys)) == [b"five", b"more"]
            for wrong in (b"key", "key"):
                with pytest.raises(TypeError):
                    await db.get_many(wrong)  # type: ignore[arg-type]

    asyncio.run(main())


def test_no_more_calls_at_once_than_the_queue_has_room_for(tmp_path: Path) -> None:
    at_once, most, guard = 0, 0, threading.Lock()

    def work() -> None:
        nonlocal at_once, most
        with guard:
            at_once += 1
            most = max(most, at_once)
        threading.Event().wait(0.005)
        with guard:
            at_once -= 1

    async def main() -> None:
        async with await trommel.AsyncStore.open(tmp_path / "store", threads=8, queue=3) as db:
            await asyncio.gather(*(db.call(work) for _ in range(30)))

    asyncio.run(main())
    assert 1 <= most <= 3
    with pytest.raises(ValueError, match="at least one"):
        with trommel.open(tmp_path / "store") as store:
            trommel.AsyncStore(store, threads=0)


def test_cancelled_calls_keep_their_places_until_a_thread_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submitted, free = [0], threading.Event()
    submit = concurrent.futures.ThreadPoolExecutor.submit

    def counted(*args: Any, **kwargs: Any) -> Any:
        submitted[0] += 1
        return submit(*args, **kwargs)

    monkeypatch.setattr(concurrent.futures.ThreadPoolExecutor, "submit", counted)

    async def main() -> None:
        store = trommel.open(tmp_path / "store")
        async with trommel.AsyncStore(store, threads=1, queue=2) as db:
            first = asyncio.create_task(db.call(free.wait, 60))
            while submitted[0] == 0:
                await asyncio.sleep(0)
            for at in range(10):
                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(db.put(b"%d" % at, b""), 0.01)
            assert submitted[0] == 2
            free.set()
            assert await first
            await db.put(b"last", b"")
            assert list(store.keys()) == [b"last"], "what was cancelled in time was not made"

    asyncio.run(main())


def test_a_store_serves_one_loop_after_another(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    free = threading.Event()

    async def puts(db: trommel.AsyncStore, first: int) -> None:
        await asyncio.gather(*(db.put(b"%d" % (first + at), b"") for at in range(8)))

    async def leaves_one(db: trommel.AsyncStore) -> None:
        calls = [db.call(free.wait, 60), db.put(b"never", b""), db.put(b"never", b"")]
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.gather(*calls), 0.05)

    with trommel.open(tmp_path / "store") as store:
        db = trommel.AsyncStore(store, threads=1, queue=1)
        for loop in range(3):
            asyncio.run(puts(db, 10 * loop))
        asyncio.run(leaves_one(db))
        threading.Timer(0.1, free.set).start()
        asyncio.run(asyncio.wait_for(puts(db, 100), 60))
        assert store.count() == 32
    assert [it for it in caplog.records if "never retrieved" in it.getMessage()] == []


def test_events_are_logged(tmp_path: Path) -> None:
    told: list[logging.LogRecord] = []
    ended = threading.Event()

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told.append(record)
            if "closed" in record.getMessage():
                ended.set()

    logger = logging.Logger("trommel.test", logging.DEBUG)
    logger.addHandler(Handler())
    with trommel.open(tmp_path / "store", logger=logger) as store:
        store.put(b"a", b"1")
        store.flush()
    assert ended.wait(60)
    messages = [record.getMessage() for record in told]
    assert messages[0].startswith("opened ") and messages[-1].startswith("closed ")
    assert any(message.startswith("flushed ") for message in messages)
    assert [record.levelno for record in told][0] == logging.INFO
