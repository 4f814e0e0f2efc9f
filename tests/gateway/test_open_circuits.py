"""Services that are down: new calls leave them at once, one call at a time probes them, and all are taken back."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import pytest

from rung.core.policy.breaker import CircuitState
from rung.testing.provider import Lab
from tests.gateway.behind import WHOLE, Behind, messages

if TYPE_CHECKING:
    from collections.abc import Iterator

DOWN = [{"fault": "overloaded"}]
PATIENT: dict[str, Any] = {"patience": 120}


@pytest.fixture
def backup(monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    """Provide another upstream that works."""
    monkeypatch.setenv("BACKUP_KEY", "sk-backup")
    with Lab() as lab:
        yield lab


def nobody() -> str:
    """Return a URL where connections are refused."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{found.getsockname()[1]}"


def upstream(url: str, wire: str = "anthropic") -> dict[str, Any]:
    return {"backup": {"wire": wire, "url": url, "key_env": "BACKUP_KEY"}}


def talk(behind: Behind, session: str) -> None:
    """Make one call of a conversation, which is answered."""
    headers = {"x-rung-session": session}
    assert messages(behind.claude(default_headers=headers), stream=False).text == WHOLE


def end_pauses(behind: Behind) -> None:
    """End the pauses before the next probes: after one that fails on a busy machine they are long."""
    probes = behind.gateway.route_probe
    probes.seconds = 0
    for route in probes.due_times():
        probes.mark_healthy(route)
        probes.mark_failed(route)


def circuits(behind: Behind) -> dict[str, CircuitState]:
    return {key.partition("/")[0]: breaker.circuit for key, breaker in behind.gateway.breakers.items()}


def test_new_conversations_leave_an_upstream_that_is_down(backup: Lab) -> None:
    """After one call was handed over to another upstream with the same model, other conversations go there at once."""
    with Behind(DOWN, policy=PATIENT, upstreams=upstream(backup.url)) as behind:
        for number in range(4):
            talk(behind, str(number))
        assert (behind.attempts, backup.attempts) == (4, 4)


def test_a_refused_connection_opens_the_circuit(backup: Lab) -> None:
    """An upstream where nobody listens is tried by one call, with its retries, and then left by all."""
    with Behind([], policy=PATIENT, anthropic=nobody(), upstreams=upstream(backup.url)) as behind:
        for number in range(3):
            talk(behind, str(number))
        assert behind.gateway.health.routes["anthropic", "small"].failures == {"network": 4}
        assert circuits(behind) == {"anthropic": CircuitState.OPEN, "backup": CircuitState.CLOSED}
        assert backup.attempts == 3


def test_a_dead_fallback_opens_its_circuit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fallback where nobody listens is left as well: the next call that is handed over does not repeat its retries."""
    monkeypatch.setenv("BACKUP_KEY", "sk-backup")
    policy = {**PATIENT, "models": ["anthropic/small", "backup/gpt-5.1"]}
    with Behind(DOWN, policy=policy, upstreams=upstream(nobody(), "openai")) as behind, behind.http() as client:
        request = {"model": "small", "max_tokens": 500, "messages": [{"role": "user", "content": "x"}]}
        for _ in range(2):
            got = client.post("/v1/messages", json=request, headers={"x-stainless-timeout": "2"})
            assert got.status_code == 529
        assert circuits(behind) == {"anthropic": CircuitState.OPEN, "backup": CircuitState.OPEN}
        assert behind.gateway.health.routes["backup", "gpt-5.1"].failures["network"] <= 5


def test_a_session_returns_to_its_upstream(backup: Lab) -> None:
    """A session that stays on another upstream with the same model probes its own one, and returns when that is back."""
    with Behind(DOWN, policy=PATIENT, upstreams=upstream(backup.url), probe_seconds=0) as behind:
        talk(behind, "one")
        talk(behind, "one")
        assert (behind.attempts, backup.attempts) == (5, 2)
        behind.lab.use()
        end_pauses(behind)
        asked = behind.attempts
        talk(behind, "one")
        talk(behind, "two")
        assert (behind.attempts - asked, backup.attempts) == (2, 2)


@pytest.mark.parametrize("fault", ["quota", "payment"])
def test_an_empty_account_is_no_outage(fault: str, backup: Lab) -> None:
    """A conversation that left an empty account stays away until a probe succeeds; new ones ask the account themselves."""
    with Behind([{"fault": fault}], policy=PATIENT, upstreams=upstream(backup.url)) as behind:
        talk(behind, "one")
        talk(behind, "one")
        assert (behind.attempts, backup.attempts) == (1, 2)
        talk(behind, "two")
        assert (behind.attempts, backup.attempts) == (2, 3)
        assert circuits(behind) == {"anthropic": CircuitState.CLOSED, "backup": CircuitState.CLOSED}
        behind.lab.use()
        end_pauses(behind)
        asked = behind.attempts
        talk(behind, "one")
        talk(behind, "two")
        assert (behind.attempts - asked, backup.attempts) == (2, 3)
