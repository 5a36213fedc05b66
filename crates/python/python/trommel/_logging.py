"""Opening a store, and its events in `logging`."""

from __future__ import annotations

import logging
import os
import threading
from typing import TYPE_CHECKING, Any, cast

from ._trommel import EventQueue
from ._trommel import open as open_store

if TYPE_CHECKING:
    from ._trommel import Store
    from ._types import OptionValue


def open(
    path: str | os.PathLike[str],
    /,
    *,
    logger: logging.Logger | None = None,
    **options: OptionValue,
) -> Store:
    """Opens the store in a folder, and makes one if there is none.

    `options` are those of the store, by name: `trommel.options()` lists them. Sizes are numbers or
    texts such as "64MiB"; `preset` names the options to begin with. With a `logger`, a thread
    logs what happens in the store, until it is closed: flushes, merges, slow writers, failures.

    >>> import tempfile, trommel
    >>> store = trommel.open(tempfile.mkdtemp(), write_buffer_bytes="16MiB", sync="always")
    >>> store.put(b"drum", b"turns")
    >>> store.close()

    Raises `LockedError` if it is open already, here or elsewhere; `NotAStoreError`, `VersionError`,
    `CorruptError`, `OptionError`.
    """
    given = cast("dict[str, Any]", options)
    if logger is None:
        return open_store(path, **given)
    events = EventQueue()
    store = open_store(path, events=events, **given)
    threading.Thread(
        target=_log, args=(events, logger), name="trommel-events", daemon=True
    ).start()
    return store


def _log(events: EventQueue, logger: logging.Logger) -> None:
    lost = 0
    while True:
        told = events.next(1.0)
        if events.lost > lost:
            logger.warning("%d events found no room", events.lost - lost)
            lost = events.lost
        if told is None:
            continue
        name, level, text = told
        logger.log(level, "%s", text, extra={"event": name})
        if name == "closed":
            return
