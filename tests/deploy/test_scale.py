"""A small slice of the simulation of a million agents, and the pages that state its figures."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from bench.fleet import arithmetic, million
from bench.fleet.herd import Plan, Result, simulate

ROOT = Path(__file__).parents[2]
SMALL = Plan(mode="shared", cells=2, gateways=5, agents=500, outage_seconds=120, after_seconds=150)


@pytest.fixture(scope="module")
def results() -> dict[str, Result]:
    return {mode: simulate(replace(SMALL, mode=mode)) for mode in million.MODES}


def test_a_dead_provider_is_left_alone(results: dict[str, Result]) -> None:
    """Gateways send a dead provider far less than SDKs do, and gateways that share circuits send the least."""
    assert results["own"].to_dead < results["sdk"].to_dead / 20
    assert results["shared"].to_dead <= results["own"].to_dead
    assert results["shared"].peak_to_dead <= SMALL.cells < results["own"].peak_to_dead, (
        "one probe at a time in each cell"
    )


def test_agents_see_no_error_behind_gateways(results: dict[str, Result]) -> None:
    """An outage that is shorter than the patience of the clients is waited out, and the load is normal again after it."""
    assert results["sdk"].errors > SMALL.normal
    for mode in ("own", "shared"):
        assert results[mode].errors == 0
        assert results[mode].recovered_after is not None


def test_a_retry_budget_is_never_overspent(results: dict[str, Result]) -> None:
    """All gateways of a cell together take no more tokens than there were and than their calls brought."""
    assert results["shared"].overspent <= 0
    assert results["shared"].most_slices_out > 0


def test_no_call_is_lost(results: dict[str, Result]) -> None:
    """At the end as many calls succeed each second as before the outage: no agent got stuck in a queue."""
    for result in results.values():
        before = sum(good for _, good in result.history[: SMALL.calm_seconds]) / SMALL.calm_seconds
        after = sum(good for _, good in result.history[-10:]) / 10
        assert after == pytest.approx(before, rel=0.05)


def test_a_seed_gives_the_same_run() -> None:
    """The simulation is deterministic: the same seed gives the same history, another one another."""
    tiny = replace(SMALL, cells=1, gateways=2, agents=55, outage_seconds=40, after_seconds=60)
    assert simulate(tiny).history == simulate(tiny).history
    assert simulate(tiny).history != simulate(replace(tiny, seed=2)).history


def test_the_pages_state_the_figures() -> None:
    """Both pages contain the tables that follow from the saved figures, word for word."""
    figures = json.loads(arithmetic.FIGURES.read_text())
    assert arithmetic.tables(figures) in (ROOT / "docs/howto/from-a-laptop-to-a-fleet.md").read_text()
    assert million.needs_table(figures, Plan(mode="shared")) in (ROOT / "docs/explanation/scale.md").read_text()


def test_the_arithmetic_adds_up() -> None:
    """Agents and bytes follow from the measured rates by the stated formula."""
    figures = json.loads(arithmetic.FIGURES.read_text())
    one = arithmetic.agents_of(figures)
    assert one["agents"] * one["recoveries per agent and second"] == pytest.approx(
        figures["limits"]["PostgreSQL"]["recoveries"]
    )
    recovery = figures["units"]["PostgreSQL"]["recovery: one failure, one retry"]
    assert recovery["bytes"] > figures["units"]["PostgreSQL"]["call that succeeds"]["bytes"]
