#!/usr/bin/env python3
"""Writes real keys to measure with: the vertices of the world's time zones, from OpenStreetMap.

Source: the PyPI package timezonefinder 6.5.9 (files poly_data.bin and poly_coord_amount.bin), fetched with pip into
a folder that is removed again. The data is under the ODbL: keep it out of the repository.

A key is the Morton code of a vertex: longitude in the even bits, latitude in the odd bits, each coordinate being
(v + 2^31) >> 2 where v counts 1e-7 degrees. Written are the distinct keys, ascending, as u64 little-endian:
some 3.9 million. Measure with `trommel bench read --dist file:OUTPUT --file-format u64le`.

--stand-in writes generated keys instead, for where the package cannot be had: borders as random walks whose steps
differ by orders of magnitude from walk to walk, so that the gaps between keys are clustered as those of real borders.

Usage: osm-keys.py [--stand-in] OUTPUT
"""

import argparse
import array
import hashlib
import math
import pathlib
import random
import subprocess
import sys
import tempfile
import zipfile

PACKAGE = "timezonefinder==6.5.9"
# One wheel for everyone: only its data files are read, nothing of it is run.
WHEEL = ["--only-binary=:all:", "--python-version", "311", "--implementation", "cp", "--abi", "cp311",
         "--platform", "manylinux2014_x86_64"]
KEYS_LEAST = 3_900_000
STAND_IN_KEYS = 3_900_000


def spread_table():
    """For each 16-bit number: its bits, with a zero after each."""
    return [sum(((n >> bit) & 1) << (2 * bit) for bit in range(16)) for n in range(1 << 16)]


SPREAD = spread_table()


def morton(x, y):
    """Interleaves two numbers of up to 32 bits: x in the even bits, y in the odd bits."""
    return (SPREAD[x & 0xFFFF] | SPREAD[x >> 16] << 32) | (SPREAD[y & 0xFFFF] | SPREAD[y >> 16] << 32) << 1


def read_i32(data):
    """Little-endian 32-bit numbers with sign."""
    numbers = array.array("i")
    if numbers.itemsize != 4:
        sys.exit("this Python's array type 'i' has not 4 bytes")
    numbers.frombytes(data)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def real_vertices():
    """(longitude, latitude) of every vertex; each polygon has its longitudes, then its latitudes."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder]
        if subprocess.run([*pip, *WHEEL, PACKAGE]).returncode != 0:
            sys.exit(f"pip cannot fetch {PACKAGE}; --stand-in writes generated keys instead")
        (wheel,) = pathlib.Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            numbers = read_i32(archive.read("timezonefinder/poly_data.bin"))
            counts = read_i32(archive.read("timezonefinder/poly_coord_amount.bin"))
    at = 0
    for count in counts:
        yield from zip(numbers[at:at + count], numbers[at + count:at + 2 * count])
        at += 2 * count
    if at != len(numbers):
        sys.exit(f"poly_data.bin has {len(numbers)} numbers, poly_coord_amount.bin speaks of {at}")


def stand_in_vertices(count):
    """Random walks; the step of a walk is drawn from five orders of magnitude."""
    source = random.Random(42)
    made = 0
    while made < count:
        longitude, latitude = source.uniform(-1.8e9, 1.8e9), source.uniform(-0.85e9, 0.85e9)
        step, heading = 10 ** source.uniform(1.5, 5.5), source.uniform(0, 2 * math.pi)
        for _ in range(min(count - made, int(source.expovariate(1 / 3000)) + 3)):
            heading += source.gauss(0, 0.6)
            length = step * source.lognormvariate(0, 0.7)
            longitude = min(max(longitude + length * math.cos(heading), -1.8e9), 1.8e9)
            latitude = min(max(latitude + length * math.sin(heading), -0.9e9), 0.9e9)
            made += 1
            yield int(longitude), int(latitude)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stand-in", action="store_true", help="generated keys instead of real ones")
    parser.add_argument("output", type=pathlib.Path, help="the file to write")
    arguments = parser.parse_args()
    if not arguments.output.parent.is_dir() or arguments.output.is_dir():
        sys.exit(f"{arguments.output} cannot be written: its folder is missing, or it is one")
    vertices = stand_in_vertices(STAND_IN_KEYS) if arguments.stand_in else real_vertices()
    codes = {morton((x + 2**31) >> 2, (y + 2**31) >> 2) for x, y in vertices}
    keys = array.array("Q", sorted(codes))
    if not arguments.stand_in and len(keys) < KEYS_LEAST:
        sys.exit(f"only {len(keys)} keys, expected {KEYS_LEAST} and more")
    if sys.byteorder == "big":
        keys.byteswap()
    data = keys.tobytes()
    try:
        arguments.output.write_bytes(data)
    except OSError as error:
        sys.exit(f"{arguments.output} cannot be written: {error}")
    print(f"{arguments.output}: {len(keys)} keys, sha256 {hashlib.sha256(data).hexdigest()}")


if __name__ == "__main__":
    main()
