"""A recovery that is parked becomes durable in that moment: another process can take it up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import rung
from rung.engine.durable.parking import CALL_STEP, keep_parked_run
from rung.store import open_journal
from rung.testing import FakeClock

if TYPE_CHECKING:
    from pathlib import Path

    from rung.engine.ports.durable_runs import RunLease

LIMIT = rung.AttemptError("usage limit reached", status=429, code="insufficient_quota", headers={"retry-after": "9000"})
CALL = {"command": ["agent"]}


def test_a_running_recovery_becomes_durable(tmp_path: Path) -> None:
    """Its events so far, the call that takes it up, and each later attempt are kept under the incident's id."""
    journal, clock = open_journal(tmp_path / "journal.db"), FakeClock()
    leases: list[RunLease] = []
    kept: list[Any] = []
    failures = [LIMIT, LIMIT]

    def claim(run: str) -> RunLease:
        leases.append(journal.runs.claim(run, "agent", {}))
        return leases[-1].__enter__()

    def on_park(_: object) -> None:
        journal.flush()
        kept.append(keep_parked_run(CALL, claim))

    def attempt(_: rung.Request) -> str:
        if failures:
            raise failures.pop()
        return "done"

    outcome = rung.recover_sync(
        attempt, rung.Request(prompt="x", model="a"), policy=rung.policy("task"), journal=journal, clock=clock,
        on_park=on_park, breakers=None, jitter=lambda: 0.0,
    )  # fmt: skip
    assert outcome.value == "done"
    durable, again = kept  # it is parked twice, and becomes durable once
    assert durable is not None
    assert again is None
    steps = leases[0].steps()
    assert steps[CALL_STEP] == CALL
    assert {"attempt.2", "attempt.3"} <= steps.keys()
    durable.finish(outcome)
    leases[0].__exit__(None, None, None)
    row = journal.runs.find(leases[0].run)
    assert row is not None
    assert row.result["status"] == "recovered"
    journal.close()
