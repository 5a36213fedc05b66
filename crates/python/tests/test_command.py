"""The command that a wheel brings along."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import trommel


def trommel_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "trommel", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_the_command_reads_what_this_package_wrote(tmp_path: Path) -> None:
    with trommel.open(tmp_path / "store") as store:
        store.put(b"drum", b"turns")
    found = trommel_command("get", "--db", str(tmp_path / "store"), "drum")
    assert (found.returncode, found.stdout) == (0, "turns\n"), found.stderr
    missed = trommel_command("get", "--db", str(tmp_path / "store"), "dram")
    assert missed.returncode == 1, missed.stderr


def test_the_command_is_of_the_same_version() -> None:
    told = trommel_command("--version")
    assert told.returncode == 0 and trommel.__version__ in told.stdout, told.stdout
    wrong = trommel_command("no-such-command")
    assert wrong.returncode == 2 and "no-such-command" in wrong.stderr
