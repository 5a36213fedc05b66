"""Errors of the store. Each class has the stable code of the errors that it is for."""

from __future__ import annotations


class Error(Exception):
    """Something went wrong. The text says what, where, and what to do.

    `code` is a number that no other kind of error ever has.
    """

    code: int = 0


class DiskError(Error, OSError):
    """The disk refused. Make room or repair it, then make the call again."""

    code = 1


class CorruptError(Error):
    """Bytes are wrong. Restore the file from a copy."""

    code = 2


class FileMissingError(Error):
    """A file that is needed is missing. Restore it from a copy."""

    code = 3


class NotAStoreError(Error):
    """The folder holds files, but no store."""

    code = 4


class NotEmptyError(Error):
    """The folder is for a new store, but has files."""

    code = 5


class MissingError(Error):
    """There is no store here, and none was to be made."""

    code = 6


class VersionError(Error):
    """Another version of Trommel wrote this."""

    code = 7


class LockedError(Error):
    """The store is open already, in this process or in another one."""

    code = 8


class ClosedError(Error):
    """The store was closed, or the transaction has ended."""

    code = 9


class ForkedError(Error):
    """The store was opened before this process was forked. A child opens its own."""

    code = 10


class KeyTooLongError(Error, ValueError):
    """A key is longer than a store accepts."""

    code = 11


class ValueTooLongError(Error, ValueError):
    """A value is longer than a store accepts."""

    code = 12


class BatchTooLongError(Error, ValueError):
    """A batch is longer than a store accepts. Write it in parts."""

    code = 13


class UnsortedError(Error, ValueError):
    """Keys to ingest are out of order, or come twice. Nothing was written."""

    code = 14


class InvertedRangeError(Error, ValueError):
    """A range to delete ends before it begins. Nothing was written."""

    code = 15


class OptionError(Error, ValueError):
    """There is no such option, or its value makes no sense."""

    code = 16


class StoppedError(Error):
    """Background work has failed, and writes wait for it. It is tried again."""

    code = 17


class PanickedError(Error):
    """A thread panicked. No acknowledged write is lost."""

    code = 18


class FlushUnderWayError(Error):
    """Another thread runs a flush that must come first. Make the call again."""

    code = 19


class MalformedError(Error, ValueError):
    """Bytes that should be packed writes are none."""

    code = 20


class CancelledError(Error):
    """The call was stopped before it was done. Nothing has changed."""

    code = 21


class NoKeyspaceError(Error):
    """There is no key space of that name."""

    code = 22


class KeyspaceExistsError(Error):
    """There is a key space of that name already."""

    code = 23


class KeyspaceDroppedError(Error):
    """The key space was dropped."""

    code = 24


class ConflictError(Error):
    """Others have written a key since it was read. Nothing was written: run it again."""

    code = 25


class NoCounterError(Error, ValueError):
    """A value that is to be added to is no number of 8 bytes."""

    code = 26


class LockTimeoutError(Error):
    """A transaction has kept a key locked for too long. Nothing was written."""

    code = 27


class DeadlockError(Error):
    """Transactions wait for each other. Nothing was written: run it again."""

    code = 28


class NoMergeOperatorError(Error):
    """The key space is open without its merge operator."""

    code = 29


class MergeFailedError(Error):
    """The merge operator makes no value of a key and its operands."""

    code = 30


class GoneError(Error):
    """Changes cannot be told any more, or a file that a follower needs was removed."""

    code = 31


class FeatureMissingError(Error):
    """A file needs a feature that this package was built without."""

    code = 32


def _all() -> list[type[Error]]:
    return [kind for kind in Error.__subclasses__() if kind.__module__ == __name__]


#: The class of each code.
BY_CODE: dict[int, type[Error]] = {kind.code: kind for kind in _all()}

#: After these a transaction is run again.
RETRIED: tuple[type[Error], ...] = (ConflictError, DeadlockError)
