"""`rung explain SESSION`: the root cause of a recorded session."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

import rung
from rung.cli.group import root
from rung.store import open_journal
from rung.testing import HttpError, Script

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """A journal with a session whose two calls failed alike, one that never failed, and one with unrelated failures."""
    path = tmp_path / "journal.db"
    with open_journal(path) as opened:
        for session, errors in (
            ("lost", (HttpError(401, "invalid x-api-key"),)),
            ("lost", (HttpError(401, "invalid x-api-key"),)),
            ("good", ()),
            ("mixed", (HttpError(401, "invalid x-api-key"),)),
            ("mixed", (HttpError(400, "max_tokens must be positive"),)),
        ):
            rung.recover_sync(
                Script(*errors, "fine"),
                rung.Request(prompt="the task", model="small"),
                policy=rung.policy("call", backoff={"base": 0}),
                journal=opened,
                session=rung.Session("small", session),
                breakers=rung.BreakerRegistry(),
                retry_budget=None,
            )
        assert opened.flush()
    return path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(root, ("explain", *arguments))


def test_the_cause_and_what_follows(journal: Path) -> None:
    """The first failure is named with its kind, its incident and the later failures that follow from it."""
    out = " ".join(run("lost", "--journal", str(journal)).output.split())
    assert "Attempt 1 of the session went wrong first, auth_error" in out
    assert "1 later failure follows from it" in out
    assert "100% of the failures" in out
    assert "- 2: the same call failed in the same way" in out


def test_as_json(journal: Path) -> None:
    """With --json the answer is one object: session, step, kind, sentence, chain, confidence."""
    found = json.loads(run("lost", "--journal", str(journal), "--json").output)
    assert (found["session"], found["step"], found["kind"], found["confidence"]) == ("lost", 1, "auth_error", 1.0)
    assert [one["step"] for one in found["chain"]] == [2]


def test_unrelated_failures(journal: Path) -> None:
    """Where no failure explains the others, it says so and prints no step."""
    done = run("mixed", "--journal", str(journal))
    assert done.exit_code == 0
    assert "No single cause is certain: 2 failures are not linked." in done.output
    assert "confidence" not in done.output
    assert json.loads(run("mixed", "--journal", str(journal), "--json").output)["step"] is None


@pytest.mark.parametrize("name", ["good", "nobody"])
def test_neither_kind_nor_rule_nor_session(journal: Path, name: str) -> None:
    """A name that is none of them, or a session that never failed, is a one-line error; exit code 2."""
    done = run(name, "--journal", str(journal))
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert f"'{name}'" in done.stderr
    assert "a kind, a rule or the id of a session" in done.stderr


def test_a_journal_that_does_not_exist(tmp_path: Path) -> None:
    """A journal that was named and does not exist is the error; the usual one may be missing."""
    done = run("nobody", "--journal", str(tmp_path / "none.db"))
    assert done.exit_code != 0
    assert "none.db" in done.stderr
    assert "the id of a session" in run("nobody").stderr


def test_a_kind_needs_no_journal(tmp_path: Path) -> None:
    """A kind is explained whatever the journal."""
    assert run("timeout", "--journal", str(tmp_path / "none.db")).exit_code == 0
