"""What calls give beside bytes."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

if TYPE_CHECKING:
    import datetime
    import os
    from collections.abc import Iterable
    from typing import Any, Protocol, TypeAlias

    from typing_extensions import Buffer

    #: A key or a value. The items of a key are single bytes.
    BytesLike: TypeAlias = Buffer
    #: Many keys or values: an array with a row for each, or objects with a buffer each.
    ManyBytes: TypeAlias = Buffer | Iterable[Buffer]

    class ArrowStream(Protocol):
        """A table, or batches."""

        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...

    class ArrowArray(Protocol):
        """One batch."""

        def __arrow_c_array__(self, requested_schema: Any = None) -> Any: ...

    #: A table of Arrow.
    ArrowTable: TypeAlias = ArrowStream | ArrowArray
    #: Seconds, or a time.
    Seconds: TypeAlias = float | datetime.timedelta
    #: The value of an option.
    OptionValue: TypeAlias = int | float | str | bool | datetime.timedelta | None
    #: The path of a folder.
    Path: TypeAlias = str | os.PathLike[str]


class Keep(enum.Enum):
    """The type of `KEEP`."""

    KEEP = "keep"

    def __repr__(self) -> str:
        return "trommel.KEEP"


#: What `update` is given for "leave the value as it is".
KEEP: Final = Keep.KEEP


class PackedValues(NamedTuple):
    """Many values in one piece: that of key `i` is `data[offsets[i]:offsets[i + 1]]`."""

    data: bytes
    #: One more than there are keys. Of format "Q": `numpy.asarray` makes an array of it.
    offsets: memoryview[int]
    #: Which keys have a value; one without has the length 0, too.
    found: memoryview[bool]


class Count(NamedTuple):
    """How many keys a range has: surely `least`, surely no more than `most`."""

    least: int
    estimate: int
    most: int


class VerifyReport(NamedTuple):
    """What was read, and what is damaged."""

    tables: int
    entries: int
    bytes: int
    #: With file and offset. Empty: the store is sound.
    damage: list[str]


class Staleness(NamedTuple):
    """How far a follower is behind."""

    #: The number of the newest write that reads see.
    sequence: int
    #: Seconds since the follower last looked, and all went well.
    since_look: float
    #: Seconds since such a look found something new.
    since_news: float
    #: Why the last look has failed; None: it went well.
    failure: str | None


class Change(NamedTuple):
    """A write."""

    #: Each write has a greater number than those before it.
    sequence: int
    #: The number of the key space; 0 is the default one.
    keyspace: int
    #: Its name; None: it was dropped before.
    keyspace_name: str | None
    kind: Literal["put", "merge", "delete", "delete_range", "unknown"]
    key: bytes
    #: The value or the operand; of a deleted range the key behind it.
    value: bytes | None
    #: When the value expires, in seconds since 1970; None: never.
    expiry: float | None


class ChangeBatch(NamedTuple):
    """Writes that were committed together."""

    #: With it a feed goes on behind the batch.
    sequence: int
    changes: list[Change]
