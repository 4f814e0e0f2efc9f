"""Operator messages reach a waiting recovery in any process."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

import rung
from rung.core.domain.errors import VersionConflict
from rung.core.domain.events import Ask
from rung.core.domain.incident import Incident
from rung.core.recovery.interventions import Intervention, InterventionType
from rung.store.settings import audit_trail, put_setting, record_audit, setting, settings
from rung.testing import HttpError, Script
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.core.domain.outcome import Outcome
    from rung.store.journal.journal import Journal

BUSY = HttpError(503, "busy")
LONG = 180.0


def in_thread(work: Callable[[], Outcome[str]]) -> Callable[[], Outcome[str]]:
    done: list[Outcome[str]] = []
    thread = threading.Thread(target=lambda: done.append(work()), daemon=True)
    thread.start()

    def ended() -> Outcome[str]:
        thread.join(LONG)
        return done[0]

    return ended


def test_an_order_from_another_process(make_journal: Callable[[], Journal]) -> None:
    """An intervention moves a waiting recovery to another model."""
    here, there = make_journal(), make_journal()
    policy = rung.policy("call", backoff={"base": 300, "cap": 300, "jitter": False})
    script = Script(BUSY, "done")
    ended = in_thread(
        lambda: rung.recover_sync(script, rung.Request(prompt="x", model="small"), policy=policy, journal=here)
    )
    ((incident,),) = wait_until(lambda: there.read("SELECT id FROM incident WHERE failures = 1"))
    there.runs.send(f"order/{incident}", {"action": "explode"})  # written by a newer Rung: ignored
    wait_until(lambda: there.runs.received(f"order/{incident}") is None)
    there.runs.send(f"order/{incident}", Intervention(InterventionType.RETRY, "ada", "large")._asdict())
    outcome = ended()
    assert (outcome.status, outcome.model, script.requests[-1].model) == ("recovered", "large", "large")


@pytest.mark.parametrize("awaited", [False, True])
def test_an_answer_from_another_process(make_journal: Callable[[], Journal], awaited: bool) -> None:
    """A question is answered through the journal; an answer to an older question is ignored."""
    here, there = make_journal(), make_journal()
    policy = rung.policy("model", models=["small", "large"], confirm="always", backoff={"base": 0.01})
    script = Script(*[rung.AttemptError("bad", finding="low_quality")] * 2, "done")
    request = rung.Request(prompt="x", model="small")
    ports: dict[str, Any] = {"policy": policy, "journal": here, "ask": here.operator_prompt()}
    ended = in_thread(
        lambda: (
            asyncio.run(rung.recover(script, request, **ports))
            if awaited
            else rung.recover_sync(script, request, **ports)
        )
    )
    ((incident, n),) = wait_until(lambda: there.read("SELECT incident, n FROM ask WHERE answer = ''"))
    there.runs.send(f"answer/{incident}/{n - 1}", {"option": "decline"})
    # A question with no timeout left ends after one poll: by then the older answer has been polled, too.
    assert here.operator_prompt(0.0)(Ask(0, "?", (), None, "", "", ""), Incident()).result(LONG) is None
    there.runs.send(f"answer/{incident}/{n}", {"option": "approve"})
    outcome = ended()
    assert (outcome.status, script.requests[-1].model) == ("recovered", "large")


def test_nobody_answers(journal: Journal, tmp_path: object) -> None:
    """A question without an answer in time blocks the incident, as without an operator."""
    policy = rung.policy("model", models=["small", "large"], confirm="always", report=f"{tmp_path}/blocked.md")
    script = Script(*[rung.AttemptError("bad", finding="low_quality")] * 2, "done")
    outcome = rung.recover_sync(
        script,
        rung.Request(prompt="x", model="small"),
        policy=policy,
        journal=journal,
        ask=journal.operator_prompt(0.3),
    )
    assert outcome.status == "blocked"


def test_a_session_is_put_on_another_model(make_journal: Callable[[], Journal]) -> None:
    """Calls of a session soon use the model that an operator chose."""
    here, there = make_journal(), make_journal()
    session, request = rung.Session(id="s-1"), rung.Request(prompt="x", model="small")

    def model() -> str | None:
        script = Script("a")
        rung.recover_sync(script, request, journal=here, session=session)
        return script.requests[0].model

    assert model() == "small"
    there.runs.send("model/s-1", {"model": "large"})
    wait_until(lambda: model() == "large", pause=0.1)


def test_settings(journal: Journal) -> None:
    """A change of an outdated version raises; every change is audited without secrets."""
    assert setting(journal, "policy") == ("policy", None, 0, 0.0, "")
    one = put_setting(journal, "policy", {"retries": 1}, "ada", expected=0)
    assert one == setting(journal, "policy")
    with pytest.raises(VersionConflict, match=r"policy: changed by another writer \(version 1, expected 0\)"):
        put_setting(journal, "policy", {"retries": 2}, "bob", expected=0)
    put_setting(journal, "policy/site", {"retries": 3}, "bob")
    assert [found.name for found in settings(journal, "policy")] == ["policy", "policy/site"]
    record_audit(journal, "ada", "retry", "session/s-1", {"key": "sk-ant-api03-" + "Q7x" * 20 + ""})
    newest, *_, oldest = audit_trail(journal)
    assert (oldest.who, oldest.action, oldest.detail) == ("ada", "set", {"before": None, "after": {"retries": 1}})
    assert "sk-ant" not in str(newest.detail)
    assert [entry.action for entry in audit_trail(journal, subject="session/s-1")] == ["retry"]
    assert not audit_trail(journal, after=newest.seq)
