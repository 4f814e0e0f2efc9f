"""Workers killed at the start of every step, restarted or taken over, stopped and woken, on every engine."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rung.core.domain.errors import RunEnded
from tests.engines.fleets import LEASE_SECONDS, fleet
from tests.store import postgres

if TYPE_CHECKING:
    from tests.engines.fleets import EngineFleet

STEPS = 5 if os.environ.get("RUNG_STORM") else 2  # at the start of which a worker is killed

OUTAGE_SECONDS = float(os.environ.get("RUNG_OUTAGE_SECONDS", "5"))


@pytest.mark.parametrize("way", ["restart", "takeover"])
def test_a_kill_at_the_start_of_every_step(engine_fleet: EngineFleet, way: str) -> None:
    """No finished step runs again, the one that was running runs once more, and the run ends with its value."""
    folder = Path(engine_fleet.folder)
    killed = [f"s{n}" for n in range(5)][-STEPS:]
    for name in killed:
        (folder / f"hold-{name}").touch()
    for _ in range(1 if way == "restart" else 2):
        engine_fleet.start_worker()
    run = engine_fleet.submit("five", folder=engine_fleet.folder)
    for name in killed:
        engine_fleet.kill(engine_fleet.until_logged(f"begin {name}"))
        engine_fleet.start_worker()
        engine_fleet.until_logged(f"begin {name}", 2)
        (folder / f"hold-{name}").unlink()
    assert engine_fleet.result(run) == [f"s{n} done" for n in range(5)]
    lines = Counter(" ".join(line.split()[:2]) for line in engine_fleet.log())
    assert {name: lines[f"end s{name}"] for name in range(5)} == dict.fromkeys(range(5), 1)
    assert {f"s{n}": lines[f"begin s{n}"] for n in range(5)} == {f"s{n}": 1 + (f"s{n}" in killed) for n in range(5)}


def test_a_kill_during_a_recovery(engine_fleet: EngineFleet) -> None:
    """A worker killed in the second attempt: the first is not made again, and the outcome counts each attempt once."""
    engine_fleet.start_worker()
    Path(engine_fleet.folder, "hold-attempt").touch()
    run = engine_fleet.submit("recovering", folder=engine_fleet.folder)
    engine_fleet.kill(engine_fleet.until_logged("begin attempt"))
    engine_fleet.start_worker()
    engine_fleet.until_logged("begin attempt", 2)
    Path(engine_fleet.folder, "hold-attempt").unlink()
    value = engine_fleet.result(run)
    assert value["status"] in {"recovered", "succeeded"}
    assert value["value"] == "hello!"
    ends = sum(line.startswith("end attempt") for line in engine_fleet.log())
    assert value["attempts"] == ends
    assert value["dollars"] == ends * 0.5


def test_an_attempt_that_may_not_be_repeated(engine_fleet: EngineFleet) -> None:
    """A worker killed in an attempt that is not idempotent: it is not made again, and the outcome says why."""
    engine_fleet.start_worker()
    Path(engine_fleet.folder, "hold-attempt").touch()
    run = engine_fleet.submit("recovering", folder=engine_fleet.folder, idempotent=False)
    engine_fleet.kill(engine_fleet.until_logged("begin attempt"))
    engine_fleet.start_worker()
    value = engine_fleet.result(run)
    assert value["status"] == "partial"
    assert value["errorType"] == "worker_dead"
    assert sum(line.startswith("begin attempt") for line in engine_fleet.log()) == 1


def test_a_stopped_worker_that_wakes_up_commits_nothing(engine_fleet: EngineFleet) -> None:
    """SIGSTOP, takeover, SIGCONT: the woken worker ends the step that it was in, and begins no other."""
    folder = Path(engine_fleet.folder)
    (folder / "hold-s1").touch()
    first = engine_fleet.start_worker()
    run = engine_fleet.submit("five", folder=engine_fleet.folder)
    engine_fleet.until_logged("begin s1")
    first.send_signal(signal.SIGSTOP)
    try:
        second = engine_fleet.start_worker()
        assert engine_fleet.until_logged("begin s1", 2) == second.pid
        (folder / "hold-s3").touch()
        (folder / "hold-s1").unlink()
        engine_fleet.until_logged("begin s3")
    finally:
        first.send_signal(signal.SIGCONT)
    engine_fleet.until_logged("end s1", 2)  # the woken worker ends the step that it was in
    (folder / "hold-s3").unlink()
    assert engine_fleet.result(run) == [f"s{n} done" for n in range(5)]
    later = {line.split()[2] for line in engine_fleet.log() if line.split()[1] in {"s2", "s3", "s4"}}
    assert later == {str(second.pid)}
    begun = Counter(line.split()[1] for line in engine_fleet.log() if line.startswith("begin"))
    assert begun.pop("s1") >= 2  # a third time if the second worker was late for a heartbeat
    assert begun == dict.fromkeys(("s0", "s2", "s3", "s4"), 1)


def test_a_run_that_kills_its_workers_ends_partial(engine_fleet: EngineFleet) -> None:
    """Three takeovers without a new step end the run: it is not given to a fifth worker."""
    for _ in range(4):
        engine_fleet.start_worker()
    run = engine_fleet.submit("deadly", folder=engine_fleet.folder)
    engine_fleet.until_logged("begin kill", 4)
    engine_fleet.start_worker()
    with pytest.raises(RunEnded, match="three times without progress") as ended:
        engine_fleet.result(run)
    assert ended.value.status == "partial"
    assert sum(line.startswith("begin kill") for line in engine_fleet.log()) == 4
    assert sum(line.startswith("begin before") for line in engine_fleet.log()) == 1


@pytest.mark.parametrize("seconds", [0.0, OUTAGE_SECONDS])
@pytest.mark.parametrize("name", ["postgres", "dbos"])
def test_the_database_goes_away_in_mid_run(
    name: str, seconds: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL crashes while a step runs, and comes back later than the lease: nothing runs twice, the run ends."""
    monkeypatch.delenv(postgres.GIVEN, raising=False)  # not the server of the other tests
    with fleet(name, tmp_path) as made:
        (tmp_path / "hold-s2").touch()
        made.start_worker()
        run = made.submit("five", folder=made.folder)
        made.until_logged("begin s2")
        made.start_worker()  # it must not take the run of a worker that could not renew its lease
        made.until(lambda: made.said().count("worker ready") == 2, "both workers are ready")
        with postgres.outage(made.url):
            time.sleep(seconds)  # real seconds of a real server
        time.sleep(LEASE_SECONDS)  # in which the other worker could take it
        (tmp_path / "hold-s2").unlink()
        assert made.result(run) == [f"s{n} done" for n in range(5)]
        assert sum(line.startswith("begin") for line in made.log()) == 5, made.said()


def test_a_finished_tool_call_is_not_repeated(engine_fleet: EngineFleet) -> None:
    """An agent killed in its last tool call: finished tool calls and model calls are not made again."""
    folder = Path(engine_fleet.folder)
    (folder / "hold-tool2").touch()
    engine_fleet.start_worker()
    run = engine_fleet.submit("agent", folder=engine_fleet.folder)
    engine_fleet.kill(engine_fleet.until_logged("begin tool2"))
    engine_fleet.start_worker()
    engine_fleet.until_logged("begin tool2", 2)
    (folder / "hold-tool2").unlink()
    assert engine_fleet.result(run) == ["tool0 done", "tool1 done", "tool1 done", "tool2 done"]
    counts = Counter(" ".join(line.split()[:2]) for line in engine_fleet.log())
    assert (counts["end tool0"], counts["end tool1"], counts["end tool2"]) == (1, 2, 1)
    assert {counts[f"model {turn}"] for turn in range(5)} == {1}
