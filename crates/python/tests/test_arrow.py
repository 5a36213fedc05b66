"""Tables of Arrow."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import trommel

pyarrow = pytest.importorskip("pyarrow", reason="pyarrow cannot be had")


class OnlyStream:
    """What other libraries than pyarrow have."""

    def __init__(self, table: object) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)  # type: ignore[attr-defined]


def test_rows_become_a_table_and_come_back(store: trommel.Store, tmp_path: Path) -> None:
    rows = [(b"%05d" % number, bytes(number % 300)) for number in range(5000)]
    store.put_many(rows)
    arrow = store.to_arrow(batch_rows=1000)
    batches = list(pyarrow.RecordBatchReader.from_stream(arrow))
    assert [batch.num_rows for batch in batches] == [1000] * 5
    table = pyarrow.table(arrow)
    assert table.column("key").to_pylist() == [key for key, _ in rows]
    assert table.column("value").to_pylist() == [value for _, value in rows]
    assert pyarrow.table(store.to_arrow(prefix=b"0001")).num_rows == 10
    assert pyarrow.table(store.snapshot().to_arrow(b"9")).num_rows == 0
    with trommel.open(tmp_path / "other") as other:
        assert other.from_arrow(table) == 5000
        assert list(other.items()) == rows
        inner = other.keyspace("inner")
        assert inner.from_arrow(OnlyStream(table)) == 5000
        assert list(inner.items()) == rows
        assert other.keyspace("direct").from_arrow(store.to_arrow()) == 5000
    with pytest.raises(ValueError, match="at least one row"):
        store.to_arrow(batch_rows=0)


def test_a_stream_shows_one_moment(store: trommel.Store) -> None:
    store.put_many([(b"%05d" % number, b"old") for number in range(3000)])
    reader = pyarrow.RecordBatchReader.from_stream(store.to_arrow(batch_rows=1000))
    store.put_many([(b"%05d" % number, b"new") for number in range(3000)])
    table = reader.read_all()
    assert set(table.column("value").to_pylist()) == {b"old"} and table.num_rows == 3000
    later = pyarrow.RecordBatchReader.from_stream(store.to_arrow(batch_rows=1000))
    store.close()
    with pytest.raises(Exception, match="was closed"):
        later.read_all()


# The message had a zero, and the process was aborted.
def test_a_stream_that_fails_is_an_error_whatever_its_message(tmp_path: Path) -> None:
    code = """if True:
        import sys, pyarrow, trommel
        store = trommel.open(sys.argv[1])
        named = store.keyspace("a\\0b")
        named.put_many([(b"%05d" % number, b"v") for number in range(3000)])
        reader = pyarrow.RecordBatchReader.from_stream(named.to_arrow(batch_rows=1000))
        store.drop_keyspace("a\\0b")
        try:
            reader.read_all()
        except Exception as error:
            print(error)
    """
    command = [sys.executable, "-c", code, str(tmp_path / "store")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "dropped" in ended.stdout and r"a\0b" in ended.stdout


@pytest.mark.parametrize(
    "kind", ["binary", "large_binary", "binary_view", "string", "large_string", "string_view"]
)
def test_columns_of_bytes_and_text(store: trommel.Store, kind: str) -> None:
    column = pyarrow.array(["a", "b", "c, which is longer than a view has room for"])
    column = column.cast(pyarrow.binary()) if "binary" in kind else column
    column = column.cast(getattr(pyarrow, kind)())
    batch = pyarrow.record_batch({"k": column, "v": column})
    assert store.from_arrow(batch, key="k", value="v") == 3
    assert list(store.keys()) == [b"a", b"b", b"c, which is longer than a view has room for"]
    assert list(store.keys()) == list(store.values())


def test_other_libraries_read_and_are_read(store: trommel.Store) -> None:
    polars = pytest.importorskip("polars", reason="polars cannot be had")
    duckdb = pytest.importorskip("duckdb", reason="duckdb cannot be had")
    store.put_many([(b"%04d" % number, b"v%d" % number) for number in range(1000)])
    frame = polars.DataFrame(store.to_arrow())
    assert frame.shape == (1000, 2) and frame["key"][7] == b"0007"
    assert store.keyspace("polars").from_arrow(frame) == 1000
    arrow = store.to_arrow(b"0500")
    found = duckdb.sql("select count(*), max(key) from arrow").fetchall()
    assert arrow is not None and found == [(500, b"0999")]
    made = duckdb.sql("select 'k' || i as key, 'v' as value from range(10) t(i) order by key")
    assert store.keyspace("duckdb").from_arrow(made.arrow()) == 10


def test_columns_of_numbers_and_of_one_width(store: trommel.Store) -> None:
    numbers = pyarrow.array([1, 256, 2**64 - 1], pyarrow.uint64())
    fixed = pyarrow.array([b"aa", b"bb", b"cc"], pyarrow.binary(2))
    table = pyarrow.table({"key": numbers, "value": fixed})
    assert store.from_arrow(table.slice(1)) == 2
    assert dict(store.items()) == {(256).to_bytes(8, "big"): b"bb", b"\xff" * 8: b"cc"}


def test_tables_that_cannot_be_loaded(store: trommel.Store) -> None:
    def refused(kind: type[Exception], match: str, **columns: object) -> None:
        with pytest.raises(kind, match=match):
            store.from_arrow(pyarrow.table(columns))
        assert store.first() is None

    refused(trommel.UnsortedError, "ascend", key=[b"b", b"a"], value=[b"", b""])
    refused(ValueError, "no column .value.", key=[b"a"])
    refused(ValueError, "nulls", key=[b"a", None], value=[b"", b""])
    refused(TypeError, "Int64", key=[1], value=[b""])
    refused(TypeError, "UInt64", key=[b"a"], value=pyarrow.array([1], pyarrow.uint64()))
    with pytest.raises(TypeError, match="__arrow_c_stream__"):
        store.from_arrow([(b"a", b"b")])  # type: ignore[arg-type]


def content_of(capsule: Any, name: bytes) -> int:
    """Where the content of a capsule is."""
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype = ctypes.c_void_p
    pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]
    address = pointer_of(capsule, name)
    assert isinstance(address, int)
    return address


def uncount(array: int) -> None:
    """Has a batch in C not say how many of its rows and values are null, as C may leave it."""
    # Length, nulls, offset, how many buffers and children, where they are, a dictionary, release.
    whole = (ctypes.c_int64 * 9).from_address(array)
    is_there = whole[8] != 0
    if is_there:
        children = (ctypes.c_void_p * whole[4]).from_address(whole[6])
        for at in (array, *children):
            assert at is not None
            (ctypes.c_int64 * 2).from_address(at)[1] = -1


class Uncounted:
    """A batch that is uncounted."""

    def __init__(self, batch: Any) -> None:
        self.batch = batch

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[Any, Any]:
        schema, array = self.batch.__arrow_c_array__(requested_schema)
        uncount(content_of(array, b"arrow_array"))
        return schema, array


class UncountedStream:
    """A stream whose batches are uncounted."""

    NEXT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)

    def __init__(self, table: Any) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        capsule = self.table.__arrow_c_stream__(requested_schema)
        # What gives the schema, what gives the next batch.
        calls = (ctypes.c_void_p * 2).from_address(content_of(capsule, b"arrow_array_stream"))
        inner = self.NEXT(calls[1] or 0)

        def next_batch(stream: int, array: int) -> int:
            status = inner(stream, array)
            assert isinstance(status, int)
            uncount(array)
            return status

        # It lives as long as this object, which outlives the load.
        self.next_batch = self.NEXT(next_batch)
        calls[1] = ctypes.cast(self.next_batch, ctypes.c_void_p).value
        return capsule


def test_nulls_that_nobody_has_counted_are_refused(store: trommel.Store) -> None:
    full, holes = pyarrow.array([b"a", b"b"]), pyarrow.array([b"a", None])
    rows = pyarrow.StructArray.from_arrays(
        [full, full], ["key", "value"], mask=pyarrow.array([False, True])
    )
    for table in (
        pyarrow.record_batch({"key": full, "value": holes}),
        pyarrow.record_batch({"key": holes, "value": full}),
        rows,
    ):
        with pytest.raises(ValueError, match="null"):
            store.from_arrow(Uncounted(table))
        assert store.first() is None
    batch = pyarrow.record_batch({"key": full, "value": full})
    assert store.from_arrow(Uncounted(batch)) == 2


# They were loaded with what stands in memory beneath them, if the table was not asked how many it
# has, or could not say it.
def test_rows_that_are_null_are_refused(store: trommel.Store) -> None:
    column = pyarrow.array([b"a", b"b", b"c"])
    mask = pyarrow.array([False, True, False])
    rows = pyarrow.StructArray.from_arrays([column, column], ["key", "value"], mask=mask)
    chunks = pyarrow.chunked_array([rows.slice(0, 1), rows.slice(1)])
    tables = [chunks, rows, OnlyStream(chunks), UncountedStream(chunks)]
    try:
        import polars

        series = polars.Series([{"key": b"a", "value": b"a"}, None])
        tables += [series, OnlyStream(series)]
    except ImportError:
        pass
    for table in tables:
        with pytest.raises(ValueError, match="null"):
            store.from_arrow(table)
        assert store.first() is None
    assert store.from_arrow(pyarrow.chunked_array([rows.drop_null()])) == 2
    store.delete_range(b"", b"z")
    # None of these are null, though one of the array that they are a part of is.
    for full in (rows.slice(0, 1), rows.slice(2)):
        assert store.from_arrow(UncountedStream(pyarrow.chunked_array([full]))) == 1
    assert list(store.items()) == [(b"a", b"a"), (b"c", b"c")]
    with pytest.raises(TypeError, match="with columns"):
        store.from_arrow(OnlyStream(pyarrow.chunked_array([column])))
