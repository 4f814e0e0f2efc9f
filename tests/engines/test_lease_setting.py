"""The lease of the settings is the lease of the runs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from rung.wiring.engines import engine

if TYPE_CHECKING:
    from pathlib import Path


def test_a_worker_claims_runs_for_the_lease_of_its_settings(tmp_path: Path) -> None:
    """Others take over the runs of a silent worker after the lease that its settings name, not after the default."""
    made = engine("embedded", url=str(tmp_path / "journal.db"), lease=5.0)
    journal = made.journal  # type: ignore[attr-defined]  # of this engine
    asyncio.run(made.submit("run", "task", {}))
    assert journal.runs.claim_next(["task"]) is not None
    ((lease, claimed_at),) = journal.read("SELECT lease, touched_at FROM run")
    journal.close()
    assert lease - claimed_at == pytest.approx(5.0)
