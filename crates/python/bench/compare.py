"""Compares Trommel with plyvel (LevelDB) and rocksdict (RocksDB), as programs in Python see them.

    bench/run.sh [--keys 1000000] [--rounds 3] [--only trommel,plyvel,rocksdict]

Each engine runs in processes of its own, in turns. Keys are 16 random bytes, values 100; there is no
compression, the write buffer has 16 MiB, the cache 256 MiB, the others' Bloom filters have 12 bits for
each key. Trommel's log is written by calls, as the others' are, and in a row of its own through mapped
memory. Before reads everything is compacted; the shapes that come of it are printed. Numbers are
thousands of operations in a second of CPU time of the calling thread, the median of the rounds. Rows
"at rest" count the CPU time of all threads, until no merge is due.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

ENGINES = ("trommel", "plyvel", "rocksdict")
BUFFER, CACHE, BLOOM, BATCH = 16 << 20, 256 << 20, 12, 1000

#: A row of Trommel's alone, and the one of the others beside it.
MAPPED, UNMAPPED = "put one by one, mapped_log", "put one by one"

#: What the package is to reach: the row, and the least ratio to each of the others.
TARGETS = {
    UNMAPPED: {"plyvel": 1.2, "rocksdict": 1.2},
    MAPPED: {"plyvel": 1.2, "rocksdict": 1.2},
    "put in batches": {"plyvel": 1.2, "rocksdict": 1.2},
    "get, hit": {"plyvel": 2.0, "rocksdict": 2.0},
    "get, miss": {"plyvel": 5.0, "rocksdict": 2.0},
    "empty short range": {"plyvel": 8.0, "rocksdict": 8.0},
    "iterate all": {"plyvel": 1.2, "rocksdict": 1.2},
}


def key_of(number: int) -> bytes:
    return hashlib.blake2b(number.to_bytes(8, "big"), digest_size=16).digest()


class Engine:
    """One engine, with what all of them can do."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def open(self, path: Path) -> None: ...
    def put_all(self, keys: list[bytes], value: bytes) -> None: ...
    def put_batches(self, keys: list[bytes], value: bytes) -> None: ...
    def rest(self) -> None: ...
    def compact(self) -> None: ...
    def shape(self) -> str: ...
    def get(self) -> Callable[[bytes], bytes | None]: ...
    def get_many(self, keys: list[bytes]) -> list[bytes | None] | None: ...
    def count_range(self, start: bytes, stop: bytes) -> int: ...
    def iterate(self) -> int: ...
    def close(self) -> None: ...


class Trommel(Engine):
    is_mapped = False

    def open(self, path: Path) -> None:
        import trommel

        self.db = trommel.open(
            path,
            write_buffer_bytes=BUFFER,
            block_cache_bytes=CACHE,
            compression="none",
            mapped_log=self.is_mapped,
        )

    def put_all(self, keys: list[bytes], value: bytes) -> None:
        put = self.db.put
        for key in keys:
            put(key, value)

    def put_batches(self, keys: list[bytes], value: bytes) -> None:
        for at in range(0, len(keys), BATCH):
            with self.db.write_batch() as batch:
                for key in keys[at : at + BATCH]:
                    batch.put(key, value)

    def rest(self) -> None:
        self.db.settle()

    def compact(self) -> None:
        self.db.compact()

    def shape(self) -> str:
        return f"runs by level {self.db.stats()['runs']}"

    def get(self) -> Callable[[bytes], bytes | None]:
        return self.db.get

    def get_many(self, keys: list[bytes]) -> list[bytes | None] | None:
        return self.db.get_many(keys)

    def count_range(self, start: bytes, stop: bytes) -> int:
        count = 0
        for _ in self.db.items(start, stop):
            count += 1
        return count

    def iterate(self) -> int:
        count = 0
        for _key, _value in self.db.items():
            count += 1
        return count

    def close(self) -> None:
        self.db.close()


class Plyvel(Engine):
    def open(self, path: Path) -> None:
        import plyvel

        self.db = plyvel.DB(
            str(path),
            create_if_missing=True,
            write_buffer_size=BUFFER,
            lru_cache_size=CACHE,
            bloom_filter_bits=BLOOM,
            compression=None,
        )

    def put_all(self, keys: list[bytes], value: bytes) -> None:
        put = self.db.put
        for key in keys:
            put(key, value)

    def put_batches(self, keys: list[bytes], value: bytes) -> None:
        for at in range(0, len(keys), BATCH):
            with self.db.write_batch() as batch:
                for key in keys[at : at + BATCH]:
                    batch.put(key, value)

    def rest(self) -> None:
        # It tells nobody when it is at rest.
        idle = time.process_time()
        while True:
            time.sleep(0.5)
            now = time.process_time()
            if now - idle < 0.02:
                return
            idle = now

    def compact(self) -> None:
        self.db.compact_range()

    def shape(self) -> str:
        lines = self.db.get_property(b"leveldb.stats").decode().splitlines()[3:]
        return "files by level " + str({line.split()[0]: line.split()[1] for line in lines})

    def get(self) -> Callable[[bytes], bytes | None]:
        return self.db.get  # type: ignore[no-any-return]

    def count_range(self, start: bytes, stop: bytes) -> int:
        count = 0
        for _ in self.db.iterator(start=start, stop=stop):
            count += 1
        return count

    def iterate(self) -> int:
        count = 0
        for _key, _value in self.db:
            count += 1
        return count

    def close(self) -> None:
        self.db.close()


class Rocksdict(Engine):
    def open(self, path: Path) -> None:
        import rocksdict

        self.rocksdict = rocksdict
        options = rocksdict.Options(raw_mode=True)
        options.create_if_missing(True)
        options.set_write_buffer_size(BUFFER)
        options.set_compression_type(rocksdict.DBCompressionType.none())
        blocks = rocksdict.BlockBasedOptions()
        blocks.set_bloom_filter(BLOOM, False)
        blocks.set_block_cache(rocksdict.Cache(CACHE))
        options.set_block_based_table_factory(blocks)
        self.db = rocksdict.Rdict(str(path), options)

    def put_all(self, keys: list[bytes], value: bytes) -> None:
        db = self.db
        for key in keys:
            db[key] = value

    def put_batches(self, keys: list[bytes], value: bytes) -> None:
        for at in range(0, len(keys), BATCH):
            batch = self.rocksdict.WriteBatch(raw_mode=True)
            for key in keys[at : at + BATCH]:
                batch.put(key, value)
            self.db.write(batch)

    rest = Plyvel.rest

    def compact(self) -> None:
        self.db.flush()
        self.db.compact_range(None, None)

    def shape(self) -> str:
        lines = self.db.property_value("rocksdb.levelstats").splitlines()[2:]
        return "files by level " + str({line.split()[0]: line.split()[1] for line in lines})

    def get(self) -> Callable[[bytes], bytes | None]:
        return self.db.get  # type: ignore[no-any-return]

    def get_many(self, keys: list[bytes]) -> list[bytes | None] | None:
        return self.db.get(keys)  # type: ignore[no-any-return]

    def count_range(self, start: bytes, stop: bytes) -> int:
        count = 0
        for key in self.db.keys(from_key=start):
            if key >= stop:
                break
            count += 1
        return count

    def iterate(self) -> int:
        count = 0
        for _key, _value in self.db.items():
            count += 1
        return count

    def close(self) -> None:
        self.db.close()


def measure(name: str, keys_count: int, folder: Path) -> dict[str, Any]:
    """One round of one engine: its rows, and its shape."""
    engine = {"trommel": Trommel, "plyvel": Plyvel, "rocksdict": Rocksdict}[name](folder)
    draw = random.Random(1)
    value = draw.randbytes(100)
    keys = [key_of(number) for number in range(keys_count)]
    asked = min(200_000, keys_count)
    # Objects of their own, one behind the other: else each waits for the memory of a key.
    hits = [bytes(bytearray(keys[draw.randrange(keys_count)])) for _ in range(asked)]
    misses = [key_of(keys_count + number) for number in range(asked)]
    # 2^34 of 2^64: with a million keys one range in a thousand has one.
    stops = [min(int.from_bytes(key[:8], "big") + (1 << 34), 2**64 - 1) for key in misses]
    ranges = [(key, stop.to_bytes(8, "big") + key[8:]) for key, stop in zip(misses, stops)]
    rows: dict[str, float] = {}

    def timed(row: str, count: int, work: Callable[[], object]) -> Any:
        begun = time.thread_time()
        given = work()
        rows[row] = count / (time.thread_time() - begun) / 1e3
        return given

    def each(get: Callable[[bytes], bytes | None], asked: list[bytes]) -> int:
        found = 0
        for key in asked:
            found += get(key) is not None
        return found

    writes = [(UNMAPPED, engine.put_all), ("put in batches", engine.put_batches)]
    if isinstance(engine, Trommel):
        writes.insert(1, (MAPPED, engine.put_all))
    for row, put in writes:
        if isinstance(engine, Trommel):
            engine.is_mapped = row == MAPPED
        engine.open(folder / row.replace(" ", "-"))
        begun = time.process_time()
        timed(row, keys_count, lambda put=put: put(keys, value))  # type: ignore[misc]
        engine.rest()
        rows[f"{row}, at rest"] = keys_count / (time.process_time() - begun) / 1e3
        if put is not writes[-1][1]:
            engine.close()
    engine.compact()
    shape = engine.shape()
    get = engine.get()
    each(get, hits)
    assert timed("get, hit", asked, lambda: each(get, hits)) == asked
    assert timed("get, miss", asked, lambda: each(get, misses)) == 0
    pieces = [hits[at : at + 1000] for at in range(0, asked, 1000)]

    def each_piece() -> None:
        # Values are forgotten, as those of single gets are: else memory for all of them is measured.
        for piece in pieces:
            engine.get_many(piece)

    if engine.get_many(pieces[0]) is not None:
        timed("get 1000 at once, hit", asked, each_piece)
    found = timed(
        "empty short range", asked, lambda: sum(engine.count_range(*it) for it in ranges)
    )
    assert found < asked // 50, found
    assert timed("iterate all", keys_count, engine.iterate) == keys_count
    engine.close()
    return {"rows": rows, "shape": shape}


def record_of(rounds: dict[str, list[dict[str, Any]]], keys_count: int) -> dict[str, Any]:
    """What is kept of a run: medians, and what they were measured with."""
    return {
        "keys": keys_count,
        "rounds": max(map(len, rounds.values())),
        "python": platform.python_version(),
        "engines": {
            name: {
                "version": version(name),
                "shape": measured[-1]["shape"],
                "rows": {
                    row: statistics.median(it["rows"][row] for it in measured)
                    for row in measured[0]["rows"]
                },
            }
            for name, measured in rounds.items()
        },
    }


def table(record: dict[str, Any]) -> tuple[list[str], bool]:
    """The lines of the table. False: a target was missed."""
    medians = {name: engine["rows"] for name, engine in record["engines"].items()}
    names = list(medians)
    others = [name for name in names if name != "trommel"]
    ratios = [f"to {name}" for name in others] if "trommel" in names else []
    header = ["thousands in a second of CPU", *names, *ratios, "target"]
    lines = [f"| {' | '.join(header)} |", "|---" * len(header) + "|"]
    is_reached = True
    for row in max(medians.values(), key=len):
        # "..., mapped_log", "..., mapped_log, at rest"
        beside = row.replace(MAPPED, UNMAPPED)
        places = {name: row if name == "trommel" else beside for name in names}
        cells = [
            f"{medians[name][places[name]]:.0f}" if places[name] in medians[name] else "-"
            for name in names
        ]
        own = medians.get("trommel", {}).get(row)
        wanted = TARGETS.get(row, {})
        for name in others if ratios else []:
            theirs = medians[name].get(beside)
            ratio = own / theirs if own and theirs else None
            is_missed = ratio is not None and ratio < wanted.get(name, 0)
            is_reached &= not is_missed
            cells.append("-" if ratio is None else f"{ratio:.2f}{' (missed)' if is_missed else ''}")
        target = ", ".join(f"{ratio:g}" for ratio in wanted.values())
        lines.append(f"| {row} | {' | '.join(cells)} | {target} |")
    own_rows = medians.get("trommel", {})
    if own_rows:
        many = own_rows["get 1000 at once, hit"] / own_rows["get, hit"]
        is_reached &= many >= 2
        lines += ["", f"`get_many` of 1000 is {many:.2f} times as fast as single gets (target 2)."]
    return lines, is_reached


def show(record: dict[str, Any]) -> bool:
    """Prints a record. False: a target was missed."""
    for name, engine in record["engines"].items():
        print(f"{name} {engine['version']}: {engine['shape']}")
    lines, is_reached = table(record)
    print("", *lines, sep="\n")
    return is_reached


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default=",".join(ENGINES), help="engines, with commas between")
    parser.add_argument("--save", type=Path, metavar="FILE", help="keep the medians there")
    parser.add_argument("--show", type=Path, metavar="FILE", help="measure nothing: print these")
    parser.add_argument("--round-of", choices=ENGINES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.round_of:
        with tempfile.TemporaryDirectory(prefix="trommel-compare-") as folder:
            print(json.dumps(measure(arguments.round_of, arguments.keys, Path(folder))))
        return 0
    if arguments.show:
        return 0 if show(json.loads(arguments.show.read_text())) else 1
    rounds: dict[str, list[dict[str, Any]]] = {name: [] for name in arguments.only.split(",")}
    for _ in range(arguments.rounds):
        for name, measured in rounds.items():
            command = [sys.executable, __file__, "--keys", str(arguments.keys), "--round-of", name]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            measured.append(json.loads(done.stdout))
    record = record_of(rounds, arguments.keys)
    if arguments.save:
        arguments.save.write_text(json.dumps(record, indent=1) + "\n")
    return 0 if show(record) else 1


if __name__ == "__main__":
    sys.exit(main())
