"""A user's hooks around attempts and rungs: told, bounded, fail open, fail closed where they must."""

from __future__ import annotations

import asyncio
import json
import sys
from importlib import resources
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

import rung
from rung.adapters.system.user_hooks import CommandHook, hooked
from rung.testing import HttpError

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = jsonschema.Draft202012Validator(json.loads(resources.files("rung").joinpath("schemas/hook.json").read_text()))
POLICY = rung.policy("call", backoff={"base": 0.001})
WHENS = ("attempt.pre", "attempt.post", "rung.pre", "rung.post")


@pytest.mark.parametrize("awaited", [False, True])
def test_each_moment_is_told_as_the_schema_says(awaited: bool) -> None:
    """The first attempt has its hooks, a repeated one those of its rung; every input fits the schema."""
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
        ("attempt.pre", None, ""), ("attempt.post", False, ""), ("rung.pre", None, "retry"), ("rung.post", True, "retry"),
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
