"""The real Claude Code with our hooks in its settings, against a scripted model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from rung.core.domain import events as ev
from rung.core.domain.failures import Kind
from tests.hooks.conftest import FAILING, Stage

if TYPE_CHECKING:
    from pathlib import Path


def first(heard: list[str], words: str) -> int | None:
    """Return after how many calls the model first got this text."""
    return next((number for number, text in enumerate(heard) if words in text), None)


def test_a_loop_is_told_at_three_and_five_and_stopped_at_eight(stage: Stage) -> None:
    """A model that repeats a failing command is told at the third and fifth repetition, and its ninth call is denied."""
    stage.install()
    done = stage.run([FAILING] * 12 + [{"text": "I could not list it."}])
    heard = done["heard"]
    assert first(heard, "STOP and make a new plan") == 3
    assert first(heard, "entirely different tool or method") == 5
    assert first(heard, "THE END") == 8
    assert first(heard, "Denied by rung") == 9
    assert len([text for text in heard if "No such file or directory" in text and "Denied" not in text]) == 8
    assert sum("STOP and make a new plan" in text for text in heard) == 1
    assert "Do not make this call again" in heard[3]
    assert "(1)" in heard[3]
    assert "(2)" in heard[3]
    assert done["result"]["num_turns"] <= 13
    told = stage.story()
    assert isinstance(told[0], ev.Opened)
    kinds = [event.failure.kind for event in told if isinstance(event, ev.AttemptFailed)]
    assert kinds.count(Kind.NOT_FOUND) == 8
    assert kinds.count(Kind.LOOP_DETECTED) == 3
    rungs = [told[0].terms.rungs[event.decision.rung] for event in told if isinstance(event, ev.Decided)]
    assert rungs == ["replan", "explore", "force-done"]
    assert isinstance(told[-1], ev.Closed)
    assert told[-1].status == "partial"


def test_an_agent_that_finds_another_way_recovers(stage: Stage) -> None:
    """An agent that changes its approach at three is not denied anything, and its session counts as recovered."""
    stage.install()
    done = stage.run([FAILING] * 3 + [{"tool": "Bash", "input": {"command": "echo 7"}}, {"text": "It is 7."}])
    assert done["result"]["result"] == "It is 7."
    assert first(done["heard"], "Denied") is None
    assert isinstance(stage.story()[-1], ev.AttemptSucceeded)


def test_a_stop_without_evidence_is_sent_back_once(stage: Stage) -> None:
    """A stop without evidence is blocked once; the next stop, with `stop_hook_active`, passes, and the session is partial."""
    stage.install()
    done = stage.run([{"text": "All done: I created result.txt and all tests pass."}])
    heard = done["heard"]
    assert len(heard) == 2
    assert "Not finished yet (rung)" in heard[1]
    assert "result.txt" in heard[1]
    assert done["result"]["is_error"] is False
    told = stage.story()
    assert isinstance(told[-1], ev.Closed)
    assert told[-1].status == "partial"


def test_a_stop_with_evidence_passes_at_once(stage: Stage) -> None:
    """A claimed file exists: the stop is not blocked, and nothing is recorded."""
    stage.install()
    write = {"tool": "Bash", "input": {"command": "echo 7 > result.txt"}}
    done = stage.run([write, {"text": "Done: I created result.txt."}])
    assert len(done["heard"]) == 2
    assert (stage.project / "result.txt").read_text() == "7\n"
    assert not stage.journal.exists()


def test_an_api_failure_ends_partial_whatever_the_agent_says(stage: Stage) -> None:
    """The agent reports success; the journal has the failure and a partial outcome."""
    stage.install()
    done = stage.run(
        [FAILING], rules=[{"fault": "overloaded", "request": "2-99"}], env={"CLAUDE_CODE_MAX_RETRIES": "1"}
    )
    assert done["result"]["subtype"] == "success"
    assert done["result"]["is_error"] is True
    told = stage.story()
    assert isinstance(told[-1], ev.Closed)
    assert told[-1].status == "partial"


def broken(settings: Path, command: str, seconds: float | None = None) -> None:
    """Replace each of our commands by this one."""
    table: dict[str, Any] = json.loads(settings.read_text())
    for groups in table["hooks"].values():
        for group in groups:
            for hook in group["hooks"]:
                hook["command"] = command
                if seconds is not None:
                    hook["timeout"] = seconds
    settings.write_text(json.dumps(table))


@pytest.mark.parametrize(
    ("how", "command"),
    [
        ("killed", ": rung-hook; sh -c 'kill -9 $$' || true"),
        ("gone", ": rung-hook; test -f /nowhere/entry.py && python3 /nowhere/entry.py || true"),
        ("slow", ": rung-hook; sleep 30 || true"),
    ],
)
def test_a_hook_that_breaks_never_breaks_the_agent(stage: Stage, how: str, command: str) -> None:
    """A hook that is killed, missing or too slow does not affect the agent."""
    stage.install()
    broken(stage.settings, command, seconds=1 if how == "slow" else None)
    done = stage.run([{"tool": "Bash", "input": {"command": "echo 7"}}, {"text": "It is 7."}])
    assert done["exit"] == 0
    assert done["result"]["result"] == "It is 7."
    assert len(done["heard"]) == 2
    assert done["seconds"] < 60


def test_a_hook_that_crashes_says_so_at_the_next_start(stage: Stage) -> None:
    """A hook that cannot write its state does not affect the agent, and logs a line."""
    stage.install()
    (stage.data / "sessions").write_text("in the way")
    done = stage.run([{"tool": "Bash", "input": {"command": "echo 7"}}, {"text": "It is 7."}])
    assert done["result"]["result"] == "It is 7."
    lines = [json.loads(line) for line in (stage.data / "crash.log").read_text().splitlines()]
    assert lines
    assert {"at", "agent", "error", "where"} <= lines[0].keys()


def test_the_same_with_a_process_that_stays(stage: Stage) -> None:
    """The first event starts a resident server that answers the others in the same way."""
    stage.install()
    done = stage.run([FAILING] * 12 + [{"text": "I could not list it."}], env={"RUNG_HOOKS_RESIDENT": "1"})
    heard = done["heard"]
    there = stage.data / "serve.sock"
    assert there.exists()
    there.unlink()  # it looks for this, and ends
    assert first(heard, "STOP and make a new plan") == 3
    assert first(heard, "entirely different tool or method") == 5
    assert first(heard, "Denied by rung") == 9
    assert stage.story()[-1].status == "partial"


@pytest.mark.parametrize("there", [True, False])
def test_the_same_over_http(stage: Stage, there: bool) -> None:
    """With --http the hooks ask a server over loopback; without one, they answer by themselves."""
    stage.install(8643)
    done = stage.run([FAILING] * 12 + [{"text": "I could not list it."}], serve=8643 if there else 0)
    heard = done["heard"]
    assert first(heard, "STOP and make a new plan") == 3
    assert first(heard, "entirely different tool or method") == 5
    assert first(heard, "THE END") == 8
    assert first(heard, "Denied by rung") == 9
    assert len([text for text in heard if "No such file or directory" in text and "Denied" not in text]) == 8
    assert stage.story()[-1].status == "partial"
