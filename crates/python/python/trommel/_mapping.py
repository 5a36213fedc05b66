"""A key space as a mapping."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, MutableMapping, ValuesView
from typing import TYPE_CHECKING, TypeVar, overload

if TYPE_CHECKING:
    from ._trommel import Keyspace
    from ._types import BytesLike

_D = TypeVar("_D")
_MISSING = object()


class _Keys(KeysView[bytes]):
    """Keys, as they are when one begins to go over them."""

    __slots__ = ()
    _mapping: MappingView

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._mapping)

    def __reversed__(self) -> Iterator[bytes]:
        return reversed(self._mapping)


class _Values(ValuesView[bytes]):
    """Values, as they are when one begins to go over them."""

    __slots__ = ("_keyspace",)

    def __init__(self, mapping: MappingView, keyspace: Keyspace) -> None:
        super().__init__(mapping)
        self._keyspace = keyspace

    def __iter__(self) -> Iterator[bytes]:
        return self._keyspace.values()

    def __reversed__(self) -> Iterator[bytes]:
        return self._keyspace.values(reverse=True)

    def __contains__(self, value: object) -> bool:
        return any(value == there for there in self)


class _Items(ItemsView[bytes, bytes]):
    """Keys with their values, as they are when one begins to go over them."""

    __slots__ = ("_keyspace",)

    def __init__(self, mapping: MappingView, keyspace: Keyspace) -> None:
        super().__init__(mapping)
        self._keyspace = keyspace

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        return self._keyspace.items()

    def __reversed__(self) -> Iterator[tuple[bytes, bytes]]:
        return self._keyspace.items(reverse=True)


class MappingView(MutableMapping[bytes, bytes]):
    """A key space as a `MutableMapping`, in the order of its keys.

    Each call is one step: nobody else writes the key between. What goes over keys, values or both
    shows one moment. `len` is refused, since it would have to count.

    >>> import tempfile, trommel
    >>> store = trommel.open(tempfile.mkdtemp())
    >>> view = store.mapping()
    >>> view[b"b"] = b"2"
    >>> view.setdefault(b"a", b"1")
    b'1'
    >>> list(view.items()), b"a" in view, view.pop(b"b")
    ([(b'a', b'1'), (b'b', b'2')], True, b'2')
    >>> store.close()
    """

    __slots__ = ("_keyspace",)

    def __init__(self, keyspace: Keyspace) -> None:
        self._keyspace = keyspace

    def __getitem__(self, key: BytesLike) -> bytes:
        return self._keyspace[key]

    def __setitem__(self, key: BytesLike, value: BytesLike) -> None:
        self._keyspace[key] = value

    def __delitem__(self, key: BytesLike) -> None:
        del self._keyspace[key]

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._keyspace)

    def __reversed__(self) -> Iterator[bytes]:
        return self._keyspace.keys(reverse=True)

    def __len__(self) -> int:
        return len(self._keyspace)

    def __bool__(self) -> bool:
        return self._keyspace.first() is not None

    def __contains__(self, key: object) -> bool:
        return key in self._keyspace

    def keys(self) -> _Keys:
        """The keys, in their order."""
        return _Keys(self)

    def values(self) -> _Values:
        """The values, in the order of their keys."""
        return _Values(self, self._keyspace)

    def items(self) -> _Items:
        """The keys with their values, in the order of the keys."""
        return _Items(self, self._keyspace)

    @overload
    def pop(self, key: BytesLike, /) -> bytes: ...
    @overload
    def pop(self, key: BytesLike, /, default: bytes | _D) -> bytes | _D: ...
    def pop(self, key: BytesLike, /, default: object = _MISSING) -> object:
        """Deletes a key, and gives its value."""
        value = self._keyspace.take(key)
        if value is not None:
            return value
        if default is _MISSING:
            raise KeyError(bytes(key))
        return default

    def popitem(self) -> tuple[bytes, bytes]:
        """Deletes the greatest key, and gives it with its value."""
        while (last := self._keyspace.last()) is not None:
            value = self._keyspace.take(last[0])
            if value is not None:
                return last[0], value
        raise KeyError("popitem(): there are no keys")

    def setdefault(self, key: BytesLike, default: BytesLike | None = None, /) -> bytes:
        """Sets the value of a key that has none, and gives the one that it has then."""
        if default is None:
            there = self._keyspace.get(key)
            if there is None:
                raise TypeError("a value is bytes: name the default")
            return there
        there = self._keyspace.put_if_absent(key, default)
        return bytes(default) if there is None else there

    def clear(self) -> None:
        """Deletes all keys that there are."""
        while (last := self._keyspace.last()) is not None:
            # The key behind the greatest one may be too long to be named.
            with self._keyspace.write_batch() as batch:
                batch.delete_range(b"", last[0])
                batch.delete(last[0])

    def __repr__(self) -> str:
        return f"<trommel.MappingView of {self._keyspace.name!r}>"
