"""Fixtures: tests never write to the user's journal."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def _own_journal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("journal") / "journal.db"
    before = os.environ.get("RUNG_JOURNAL")
    os.environ["RUNG_JOURNAL"] = str(path)
    yield path
    if before is None:
        del os.environ["RUNG_JOURNAL"]
    else:
        os.environ["RUNG_JOURNAL"] = before


@pytest.fixture(autouse=True)
def _measured(measured_processes: None) -> None:
    """Measure coverage of the commands, which run as processes."""
