#!/usr/bin/env python3
"""Makes data/natural-earth-10m.keys: the vertices of all countries' borders and coasts.

Source: the npm package world-atlas 2.0.2 (ISC licence), file countries-10m.json: Natural Earth 1:10m,
which is in the public domain. Its coordinates are whole numbers on a grid of 100,000 x 100,000.

The file, little-endian (the reader is crates/lab/src/keys/natural_earth.rs):

    magic        8 bytes    "TROMKEY1"
    count        u32        how many keys follow
    origin       2 x u64    longitude, latitude of grid line 0, in 2^-64 of the whole circle / half circle
    step         2 x u64    longitude, latitude from one grid line to the next, in the same unit
    codes        varints    Morton codes of the grid points (longitude in the even bits), ascending,
                            each as the difference to the one before it (LEB128)

Usage: natural-earth-keys.py [OUTPUT]
"""

import json
import pathlib
import struct
import subprocess
import sys
import tarfile
import tempfile

PACKAGE = "world-atlas@2.0.2"
MEMBER = "package/countries-10m.json"
OUTPUT = pathlib.Path(__file__).resolve().parent.parent / "data" / "natural-earth-10m.keys"


def topology():
    """The file of the package, fetched with npm into a folder that is removed again."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["npm", "pack", "--silent", PACKAGE], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        (package,) = pathlib.Path(folder).glob("*.tgz")
        with tarfile.open(package) as archive:
            return json.load(archive.extractfile(MEMBER))


def grid_points(arcs):
    """The distinct points of all arcs. An arc is its first point, then differences."""
    points = set()
    for arc in arcs:
        x = y = 0
        for dx, dy in arc:
            x, y = x + dx, y + dy
            points.add((x, y))
    return points


def spread(number):
    """The bits of a number, with a zero after each."""
    return sum(((number >> bit) & 1) << (2 * bit) for bit in range(number.bit_length()))


def varint(number):
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return out


def encode(atlas):
    scale, translate = atlas["transform"]["scale"], atlas["transform"]["translate"]
    turns = [360.0, 180.0]
    lowest = [-180.0, -90.0]
    origin = [round((translate[i] - lowest[i]) / turns[i] * 2**64) for i in range(2)]
    step = [round(scale[i] / turns[i] * 2**64) for i in range(2)]
    codes = sorted(spread(x) | spread(y) << 1 for x, y in grid_points(atlas["arcs"]))
    out = bytearray(b"TROMKEY1" + struct.pack("<I4Q", len(codes), *origin, *step))
    previous = 0
    for code in codes:
        out += varint(code - previous)
        previous = code
    return len(codes), bytes(out)


def main():
    output = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else OUTPUT
    count, data = encode(topology())
    output.write_bytes(data)
    print(f"{output}: {count} keys, {len(data)} bytes")


if __name__ == "__main__":
    main()
