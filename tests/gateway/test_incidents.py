"""A slice of `make incidents` on made-up incidents: the real gateway in virtual time, beside no gateway."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def incidents(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the benchmark in a process of its own: its clock is virtual."""
    command = [sys.executable, "-m", "bench.incidents", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, text=True, capture_output=True, check=False)


@pytest.fixture(scope="module")
def rows() -> dict[tuple[str, str], dict[str, Any]]:
    """The rows of an SDK with ten retries in total outages, by gateway and route."""
    # A probe every 8 to 14 s is shared by all calls that wait: so many that each one's share is small.
    ran = incidents("--synthetic", "--json", "--per-minute", "4", "--client", "SDK, 10 retries", "--severity", "full")
    assert ran.returncode == 0, ran.stderr
    return {(row["gateway"], row["route"]): row for row in map(json.loads, ran.stdout.splitlines())}


def test_nobody_is_worse_off(rows: dict[tuple[str, str], dict[str, Any]]) -> None:
    """With one model, as many calls and minutes of an outage survive behind the gateway as without it."""
    rung, alone = rows["Rung", "one model"], rows["none", "one model"]
    assert rung["calls"] == alone["calls"] > 50
    assert rung["survived"] >= alone["survived"]
    assert rung["minutes"] >= alone["minutes"]


def test_a_short_outage_is_waited_out(rows: dict[tuple[str, str], dict[str, Any]]) -> None:
    """With one model, calls wait for the end of an outage of twenty minutes, with hardly a request each."""
    rung = rows["Rung", "one model"]
    assert rung["lost"] == 0
    assert rung["requests_per_call"] < 2


def test_a_second_route_saves_the_wait(rows: dict[tuple[str, str], dict[str, Any]]) -> None:
    """A second model and a second provider answer at once what one model makes wait."""
    one, models, providers = (rows["Rung", route] for route in ("one model", "two models", "two providers"))
    assert models["lost"] == providers["lost"] == 0
    assert max(models["median_wait"], providers["median_wait"]) < 30 < one["median_wait"]


def test_without_the_data() -> None:
    """Without the recorded incidents, the message names the folder and how to set it."""
    ran = incidents("--json", RUNG_WORLDS="/nowhere")
    assert ran.returncode == 2
    assert "/nowhere has no llm_incidents.jsonl" in ran.stderr
    assert "RUNG_WORLDS" in ran.stderr
