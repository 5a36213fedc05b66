"""Arrays and filters."""

from __future__ import annotations

import array
import bisect
import ctypes
import random
from collections.abc import Callable
from typing import Any

import pytest
import trommel


@pytest.fixture
def numpy() -> Any:
    return pytest.importorskip("numpy", reason="numpy cannot be had")


def test_rows_of_bytes_are_keys(store: trommel.Store, numpy: Any) -> None:
    keys = numpy.arange(12, dtype=numpy.uint8).reshape(4, 3)
    assert store.put_many_packed(keys, keys[:, ::-1]) == 4
    assert dict(store.items()) == {bytes(row): bytes(row[::-1]) for row in keys}
    assert store.get_many(keys[::-1]) == [bytes(row[::-1]) for row in keys[::-1]]
    with pytest.raises(ValueError, match="two dimensions"):
        store.get_many(keys[0])
    with pytest.raises(ValueError, match="as many"):
        store.put_many_packed(keys, keys[:2])
    with pytest.raises(TypeError, match="uint8 or uint64"):
        store.get_many(keys.astype(numpy.float32))


@pytest.mark.parametrize("kind", ["<u8", ">u8"])
def test_numbers_are_keys_in_their_order(store: trommel.Store, kind: str, numpy: Any) -> None:
    numbers = numpy.array([1, 256, 2**63, 2**64 - 1, 0], dtype=kind)
    values = numpy.arange(10, dtype=numpy.uint32).reshape(5, 2)
    store.put_many_packed(numbers, values)
    assert list(store) == [int(it).to_bytes(8, "big") for it in sorted(numbers.tolist())]
    packed = store.get_many_packed(numbers)
    assert numpy.asarray(packed.offsets).tolist() == [0, 8, 16, 24, 32, 40]
    assert numpy.asarray(packed.found).tolist() == [True] * 5
    assert (numpy.frombuffer(packed.data, numpy.uint32).reshape(5, 2) == values).all()
    pairs = numpy.stack([numbers, numbers], axis=1)
    assert store.get_many(pairs) == [None] * 5


def test_an_array_of_the_standard_library_will_do(store: trommel.Store) -> None:
    numbers = array.array("Q", [3, 1, 2])
    store.put_many_packed(numbers, [b"c", b"a", b"b"])
    assert list(store.values()) == [b"a", b"b", b"c"]


def test_rows_without_bytes(store: trommel.Store, numpy: Any) -> None:
    nothing = numpy.zeros((3, 0), dtype=numpy.uint8)
    assert store.get_many(nothing) == [None] * 3
    assert store.get_many(numpy.zeros((0, 8), dtype=numpy.uint8)) == []


# Memory for the rows that were claimed could not be had, and the process was aborted.
def test_more_rows_without_bytes_than_memory_has_room_for(store: trommel.Store, numpy: Any) -> None:
    rows = numpy.empty((2**50, 0), dtype=numpy.uint8)
    calls: list[Callable[[], object]] = [
        lambda: store.get_many(rows),
        lambda: store.get_many_packed(rows),
        lambda: store.put_many_packed(rows, rows),
        lambda: store.may_contain_many(rows),
        lambda: store.may_contain_range_many(rows, rows),
        lambda: trommel.RangeFilter.build(rows),
    ]
    for call in calls:
        with pytest.raises(MemoryError):
            call()


# Addresses became values.
def test_objects_are_no_bytes(store: trommel.Store, numpy: Any) -> None:
    objects = numpy.array([[object()], [object()]])
    structured = numpy.zeros((2, 1), dtype=[("number", "u1"), ("it", "O")])
    for rows in (objects, structured):
        with pytest.raises(TypeError, match="addresses"):
            store.put_many_packed([b"a", b"b"], rows)
        with pytest.raises(TypeError, match="addresses"):
            store.put(b"a", rows)
        assert store.count() == 0
    # Names of fields are not types, and complex numbers are no texts.
    named = numpy.zeros((2, 1), dtype=[("OP", "u1"), ("Z", "u1")])
    assert store.put_many_packed([b"a", b"b"], named) == 2
    for kind in ("c8", "c16", [("it", "c16"), ("Z", "u1")]):
        assert store.put_many_packed([b"a", b"b"], numpy.zeros((2, 1), dtype=kind)) == 2


class Named(ctypes.Structure):
    """It has the address of its name."""

    _fields_ = [("name", ctypes.c_char_p), ("number", ctypes.c_double)]


# Addresses of texts became values.
@pytest.mark.parametrize(
    "kind",
    [
        ctypes.POINTER(ctypes.c_int),
        ctypes.CFUNCTYPE(None),
        ctypes.c_void_p,
        ctypes.c_char_p,
        ctypes.c_wchar_p,
        ctypes.py_object,
        Named,
    ],
)
def test_pointers_are_no_bytes(store: trommel.Store, kind: Any) -> None:
    rows = (kind * 1 * 2)()
    with pytest.raises(TypeError, match="addresses"):
        store.put_many_packed([b"a", b"b"], rows)
    for single in (rows, kind()):
        with pytest.raises(TypeError, match="addresses"):
            store.put(b"a", single)
    assert store.count() == 0


def test_scalars_of_numbers_and_texts_are_no_keys(store: trommel.Store, numpy: Any) -> None:
    store.put_many_packed(numpy.array([5], dtype=numpy.uint64), [b"five"])
    with pytest.raises(TypeError, match="to_bytes"):
        store.get(numpy.uint64(5))
    for key, value in ((numpy.str_("a"), b"1"), (b"a", numpy.str_("1"))):
        with pytest.raises(TypeError, match="encode the text"):
            store.put(key, value)
    assert store.get(int(numpy.uint64(5)).to_bytes(8, "big")) == b"five"
    assert store.get(numpy.bytes_(b"a")) is None and store.get(numpy.frombuffer(b"a", "u1")) is None


def test_false_means_that_there_is_none(store: trommel.Store, numpy: Any) -> None:
    draw = random.Random(1)
    keys = numpy.array(sorted(draw.randrange(2**64) for _ in range(5000)), dtype=numpy.uint64)
    store.put_many_packed(keys, [b"v"] * len(keys))
    store.flush()
    assert all(store.may_contain_many(keys))
    others = numpy.array([draw.randrange(2**64) for _ in range(5000)], dtype=numpy.uint64)
    assert sum(store.may_contain_many(others)) < 2500
    low = keys[:-1] + (keys[1:] - keys[:-1]) // numpy.uint64(3)
    may = store.may_contain_range_many(low, low + numpy.uint64(1))
    assert may.format == "?" and sum(may) < 2500
    assert all(store.may_contain_range_many(keys, keys + numpy.uint64(1)))
    snapshot = store.snapshot()
    assert all(snapshot.may_contain_many(keys))


@pytest.mark.parametrize("kind", trommel.filter_kinds())
def test_filters_of_every_kind(kind: str, numpy: Any) -> None:
    draw = random.Random(2)
    numbers = sorted({draw.randrange(2**64) for _ in range(3000)})
    keys = numpy.array(numbers, dtype=numpy.uint64)
    built = trommel.RangeFilter.build(keys, 16, kind=kind)
    again = trommel.RangeFilter.from_bytes(built.to_bytes())
    assert built.kind == again.kind == kind and again.to_bytes() == built.to_bytes()
    starts = numpy.array([draw.randrange(2**64 - 2**48) for _ in range(2000)], dtype=numpy.uint64)
    stops = starts + numpy.array([draw.randrange(2**48) for _ in range(2000)], dtype=numpy.uint64)
    for one in (built, again):
        assert all(one.may_contain_many(keys))
        assert one.may_contain(numbers[7].to_bytes(8, "big"))
        answers = one.may_contain_range_many(starts, stops)
        for start, stop, may in zip(starts.tolist(), stops.tolist(), answers, strict=True):
            has = bisect.bisect_left(numbers, start) < bisect.bisect_left(numbers, stop)
            assert may or not has
        assert one.may_contain_range() and one.may_contain_range(b"\xff", b"a") is False
    assert built.nbytes <= len(built.to_bytes()) < 3 * 3000


def test_filters_say_no_where_they_can() -> None:
    keys = array.array("Q", range(0, 1 << 40, 1 << 30))
    built = trommel.RangeFilter.build(keys, 20)
    assert built.knows_ranges and "cell" in repr(built)
    starts = array.array("Q", [place + (1 << 29) for place in keys[:-1]])
    stops = array.array("Q", [place + (1 << 29) + 100 for place in keys[:-1]])
    assert sum(built.may_contain_range_many(starts, stops)) < len(starts) // 10


def test_filters_refuse_what_is_none() -> None:
    built = trommel.RangeFilter.build([b"a", b"b"])
    data = bytearray(built.to_bytes())
    for at in range(len(data)):
        data[at] ^= 1
        with pytest.raises((trommel.CorruptError, ValueError)):
            trommel.RangeFilter.from_bytes(data)
        data[at] ^= 1
    for end in range(len(data)):
        with pytest.raises(trommel.CorruptError):
            trommel.RangeFilter.from_bytes(data[:end])
    with pytest.raises(ValueError, match="ascending"):
        trommel.RangeFilter.build([b"b", b"a"])
    with pytest.raises(ValueError, match="there are: "):
        trommel.RangeFilter.build([b"a"], kind="none")
    for bits in (0.0, 100.0, float("nan")):
        with pytest.raises(ValueError, match="1 to 64"):
            trommel.RangeFilter.build([b"a"], bits)
