"""Recovery of MCP sessions, without a client."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rung.core.domain.failures import Evidence, Kind
from rung.core.policy.parser import parse_policy_file
from rung.core.policy.templates import preset
from rung.engine.loop.process_state import RETRY_BUDGET
from rung.mcp.recovery_service import RecoveryService
from rung.mcp.server import explain_error
from rung.store import open_journal
from rung.store.settings import put_setting
from rung.wiring.policies import PolicyStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rung.store.journal.journal import Journal

OVERLOADED = Evidence(text="Error 529: overloaded_error")


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with open_journal(str(tmp_path / "journal.db")) as journal:
        yield journal


def test_sessions_share_the_retry_budget_of_the_server(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    """With tokens for one retry, the second session is not told to repeat."""
    monkeypatch.setattr(RETRY_BUDGET, "tokens", RETRY_BUDGET.COST)
    policy = preset("task").replace(patience=0)
    service = RecoveryService(journal, lambda: policy, jitter=lambda: 0.5)
    assert service.report_failure("one", OVERLOADED)["step"] == "repeat"
    assert service.report_failure("other", OVERLOADED)["step"] != "repeat"


def test_the_policy_of_now_decides(journal: Journal) -> None:
    """A policy change applies to the next failure of an open incident."""
    policies = [preset("task"), preset("task").replace(retry=frozenset())]
    service = RecoveryService(journal, lambda: policies[0], jitter=lambda: 0.5)
    first = service.report_failure("s", OVERLOADED)
    policies.pop(0)
    second = service.report_failure("s", OVERLOADED)
    assert (first["step"], second["step"] == "repeat") == ("repeat", False)
    assert first["incident"] == second["incident"]


def test_an_incident_that_ended_is_not_continued(journal: Journal) -> None:
    """After the last rung, the session's next failure opens a new incident."""
    service = RecoveryService(journal, lambda: preset("call").replace(unattended=True), jitter=lambda: 0.5)
    first = service.report_failure("s", Evidence(text="401 invalid x-api-key", status=401))
    assert first["step"] == "finish"
    assert service.report_failure("s", OVERLOADED)["incident"] != first["incident"]


def test_the_notes_of_the_project(journal: Journal, tmp_path: Path) -> None:
    """A client is told what is known when its session starts, and a partial end adds an issue; a failing read is told."""
    from rung.adapters.system.project_notes import ProjectNotes
    from rung.mcp.server import make_server

    (tmp_path / "learnings.md").write_text("## [TOOL_ERROR] Use make -k\n")
    service = RecoveryService(journal, lambda: preset("task"), notes=ProjectNotes(tmp_path), jitter=lambda: 0.5)
    assert "> Learning (TOOL_ERROR): Use make -k." in make_server(service).instructions
    service.report_failure("s", Evidence(text="no such table: users"))
    service.finish_partial("s", [], "no way on")
    assert "no such table" in (tmp_path / "issues.md").read_text()
    (tmp_path / "learnings.md").unlink()
    (tmp_path / "learnings.md").mkdir()
    with pytest.warns(RuntimeWarning, match="could not be read"):
        assert "make -k" not in make_server(service).instructions
    service.report_failure("t", Evidence(text="another error"))
    with pytest.warns(RuntimeWarning, match="a listener failed"):
        service.finish_partial("t", [], "no way on")


def test_the_contract_after_finish_is_that_of_the_same_incident(journal: Journal) -> None:
    """An agent that is told to finish, and does, gets the contract of the incident that ended, with what it completed."""
    service = RecoveryService(journal, lambda: preset("task"), jitter=lambda: 0.5)
    told = service.report_failure("s", Evidence(text="no key", finding=Kind.MISSING_CREDENTIALS))
    assert told["step"] == "finish"
    contract = service.finish_partial("s", ["parser"], "no key")
    assert (contract["incident"], contract["attempts"], contract["errorType"]) == (
        told["incident"],
        1,
        "missing_credentials",
    )
    assert (contract["escalationPath"], contract["completedSteps"]) == ([5], ["parser"])
    again = service.finish_partial("s", [], "another task")
    assert (again["incident"] != told["incident"], again["attempts"]) == (True, 0)


def test_an_error_that_names_a_reset_is_explained_with_its_wait(journal: Journal) -> None:
    """The wait until a limit reopens is counted from the clock of the service."""
    service = RecoveryService(journal, lambda: preset("task"), now=lambda: 1_760_000_000.0)
    known = explain_error(service, "Claude AI usage limit reached|1760004000", "", None)
    assert (known["kind"], known["wait_seconds"]) == ("quota_exhausted", 4_000.0)
    assert known["reopens_at"] == "2025-10-09T10:00:00Z"


def test_an_agent_is_told_when_its_limit_reopens(journal: Journal) -> None:
    """A parked agent is told to stop, and when to make its call again; it is not told to wait for an hour."""
    service = RecoveryService(journal, lambda: preset("task"), now=lambda: 1_760_000_000.0, jitter=lambda: 0.0)
    told = service.report_failure("s", Evidence(text="Claude AI usage limit reached|1760004000"))
    assert (told["kind"], told["step"], told["rung"]) == ("quota_exhausted", "repeat", "park")
    assert told["parked_until"] == "2025-10-09T10:00:00Z"
    assert told["instructions"].startswith(
        "Stop here, and say so: the limit reopens at 2025-10-09T10:00:00Z, in 1 h 7 min"
    )


def test_the_settings_of_the_reported_tool(journal: Journal) -> None:
    """A failure of a tool is answered by that tool's settings, and a policy set in the service by the next report."""
    book = parse_policy_file({"tools": {"bash": {"retries": 0}}})
    now = [0.0]
    policies = PolicyStore(journal, book, lambda: now[0])
    service = RecoveryService(journal, lambda: policies.pick("web"), project="web", jitter=lambda: 0.5)
    reset = Evidence(text="connection reset by peer", finding=Kind.NETWORK)
    assert service.report_failure("one", reset._replace(tool="bash"))["step"] == "finish"
    assert service.report_failure("two", reset._replace(tool="fetch"))["step"] == "repeat"
    put_setting(journal, "policy/web", {"retries": 0}, "ada")
    now[0] += 1.0
    assert service.report_failure("three", reset)["step"] == "finish"
