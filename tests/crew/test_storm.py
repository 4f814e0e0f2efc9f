"""Crews of real processes in a storm, on both stores."""

from __future__ import annotations

import os
from contextlib import closing, nullcontext
from typing import TYPE_CHECKING

import pytest

from tests.crew.storm.crew_storm import Storm
from tests.crew.storm.invariants import check_all
from tests.store import postgres

if TYPE_CHECKING:
    from pathlib import Path

# One storm for each store in the gate, with different faults; a storm takes 50 s.
SEEDS = [int(seed) for seed in os.environ.get("RUNG_STORM_SEEDS", "").split()]
STORMS = [(store, seed) for store in ("sqlite", "postgres") for seed in SEEDS] or [("sqlite", 1), ("postgres", 2)]
TASKS = int(os.environ.get("RUNG_STORM_TASKS", "20"))
SECONDS = 600.0  # no storm takes so long, however busy the machine is


@pytest.mark.parametrize(("store", "seed"), STORMS)
def test_a_crew_in_a_storm(tmp_path: Path, store: str, seed: int) -> None:
    """Workers die, stop, loop and lie, conductor and watchdog are killed in every phase: every task ends once and honestly."""
    with (
        postgres.server() if store == "postgres" else nullcontext("") as server,
        closing(Storm(tmp_path, seed, TASKS, server)) as storm,
    ):
        check_all(storm, storm.run(SECONDS))
