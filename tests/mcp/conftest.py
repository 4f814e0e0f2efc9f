"""Coverage of the processes that these tests start."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _measured(measured_processes: None) -> None:
    """The commands run in processes of their own: measure those."""
