"""A store for asyncio."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import enum
import functools
import itertools
import os
import weakref
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Generic, ParamSpec, TypeVar, cast

from ._logging import open as open_store

if TYPE_CHECKING:
    from ._trommel import Reader, Snapshot, Store, Transaction
    from ._types import BytesLike, ManyBytes, OptionValue

_P = ParamSpec("_P")
_T = TypeVar("_T")
#: Rows that a thread reads at once.
_PIECE = 256


class _OnDisk(enum.Enum):
    """A value that is not in memory."""

    IT = 0


_ON_DISK: Final = _OnDisk.IT


class _Call(Generic[_T]):
    """A call on its way to a thread. Unless it is wanted when its turn comes, it is not made."""

    def __init__(self, function: Callable[[], _T]) -> None:
        self.function = function
        self.is_wanted = True

    def __call__(self) -> _T | None:
        return self.function() if self.is_wanted else None


def _tell(loop: asyncio.AbstractEventLoop, what: Callable[[], None]) -> None:
    """Has a loop call something, unless it is closed: then nobody waits in it."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(what)


def _at_once(keys: ManyBytes) -> ManyBytes:
    """Keys for another thread: an array as it is, else a list of what was to be iterated."""
    try:
        memoryview(cast("Any", keys))
    except TypeError:
        return list(cast("Iterable[BytesLike]", keys))
    return keys


class AsyncStore:
    """A store whose calls are made by a pool of threads, for asyncio.

    At most `queue` calls of a loop wait or run at once; further callers wait in their coroutines. A call
    that is cancelled is made all the same if a thread has begun it, and has its place until then.

    >>> import asyncio, tempfile, trommel
    >>> async def main() -> bytes | None:
    ...     async with await trommel.AsyncStore.open(tempfile.mkdtemp()) as store:
    ...         await store.put(b"drum", b"turns")
    ...         async for key, value in store.items(prefix=b"d"):
    ...             print(key, value)
    ...         return await store.get(b"drum")
    >>> asyncio.run(main())
    b'drum' b'turns'
    b'turns'
    """

    def __init__(self, store: Store, *, threads: int = 4, queue: int = 64) -> None:
        """Of an open store. More threads: more calls wait for the disk at once."""
        if threads < 1 or queue < 1:
            raise ValueError("at least one thread, and a queue of at least one call")
        #: The store itself, for calls that do not wait.
        self.store = store
        self._queue = queue
        #: Of each loop its own: whoever waits, waits in one.
        self._rooms: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = (
            weakref.WeakKeyDictionary()
        )
        self._pool = concurrent.futures.ThreadPoolExecutor(threads, "trommel-async")

    @classmethod
    async def open(
        cls,
        path: str | os.PathLike[str],
        /,
        *,
        threads: int = 4,
        queue: int = 64,
        **options: OptionValue,
    ) -> AsyncStore:
        """Opens a store, as `trommel.open` does."""
        given = cast("dict[str, Any]", options)
        store = await asyncio.to_thread(functools.partial(open_store, path, **given))
        return cls(store, threads=threads, queue=queue)

    async def call(
        self, function: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs
    ) -> _T:
        """Makes any call on a thread of the pool, such as `call(db.store.compact)`."""
        loop = asyncio.get_running_loop()
        room = self._rooms.get(loop)
        if room is None:
            room = self._rooms[loop] = asyncio.Semaphore(self._queue)
        call = _Call(functools.partial(function, *args, **kwargs))
        await room.acquire()
        try:
            made = self._pool.submit(call)
        except BaseException:
            room.release()
            raise
        # It has its place until a thread is done with it, also when nobody waits for it any more.
        made.add_done_callback(lambda _: _tell(loop, room.release))
        answer = asyncio.wrap_future(made)
        # What nobody waits for any more is nobody's error.
        answer.add_done_callback(lambda done: done.cancelled() or done.exception())
        try:
            return cast("_T", await asyncio.shield(answer))
        except asyncio.CancelledError:
            call.is_wanted = False
            raise

    async def get(self, key: BytesLike) -> bytes | None:
        """The value of a key; None if it has none. What is in memory takes no thread."""
        found = self.store.get_if_cached(key, _ON_DISK)
        return await self.call(self.store.get, key) if found is _ON_DISK else found

    async def get_many(self, keys: ManyBytes) -> list[bytes | None]:
        """The values of many keys, at one moment."""
        return await self.call(self.store.get_many, _at_once(keys))

    async def put(self, key: BytesLike, value: BytesLike, *, ttl: float | None = None) -> None:
        """Sets the value of a key."""
        await self.call(self.store.put, key, value, ttl=ttl)

    async def put_many(
        self, items: Mapping[bytes, BytesLike] | Iterable[tuple[BytesLike, BytesLike]]
    ) -> int:
        """Sets the values of many keys, of a dict or of pairs, in batches."""
        if isinstance(items, dict):
            items = cast("dict[bytes, BytesLike]", items).items()
        pairs = cast("Iterable[tuple[BytesLike, BytesLike]]", items)
        return await self.call(self.store.put_many, list(pairs))

    async def delete(self, key: BytesLike) -> None:
        """Deletes a key."""
        await self.call(self.store.delete, key)

    async def delete_range(self, start: BytesLike, stop: BytesLike) -> None:
        """Deletes the keys from one on and before another."""
        await self.call(self.store.delete_range, start, stop)

    async def run(self, work: Callable[[Transaction], _T]) -> _T:
        """Runs a transaction on a thread, again while others are faster."""
        return await self.call(self.store.run, work)

    async def snapshot(self) -> Snapshot:
        """The store as it is now."""
        return await self.call(self.store.snapshot)

    async def items(
        self,
        start: BytesLike | None = None,
        stop: BytesLike | None = None,
        *,
        prefix: BytesLike | None = None,
        reverse: bool = False,
        source: Reader | None = None,
    ) -> AsyncIterator[tuple[bytes, bytes]]:
        """The keys of a range and their values; of a snapshot or key space if `source` is one."""
        reader = self.store if source is None else source
        rows = await self.call(
            lambda: reader.items(start, stop, prefix=prefix, reverse=reverse)
        )

        def piece() -> list[tuple[bytes, bytes]]:
            return list(itertools.islice(rows, _PIECE))

        try:
            while ahead := await self.call(piece):
                for row in ahead:
                    yield row
        finally:
            rows.close()

    async def sync(self) -> None:
        """Makes all writes so far durable."""
        await self.call(self.store.sync)

    async def close(self) -> None:
        """Closes the store and ends the threads, once their calls are done."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._pool.shutdown(wait=True)
        self.store.close()

    async def __aenter__(self) -> AsyncStore:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
