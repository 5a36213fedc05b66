"""What the tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import trommel


@pytest.fixture
def store(tmp_path: Path) -> Iterator[trommel.Store]:
    with trommel.open(tmp_path / "store") as opened:
        yield opened
