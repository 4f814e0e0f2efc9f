"""One suite over all durable engines: embedded on SQLite and PostgreSQL, DBOS, Temporal."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rung.core.domain.errors import RunEnded, RunNotFound
from rung.engine.durable.port import RunState

if TYPE_CHECKING:
    from tests.engines.fleets import EngineFleet


def test_steps_run_once_and_in_order(engine_fleet: EngineFleet) -> None:
    """A submitted run is taken by a worker, its steps run once each, and its value is returned, also later."""
    engine_fleet.start_worker()
    run = engine_fleet.submit("five", folder=engine_fleet.folder)
    assert engine_fleet.result(run) == [f"s{n} done" for n in range(5)]
    assert [line.split()[:2] for line in engine_fleet.log()] == [
        [what, f"s{n}"] for n in range(5) for what in ("begin", "end")
    ]
    assert engine_fleet.result(run) == [f"s{n} done" for n in range(5)]


def test_submit_is_idempotent(engine_fleet: EngineFleet) -> None:
    """A second submit with the same id changes nothing, also after the end of the run."""
    engine_fleet.start_worker()
    run = engine_fleet.submit("five", folder=engine_fleet.folder)
    again = engine_fleet.call(lambda engine: engine.submit(run, "five", {"folder": "/nowhere"}))
    assert again is False
    engine_fleet.result(run)
    assert engine_fleet.call(lambda engine: engine.submit(run, "five", {"folder": "/nowhere"})) is False
    assert len(engine_fleet.log()) == 10


def test_errors_of_steps_and_tasks(engine_fleet: EngineFleet) -> None:
    """A failing step raises in the task, which may go on; an error that leaves the task ends the run as failed."""
    engine_fleet.start_worker()
    caught = engine_fleet.submit("caught", folder=engine_fleet.folder)
    uncaught = engine_fleet.submit("uncaught", folder=engine_fleet.folder)
    value = engine_fleet.result(caught)
    assert "no such thing" in value["caught"]
    assert value["after"] == "after done"
    with pytest.raises(RunEnded, match="no such thing") as ended:
        engine_fleet.result(uncaught)
    assert ended.value.status == "failed"


def test_a_failed_step_is_not_repeated_after_a_crash(engine_fleet: EngineFleet) -> None:
    """The error of a step is recorded: after a crash the task gets it again, and the step does not run again."""
    Path(engine_fleet.folder, "hold-after").touch()
    engine_fleet.start_worker()
    run = engine_fleet.submit("caught", folder=engine_fleet.folder)
    engine_fleet.kill(engine_fleet.until_logged("begin after"))
    Path(engine_fleet.folder, "hold-after").unlink()
    engine_fleet.start_worker()
    assert "no such thing" in engine_fleet.result(run)["caught"]
    assert sum(line.startswith("fail") for line in engine_fleet.log()) == 1


def test_messages_and_timers(engine_fleet: EngineFleet) -> None:
    """A wait returns the message, the same one when asked again, or None after its timeout; a sleep ends."""
    engine_fleet.start_worker()
    run = engine_fleet.submit("approval", folder=engine_fleet.folder, timeout=None)
    silent = engine_fleet.submit("approval", folder=engine_fleet.folder, timeout=0.2)
    sleeping = engine_fleet.submit("sleeper", folder=engine_fleet.folder, seconds=0.2)
    engine_fleet.until_logged("end before", 3)
    engine_fleet.call(lambda engine: engine.send(run, "ok", {"by": "Ada"}))
    assert engine_fleet.result(run) == [{"by": "Ada"}, {"by": "Ada"}]
    assert engine_fleet.result(silent) == [None, None]
    assert engine_fleet.result(sleeping) == "after done"


def test_a_timer_keeps_its_time_over_a_crash(engine_fleet: EngineFleet) -> None:
    """A worker that dies during a sleep: the next one waits only until the time that was recorded first."""
    engine_fleet.start_worker()
    run = engine_fleet.submit("sleeper", folder=engine_fleet.folder, seconds=1.0)
    engine_fleet.kill(engine_fleet.until_logged("end armed"))
    engine_fleet.start_worker()
    assert engine_fleet.result(run) == "after done"
    assert sum(line.startswith("end before") for line in engine_fleet.log()) == 1


def test_cancel(engine_fleet: EngineFleet) -> None:
    """A cancelled run ends, no later step of it begins, and a run that has ended cannot be cancelled."""
    Path(engine_fleet.folder, "hold-s1").touch()
    engine_fleet.start_worker()
    run = engine_fleet.submit("five", folder=engine_fleet.folder)
    engine_fleet.until_logged("begin s1")
    assert engine_fleet.call(lambda engine: engine.cancel(run)) is True
    Path(engine_fleet.folder, "hold-s1").unlink()
    with pytest.raises(RunEnded) as ended:
        engine_fleet.result(run)
    assert ended.value.status == "cancelled"
    other = engine_fleet.submit("sleeper", folder=engine_fleet.folder, seconds=0)
    engine_fleet.result(other)
    assert not any("s2" in line for line in engine_fleet.log())
    assert engine_fleet.call(lambda engine: engine.cancel(run)) is False
    assert engine_fleet.call(lambda engine: engine.cancel(other)) is False


def test_list(engine_fleet: EngineFleet) -> None:
    """Runs are listed by state and task."""
    waiting = engine_fleet.submit("approval", folder=engine_fleet.folder, timeout=None)
    engine_fleet.start_worker()
    done = engine_fleet.submit("sleeper", folder=engine_fleet.folder, seconds=0)
    failed = engine_fleet.submit("uncaught", folder=engine_fleet.folder)
    engine_fleet.result(done)
    with pytest.raises(RunEnded):
        engine_fleet.result(failed)
    engine_fleet.until_logged("end before", 2)

    def states(**filters: Any) -> dict[str, RunState]:
        infos = engine_fleet.call(lambda engine: engine.list_runs(**filters))
        return {info.id: info.state for info in infos if info.id in {waiting, done, failed}}

    expected = {waiting: RunState.RUNNING, done: RunState.SUCCEEDED, failed: RunState.FAILED}
    engine_fleet.until(lambda: states() == expected, "all three are listed")  # a server's list may be late
    assert states(task="sleeper") == {done: RunState.SUCCEEDED}
    assert states(states=[RunState.FAILED]) == {failed: RunState.FAILED}
    assert states(states=[RunState.RUNNING]) == {waiting: RunState.RUNNING}
    (info,) = [
        info for info in engine_fleet.call(lambda engine: engine.list_runs(task="approval")) if info.id == waiting
    ]
    assert info.task == "approval"
    engine_fleet.call(lambda engine: engine.cancel(waiting))


def test_unknown_runs(engine_fleet: EngineFleet) -> None:
    """A run that does not exist is a clear error."""
    for act in (
        lambda engine: engine.result("no-such-run", 5.0),
        lambda engine: engine.cancel("no-such-run"),
    ):
        with pytest.raises(RunNotFound):
            engine_fleet.call(act)


def test_a_result_has_a_time_limit(engine_fleet: EngineFleet) -> None:
    """Waiting for a result ends after its seconds, and the run goes on."""
    run = engine_fleet.submit("five", folder=engine_fleet.folder)

    async def wait_briefly(engine: Any) -> str:
        try:
            await engine.result(run, 0.2)
        except TimeoutError:
            return "late"
        return "ended"

    assert engine_fleet.call(wait_briefly) == "late"
    engine_fleet.start_worker()
    assert engine_fleet.result(run) == [f"s{n} done" for n in range(5)]


def test_a_recovery_inside_a_task(engine_fleet: EngineFleet) -> None:
    """Attempts are steps: failed ones are repeated by the ladder, and costs and steps are in the outcome."""
    engine_fleet.start_worker()
    value = engine_fleet.result(engine_fleet.submit("recovering", folder=engine_fleet.folder))
    assert value["status"] == "recovered"
    assert (value["value"], value["attempts"], value["dollars"]) == ("hello!", 3, 1.5)
    assert value["completedSteps"] == ["attempt 0", "attempt 1", "attempt 2"]


def test_a_question_inside_a_task(engine_fleet: EngineFleet) -> None:
    """A question of a recovery is answered by a message, and the answer decides."""
    engine_fleet.start_worker()
    run = engine_fleet.submit("asking", folder=engine_fleet.folder)
    engine_fleet.call(lambda engine: engine.send(run, "model.ask.1", "stop"))
    assert engine_fleet.result(run)["status"] in {"partial", "blocked", "failed"}


def test_a_stopped_worker_finishes_what_it_has(engine_fleet: EngineFleet) -> None:
    """On SIGTERM a worker takes nothing new, finishes what it has in hand, and exits with 0.

    That is a run; of Temporal, whose runs belong to no worker, a step.
    """
    Path(engine_fleet.folder, "hold-s3").touch()
    worker = engine_fleet.start_worker()
    run = engine_fleet.submit("five", folder=engine_fleet.folder)
    engine_fleet.until_logged("begin s3")
    worker.send_signal(signal.SIGTERM)
    engine_fleet.until(lambda: "no new runs" in engine_fleet.said(), "the worker is stopping")
    Path(engine_fleet.folder, "hold-s3").unlink()
    assert worker.wait(60) == 0, engine_fleet.said()
    ended = [line.split()[1] for line in engine_fleet.log() if line.startswith("end")]
    assert ended == ["s0", "s1", "s2", "s3", *(["s4"] if engine_fleet.name != "temporal" else [])]
    if engine_fleet.name == "temporal":
        engine_fleet.start_worker()
    assert engine_fleet.result(run) == [f"s{n} done" for n in range(5)]
    assert sum(line.startswith("begin") for line in engine_fleet.log()) == 5
    assert "Traceback" not in engine_fleet.said()


def test_one_run_has_one_worker(engine_fleet: EngineFleet) -> None:
    """Two workers share the runs: every step of every run runs once."""
    engine_fleet.start_worker()
    engine_fleet.start_worker()
    runs = [engine_fleet.submit("five", folder=engine_fleet.folder) for _ in range(6)]

    async def wait_for_all(engine: Any) -> list[Any]:
        return list(await asyncio.gather(*(engine.result(run) for run in runs)))

    assert engine_fleet.call(wait_for_all) == [[f"s{n} done" for n in range(5)]] * 6
    assert sum(line.startswith("begin") for line in engine_fleet.log()) == 30
