"""`python -m trommel`: the command `trommel`, which wheels bring along."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import NoReturn

_NAME = "trommel.exe" if os.name == "nt" else "trommel"


def _program() -> str | None:
    """Where the command is: where this package was installed, or on the path."""
    schemes = (sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user"))
    for scheme in schemes:
        program = Path(sysconfig.get_path("scripts", scheme)) / _NAME
        if program.is_file():
            return str(program)
    return shutil.which(_NAME)


def main() -> NoReturn:
    program = _program()
    if program is None:
        sys.exit(
            "trommel: this package was built without the command: install a wheel of it, "
            "or the command itself (`cargo install --path crates/cli` in the repository)"
        )
    arguments = [program, *sys.argv[1:]]
    if os.name == "nt":
        sys.exit(subprocess.run(arguments).returncode)
    os.execv(program, arguments)


if __name__ == "__main__":
    main()
