#!/usr/bin/env python3
"""Puts back one trap of transactions after the other, and sees that it is found.

A trap is a rule of docs/design/transactions.md that is broken in a copy of this checkout, by a variable of the environment. What is to
find it runs against the broken store: `trommel stress --transactions`, or a test by name. Nothing here is changed.

Usage: put-back-traps.py [--folder DIR] [--seconds 60] [TRAP ...]       without names: all of them
The folder (default: target/traps) holds the copy and what is compiled of it. Exit status 1: a trap was not found in time.
"""

import argparse
import dataclasses
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
STORE = "crates/store/src/"
CONFLICTS = STORE + "write/conflicts.rs"
AGES = STORE + "guard/base_ages.rs"
SIMULATED = ["stress", "--transactions", "--seeds", "1000000", "--steps", "3000"]
THREADS = ["stress", "--transactions", "--threads", "4", "--disk"]


@dataclasses.dataclass
class Trap:
    name: str
    rule: str
    file: str
    right: str
    # With TRAP for "this trap is put back".
    wrong: str
    command: list[str] | None = None
    test: str | None = None


TRAPS = [
    Trap("late-flush", "the flush asked about holds the first newer write, or an earlier one", CONFLICTS,
         "version.layout.flush_of(first).unwrap_or_default();",
         "FlushNumber(version.layout.flush_of(first).unwrap_or_default().0 + u64::from(TRAP));", SIMULATED),
    Trap("sealed", "memtables that were sealed in between count as newer", CONFLICTS,
         "std::iter::once(&self.version.active.memtable).chain(sealed)",
         "std::iter::once(&self.version.active.memtable).chain(sealed.filter(|_| !TRAP))", SIMULATED),
    Trap("base-code", "the code of what is in a base is no age", CONFLICTS,
         "if is_oldest && *self.base.get_or_init", "if is_oldest && !TRAP && *self.base.get_or_init", SIMULATED),
    Trap("widened-codes", "no code is widened across the flush of a living transaction", STORE + "tree/open_tree.rs",
         "first.flatten().collect();", "first.flatten().filter(|_| !TRAP).collect();",
         test="merges_make_no_code_one_of_before_and_after_a_transaction"),
    Trap("replaced-part", "a part that was replaced tells what came into the base", AGES,
         "concerned.any(|replaced| {", "concerned.any(|replaced| {\n            if TRAP {\n                return false;\n            }", SIMULATED),
    Trap("forgotten-part", "of a part that is not kept, a base may have anything", AGES,
         "false => next.known_from = until,", "false if TRAP => {}\n                false => next.known_from = until,", SIMULATED),
    Trap("point-in-deleted-range", "deletions of ranges are asked for keys", CONFLICTS,
         "if deleted.is_some_and(|deleted| deleted > self.at) {", "if !TRAP && deleted.is_some_and(|deleted| deleted > self.at) {", SIMULATED),
    Trap("deleted-range", "deletions of ranges are asked for ranges", CONFLICTS,
         "may_be && tombstones.pieces().any(deletes)", "may_be && !TRAP && tombstones.pieces().any(deletes)", SIMULATED),
    Trap("expiry", "what was read and has expired is a conflict", CONFLICTS,
         "if self.expiry.is_some_and(|expiry| expiry.has_come(now)) {",
         "if !TRAP && self.expiry.is_some_and(|expiry| expiry.has_come(now)) {", SIMULATED),
    Trap("hidden-deletion", "deletions are looked at, too, in ranges", CONFLICTS,
         "if entry.sequence > self.at {", "if entry.sequence > self.at && !(TRAP && entry.kind == Kind::Delete) {", SIMULATED),
    Trap("unregistered", "merges keep what a transaction must see", STORE + "tree/snapshots.rs",
         "noted.registered.keys().copied().collect();",
         "noted.registered.keys().copied().filter(|it| !TRAP || !noted.committing.contains_key(it)).collect();", SIMULATED),
    Trap("group", "batches that come before in a group are looked at", CONFLICTS,
         "if read.is_some_and(|read| read.has(kind, key, value)) {",
         "if !TRAP && read.is_some_and(|read| read.has(kind, key, value)) {", THREADS),
    Trap("second-look", "what came since the first look is looked at by the leader", STORE + "write/commit/writer.rs",
         "        reads.check(|keyspace| self.trees.of(engine, keyspace))\n",
         "        if TRAP {\n            return Ok(());\n        }\n        reads.check(|keyspace| self.trees.of(engine, keyspace))\n", THREADS),
]

# Which trap is put back is said by the environment: the store is compiled once.
PUT_BACK = """
pub(crate) fn is_put_back(trap: &str) -> bool {
    static PUT_BACK: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    PUT_BACK.get_or_init(|| std::env::var("TROMMEL_TRAP").ok()).as_deref() == Some(trap)
}
"""


def copy_of(folder: pathlib.Path) -> pathlib.Path:
    """This checkout as it is, uncommitted changes too. Files that are as they were keep their time."""
    copy = folder / "source"
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            cwd=ROOT, check=True, capture_output=True).stdout
    for name in filter(None, listed.decode().split("\0")):
        source, target = ROOT / name, copy / name
        if source.is_file() and not (target.is_file() and target.read_bytes() == source.read_bytes()):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
    return copy


def put_traps_into(copy: pathlib.Path) -> None:
    """All of them. A rule whose code has changed is an error: its trap must be written anew."""
    with (copy / STORE / "lib.rs").open("a") as lib:
        lib.write(PUT_BACK)
    for trap in TRAPS:
        file = copy / trap.file
        text = file.read_text()
        if text.count(trap.right) != 1:
            sys.exit(f"{trap.name}: {trap.file} has {text.count(trap.right)} times, not once: {trap.right}")
        wrong = trap.wrong.replace("TRAP", f'crate::is_put_back("{trap.name}")')
        file.write_text(text.replace(trap.right, wrong))


def cargo(copy: pathlib.Path, arguments: list[str], trap: str = "") -> subprocess.CompletedProcess[str]:
    """Compiles fast rather than for speed."""
    fast = {"CARGO_PROFILE_RELEASE_LTO": "off", "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16", "CARGO_PROFILE_RELEASE_DEBUG": "0"}
    environment = os.environ | fast | {"CARGO_TARGET_DIR": str(copy.parent / "target"), "TROMMEL_TRAP": trap}
    return subprocess.run(["cargo", *arguments], cwd=copy, env=environment, text=True, capture_output=True)


def is_found(trap: Trap, copy: pathlib.Path, seconds: int) -> tuple[bool, str]:
    """Whether what is to find it does; and what was said last."""
    if trap.test:
        run = cargo(copy, ["test", "--release", "-p", "trommel", "--test", "transactions", trap.test], trap.name)
        return "test result: FAILED" in run.stdout, (run.stdout + run.stderr)[-2000:]
    command = [str(copy.parent / "target/release/trommel"), *trap.command]
    command += ["--seconds", str(seconds)] if "--disk" in command else ["--minutes", str(seconds / 60)]
    run = subprocess.run(command, env=os.environ | {"TROMMEL_TRAP": trap.name}, text=True, capture_output=True)
    return run.returncode == 1, (run.stdout + run.stderr)[-2000:]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "target/traps")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("trap", nargs="*", metavar="TRAP", help=", ".join(trap.name for trap in TRAPS))
    arguments = parser.parse_args()
    unknown = set(arguments.trap) - {trap.name for trap in TRAPS}
    if unknown:
        parser.error(f"no trap {', '.join(sorted(unknown))}: there are {', '.join(trap.name for trap in TRAPS)}")
    copy = copy_of(arguments.folder.resolve())
    put_traps_into(copy)
    built = cargo(copy, ["build", "--release", "-p", "trommel-cli"])
    if built.returncode != 0:
        sys.exit(f"the copy does not compile\n{built.stderr[-3000:]}")
    missed = []
    for trap in [trap for trap in TRAPS if not arguments.trap or trap.name in arguments.trap]:
        begun = time.monotonic()
        found, said = is_found(trap, copy, arguments.seconds)
        by = f"test {trap.test}" if trap.test else " ".join(["trommel", *trap.command])
        after = "" if trap.test else f"{time.monotonic() - begun:.1f} s"
        print(f"{'found' if found else 'NOT FOUND':<9} {after:>7}  {trap.name:<22} {trap.rule}  ({by})", flush=True)
        if not found:
            missed.append(trap.name)
            print(said, flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
