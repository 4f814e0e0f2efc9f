"""A user's hooks around attempts and rungs: told, bounded, fail open, fail closed where they must."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import rung
from rung.adapters.system.user_hooks import CommandHook, hooked
from rung.core.domain import events as ev
from rung.testing import HttpError

SCHEMA = jsonschema.Draft202012Validator(json.loads(resources.files("rung").joinpath("schemas/hook.json").read_text()))
POLICY = rung.policy("call", backoff={"base": 0.001})
WHENS = ("attempt.pre", "attempt.post", "rung.pre", "rung.post")


@pytest.mark.parametrize("awaited", [False, True])
def test_each_moment_is_told_as_the_schema_says(awaited: bool) -> None:
    """The first attempt has its hooks, a repeated one its guard and those of its rung; every input fits the schema."""
    told: list[dict[str, Any]] = []
    hooks = [CommandHook(when=when, run=told.append) for when in WHENS]
    tries: list[int] = []

    def answer(request: rung.Request) -> str:
        tries.append(1)
        if len(tries) == 1:
            raise HttpError(529, "overloaded")
        return "done"

    async def later(request: rung.Request) -> str:
        return answer(request)

    request = rung.Request(prompt="go", model="m")
    if awaited:
        outcome = asyncio.run(rung.recover(hooked(later, hooks), request, policy=POLICY))
    else:
        outcome = rung.recover_sync(hooked(answer, hooks), request, policy=POLICY)
    assert outcome.status == "recovered"
    for given in told:
        SCHEMA.validate(given)
    assert [(one["when"], one["ok"], one["rung"]) for one in told] == [
        ("attempt.pre", None, ""), ("attempt.post", False, ""),
        ("attempt.pre", None, "retry"), ("rung.pre", None, "retry"), ("rung.post", True, "retry"),
    ]  # fmt: skip
    assert "overloaded" in told[1]["error"]


@pytest.mark.parametrize("code", ["import sys; sys.exit(1)", "import time; time.sleep(60)", "x ="])
@pytest.mark.parametrize("closed", [False, True])
def test_a_hook_that_breaks(tmp_path: Path, code: str, closed: bool) -> None:
    """Open, it is logged and passed over; closed, the attempt is not made, and the kind is hook_crash."""
    made: list[int] = []
    command = f'{sys.executable} -I -S -c "{code}"'
    attempt = hooked(
        lambda request: made.append(1) or "done",  # type: ignore[func-returns-value]  # both at once
        [CommandHook(when="attempt.pre", run=command, seconds=2, fail_closed=closed)],
        log=tmp_path / "crashes.jsonl",
    )
    with pytest.warns(RuntimeWarning, match="so the attempt is not made" if closed else "and was ignored"):
        outcome = rung.recover_sync(attempt, "go", policy=POLICY)
    assert outcome.ok is not closed
    assert bool(made) is not closed
    if closed:
        assert outcome.failure is not None
        assert outcome.failure.kind == "hook_crash"
    lines = [json.loads(line) for line in (tmp_path / "crashes.jsonl").read_text().splitlines()]
    assert {"at", "when", "hook", "error"} == lines[0].keys()


def test_a_hook_may_say_no(tmp_path: Path) -> None:
    """Exit code 2, or a function's `block`, keeps the attempt from being made, with its reason."""
    command = f"{sys.executable} -I -S -c \"import sys; sys.exit('not today') if 0 else (sys.stderr.write('not today'), sys.exit(2))\""
    for run in (command, lambda given: {"block": "not today"}):
        outcome = rung.recover_sync(
            hooked(lambda request: "done", [CommandHook(when="attempt.pre", run=run)]), "go", policy=POLICY
        )
        assert not outcome.ok
        assert "not today" in outcome.reason
    after = rung.recover_sync(
        hooked(lambda request: "done", [CommandHook(when="attempt.post", run=lambda given: {"block": "late"})]), "go"
    )
    assert after.ok


@pytest.mark.parametrize("awaited", [False, True])
def test_the_time_of_hooks_is_not_the_attempts(awaited: bool) -> None:
    """A hook that takes longer than the attempt may leaves the attempt its whole time."""
    policy = rung.policy("call", attempt_seconds=1, attempts=1)
    hooks = [CommandHook(when="attempt.pre", run="sleep 1.2")]

    async def later(request: rung.Request) -> str:
        return "done"

    if awaited:
        outcome = asyncio.run(rung.recover(hooked(later, hooks), "go", policy=policy))
    else:
        outcome = rung.recover_sync(hooked(lambda request: "done", hooks), "go", policy=policy)
    assert outcome.status == "succeeded"


@pytest.mark.parametrize("awaited", [False, True])
def test_a_post_hook_follows_a_timeout(awaited: bool) -> None:
    """An attempt that times out has its post hook, with the timeout as its error."""
    told: list[dict[str, Any]] = []
    hooks = [CommandHook(when="attempt.post", run=told.append)]
    policy = rung.policy("call", attempt_seconds=0.05, attempts=1)
    if awaited:
        asyncio.run(rung.recover(hooked(lambda request: asyncio.sleep(60), hooks), "go", policy=policy))
    else:
        rung.recover_sync(hooked(lambda request: time.sleep(60), hooks), "go", policy=policy)
    assert [(one["ok"], "AttemptTimeout" in one["error"]) for one in told] == [(False, True)]


@pytest.mark.parametrize("awaited", [False, True])
@pytest.mark.filterwarnings("ignore:rung. hook attempt.pre failed")
def test_the_seconds_of_a_function_hold(awaited: bool) -> None:
    """A function that hangs is ended after its seconds and ignored; in an async recovery the event loop goes on."""
    ticks: list[int] = []
    released = threading.Event()
    hooks = [CommandHook(when="attempt.pre", run=lambda given: released.wait(60) or None, seconds=0.2)]

    async def main() -> rung.Outcome[Any]:
        async def tick() -> None:
            while True:
                ticks.append(1)
                await asyncio.sleep(0.01)

        ticking = asyncio.create_task(tick())
        outcome: rung.Outcome[Any] = await rung.recover(hooked(lambda request: "done", hooks), "go")
        ticking.cancel()
        return outcome

    outcome = asyncio.run(main()) if awaited else rung.recover_sync(hooked(lambda request: "done", hooks), "go")
    released.set()
    assert outcome.status == "succeeded"
    crashed = [event.error for event in outcome.events if isinstance(event, ev.Crashed)]
    assert ["timed out after 0.2 s" in error for error in crashed] == [True]
    assert len(ticks) > 1 or not awaited


def test_a_post_hook_follows_a_stop() -> None:
    """An attempt that is stopped by Ctrl-C or a cancellation has its post hook once."""
    told: list[dict[str, Any]] = []
    hooks = [CommandHook(when="attempt.post", run=told.append)]

    def interrupted(request: rung.Request) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as stop:
        rung.recover_sync(hooked(interrupted, hooks), "go")
    assert stop.value.__dict__["__rung_outcome__"].status == "partial"

    async def cancelled() -> None:
        started = asyncio.Event()

        async def work(request: rung.Request) -> None:
            started.set()
            await asyncio.Event().wait()

        task = asyncio.create_task(rung.recover(hooked(work, hooks), "go"))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert [one["error"].partition(":")[0] for one in told] == ["KeyboardInterrupt", "CancelledError"]


def test_a_hung_hook_is_ended_with_its_children(tmp_path: Path) -> None:
    """A hook past its limit, and a child that ignores SIGTERM, are gone before the attempt starts."""
    child = tmp_path / "child"
    code = f"trap '' TERM; (trap '' TERM; echo > {child}; exec sleep 3341) & wait"
    hook = CommandHook(when="attempt.pre", run=f'sh -c "{code}"', seconds=2)

    def attempt(request: rung.Request) -> bool:
        assert child.exists()
        return b"sleep\x003341" in b"".join(path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline"))

    with pytest.warns(RuntimeWarning, match="hook attempt.pre failed and was ignored"):
        outcome = rung.recover_sync(hooked(attempt, [hook]), "go")
    assert outcome.value is False


def test_a_crash_of_a_hook_is_an_event() -> None:
    """A hook that breaks is in the events of the recovery, with or without a log file."""
    hook = CommandHook(when="attempt.pre", run="false")
    with pytest.warns(RuntimeWarning, match="hook attempt.pre failed"):
        outcome = rung.recover_sync(hooked(lambda request: "done", [hook]), "go")
    assert outcome.ok
    assert [event.what for event in outcome.events if isinstance(event, ev.Crashed)] == ["hook attempt.pre"]


def test_a_replayed_attempt_has_no_hooks(tmp_path: Path) -> None:
    """After a crash, the recorded result of an attempt is used without running its hooks again."""
    told: list[dict[str, Any]] = []
    hooks = [CommandHook(when=when, run=told.append) for when in WHENS]
    with rung.journal(str(tmp_path / "journal.db")) as journal:
        lease = journal.runs.claim("r")
        lease.record("attempt.1.begun", True)
        lease.record("attempt.1", {"value": "kept"})
        lease.release()
        outcome = rung.durable.recover_sync(hooked(lambda request: "new", hooks), "go", run_id="r", journal=journal)
    assert (outcome.value, told) == ("kept", [])


@pytest.mark.parametrize("when", ["attempt.pre", "rung.pre"])
@pytest.mark.parametrize("awaited", [False, True])
@pytest.mark.parametrize("ladder", ["task", "call", "pipeline"])
def test_a_veto_ends_it(when: str, awaited: bool, ladder: str) -> None:
    """A veto of the first or of a repeated attempt is not bypassed by the next rung: nothing runs after it."""
    made: list[int] = []

    def guard(given: dict[str, Any]) -> dict[str, Any] | None:
        return {"block": "not today"} if made or when == "rung.pre" else None

    def answer(request: rung.Request) -> str:
        made.append(1)
        raise HttpError(529, "overloaded")

    async def later(request: rung.Request) -> str:
        return answer(request)

    hooks = [CommandHook(when=when, run=guard)]
    policy = rung.policy(ladder, backoff={"base": 0.001}, models=["small", "large"], agents=["other"])
    request = rung.Request(prompt="go", model="small")
    if awaited:
        outcome = asyncio.run(rung.recover(hooked(later, hooks), request, policy=policy))
    else:
        outcome = rung.recover_sync(hooked(answer, hooks), request, policy=policy)
    assert (len(made), outcome.ok) == (1, False)
    assert "not today" in outcome.reason


def test_a_veto_of_the_first_attempt_runs_nothing() -> None:
    """On the ladder of a task, too, a command that a guard forbids is never run."""
    made: list[rung.Request] = []
    forbidden = CommandHook(when="attempt.pre", run=lambda given: {"block": "forbidden"})
    broken = CommandHook(when="attempt.pre", run="/nowhere/hook", fail_closed=True)
    outcome = rung.recover_sync(hooked(made.append, [forbidden]), "go", policy="task")
    assert (outcome.status, outcome.attempts, made) == ("partial", 1, [])
    with pytest.warns(RuntimeWarning, match="so the attempt is not made"):
        outcome = rung.recover_sync(hooked(made.append, [broken]), "go", policy="task")
    assert (outcome.status, outcome.attempts, made) == ("partial", 1, [])


@pytest.mark.parametrize(
    "given",
    [
        {"when": "never", "run": "x"},
        {"when": "attempt.pre", "run": " "},
        {"when": "attempt.pre", "run": "x", "seconds": 0},
    ],
)
def test_what_cannot_be_is_said_when_it_is_made(given: dict[str, Any]) -> None:
    """An unknown moment, no command, no time: refused with what is allowed."""
    with pytest.raises(rung.errors.ConfigError):
        CommandHook(**given)
