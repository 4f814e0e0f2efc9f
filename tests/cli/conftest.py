"""Fixtures: tests never write to the user's journal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _own_journal(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path_factory.mktemp("journal") / "journal.db"
    monkeypatch.setenv("RUNG_JOURNAL", str(path))
    return path


@pytest.fixture(autouse=True)
def _measured(measured_processes: None) -> None:
    """Measure coverage of the commands, which run as processes."""
