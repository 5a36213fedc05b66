"""What documents say is so."""

from __future__ import annotations

import doctest
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import trommel

README = Path(__file__).parent.parent / "README.md"


def test_code_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", README.read_text(), re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 4
    for block in blocks:
        exec(compile(block, str(README), "exec"), {"__name__": "readme"})


def public() -> dict[str, object]:
    """Everything that has a name for users, members of classes too."""
    named: dict[str, object] = {"trommel": trommel}
    for name in trommel.__all__:
        thing = getattr(trommel, name)
        if not name.startswith("__") and not isinstance(thing, trommel.Keep):
            named[name] = thing
        if isinstance(thing, type):
            members = (it for it in vars(thing) if not it.startswith("_"))
            named |= {f"{name}.{it}": getattr(thing, it) for it in members}
    return named


def test_the_comparison_runs(tmp_path: Path) -> None:
    record = tmp_path / "record.json"
    script = str(README.parent / "bench" / "compare.py")
    asked = ["--only", "trommel", "--keys", "3000", "--rounds", "1", "--save", str(record)]
    shown = subprocess.run([sys.executable, script, *asked], stdout=subprocess.PIPE, check=False)
    rows = json.loads(record.read_text())["engines"]["trommel"]["rows"]
    assert len(rows) == 11 and min(rows.values()) > 0
    assert all(f"| {row} |" in shown.stdout.decode() for row in rows)


def test_everything_public_is_documented() -> None:
    assert [name for name, thing in public().items() if not thing.__doc__] == []


def test_examples_of_docstrings_are_right() -> None:
    flags = doctest.IGNORE_EXCEPTION_DETAIL
    runner, parser = doctest.DocTestRunner(optionflags=flags), doctest.DocTestParser()
    for name, thing in public().items():
        runner.run(parser.get_doctest(thing.__doc__ or "", {}, name, None, None))
    results = runner.summarize()
    assert results.failed == 0 and results.attempted >= 60
