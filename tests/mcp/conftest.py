"""Fixtures: coverage of the started processes."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _measured(measured_processes: None) -> None:
    """Measure coverage of the commands, which run as processes."""
