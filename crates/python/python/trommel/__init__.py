"""Trommel: an embedded, persistent key-value store.

Before it opens a file, it asks one small filter in memory which sorted runs may hold a key or a
range. So misses and empty ranges cost nearly nothing.

>>> import tempfile, trommel
>>> with trommel.open(tempfile.mkdtemp()) as store:
...     store.put(b"zug", b"47.17 N")
...     store.get(b"zug")
b'47.17 N'
"""

from __future__ import annotations

import atexit as _atexit
import os as _os

from . import _trommel
from ._errors import (
    BatchTooLongError,
    CancelledError,
    ClosedError,
    ConflictError,
    CorruptError,
    DeadlockError,
    DiskError,
    Error,
    FeatureMissingError,
    FileMissingError,
    FlushUnderWayError,
    ForkedError,
    GoneError,
    InvertedRangeError,
    KeyspaceDroppedError,
    KeyspaceExistsError,
    KeyTooLongError,
    LockedError,
    LockTimeoutError,
    MalformedError,
    MergeFailedError,
    MissingError,
    NoCounterError,
    NoKeyspaceError,
    NoMergeOperatorError,
    NotAStoreError,
    NotEmptyError,
    OptionError,
    PanickedError,
    StoppedError,
    UnsortedError,
    ValueTooLongError,
    VersionError,
)
from ._logging import open
from ._mapping import MappingView
from ._trommel import (
    ArrowRows,
    Changes,
    FollowedKeyspace,
    Follower,
    Generation,
    Keyspace,
    RangeFilter,
    Reader,
    Rows,
    Savepoint,
    Snapshot,
    Store,
    Transaction,
    TransactionIn,
    TransactionRows,
    WriteBatch,
    __version__,
    filter_kinds,
    follow,
    generations,
    options,
    prune,
    restore,
    verify_backup,
)
from ._types import KEEP, Change, ChangeBatch, Count, Keep, PackedValues, Staleness, VerifyReport
from .aio import AsyncStore

# Whoever still writes when the interpreter exits loses nothing that was acknowledged.
_atexit.register(_trommel.end)
# A child must not wait for what threads hold that it does not have.
if hasattr(_os, "register_at_fork"):
    _os.register_at_fork(after_in_child=_trommel.forked)

__all__ = [
    "KEEP",
    "ArrowRows",
    "AsyncStore",
    "BatchTooLongError",
    "CancelledError",
    "Change",
    "ChangeBatch",
    "Changes",
    "ClosedError",
    "ConflictError",
    "CorruptError",
    "Count",
    "DeadlockError",
    "DiskError",
    "Error",
    "FeatureMissingError",
    "FileMissingError",
    "FlushUnderWayError",
    "FollowedKeyspace",
    "Follower",
    "ForkedError",
    "Generation",
    "GoneError",
    "InvertedRangeError",
    "Keep",
    "KeyTooLongError",
    "Keyspace",
    "KeyspaceDroppedError",
    "KeyspaceExistsError",
    "LockTimeoutError",
    "LockedError",
    "MalformedError",
    "MappingView",
    "MergeFailedError",
    "MissingError",
    "NoCounterError",
    "NoKeyspaceError",
    "NoMergeOperatorError",
    "NotAStoreError",
    "NotEmptyError",
    "OptionError",
    "PackedValues",
    "PanickedError",
    "RangeFilter",
    "Reader",
    "Rows",
    "Savepoint",
    "Snapshot",
    "Staleness",
    "StoppedError",
    "Store",
    "Transaction",
    "TransactionIn",
    "TransactionRows",
    "UnsortedError",
    "ValueTooLongError",
    "VerifyReport",
    "VersionError",
    "WriteBatch",
    "__version__",
    "filter_kinds",
    "follow",
    "generations",
    "open",
    "options",
    "prune",
    "restore",
    "verify_backup",
]
