"""Policies set in the service hold in the gateway from the first call, as GET tells them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anthropic
import pytest

from rung.core.policy.parser import parse_policy_file
from rung.store import open_journal
from tests.gateway.behind import Behind

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.service.conftest import Running

FILE = {"models": ["small", "large"], "patience": 0, "backoff": {"base": 0.02, "cap": 0.1}}
BROKEN = [{"fault": "server_error"}]


@pytest.fixture
def behind(service: Running, tmp_path: Path) -> Iterator[Behind]:
    """A gateway over the journal of the service, with the same file, whose upstream always fails."""
    service.context.policies.book = parse_policy_file({"policy": FILE})
    with Behind(BROKEN, policy={**FILE, "retries": 3}, journal=open_journal(tmp_path / "journal.db")) as gateway:
        yield gateway


def put(service: Running, project: str = "", **settings: Any) -> dict[str, Any]:
    """Store a policy, and return what GET says of it."""
    path = f"/api/projects/{project}/retry-policy" if project else "/api/retry-policy"
    tag = service.admin.get(path).headers["etag"]
    answer = service.admin.put(path, json={"settings": settings}, headers={"if-match": tag})
    assert answer.status_code == 200, answer.text
    return dict(service.get(path))


def models_called(behind: Behind, project: str) -> list[str]:
    """Make a call of a project with the SDK, and return the models that the upstream was asked for."""
    before = len(behind.lab.requests)
    client = behind.claude(default_headers={"x-rung-project": project} if project else {})
    with pytest.raises(anthropic.APIStatusError):
        client.messages.create(
            model="small", max_tokens=4_000, messages=[{"role": "user", "content": "count to 4 as a"}]
        )
    return [request.json["model"] for request in behind.lab.requests[before:]]


@pytest.mark.parametrize("known", [False, True], ids=["new", "known"])
@pytest.mark.parametrize("default", [False, True], ids=["project", "default"])
def test_the_first_call_after_a_put(service: Running, behind: Behind, known: bool, default: bool) -> None:
    """A call right after a PUT, of a project that the gateway knows or not, has the retries that were just set."""
    if known:
        models_called(behind, "web")
        for _, breaker in behind.gateway.breakers.items():  # the call gave both models up: none would be asked for 3 s
            breaker.close(behind.gateway.clock.now())
    for retries in (1, 2, 0):
        got = put(service, "" if default else "web", retries=retries, auto_escalate=False)
        assert got["maxRetries"] == retries
        assert models_called(behind, "web") == ["small"] * (1 + retries)


CHANGES: list[dict[str, Any]] = [
    {},
    {"retries": 1},
    {"retries": 2, "escalate_after": 1},
    {"retries": 3, "escalate_after": 5},
    {"retries": 2, "auto_escalate": False},
    {"template": "off"},
    {"template": "conservative", "confirm": "never"},
    {"retry": []},
    {"attempts": 2},
]


@pytest.mark.parametrize("changed", CHANGES, ids=str)
def test_the_gateway_does_what_get_says(service: Running, behind: Behind, changed: dict[str, Any]) -> None:
    """The calls on the first model, the escalation and the disabled recovery are those of GET, by default and changed."""
    said = put(service, "shop", **{"backoff": FILE["backoff"], **changed})
    called = models_called(behind, "shop")
    retries, after = said["maxRetries"], said["escalateAfterRetries"]
    is_off = not retries or not said["retryableErrors"]
    own = 1 if is_off else 1 + min(retries, after) if said["autoEscalate"] else 1 + retries
    cap = said["settings"].get("attempts")
    if cap is not None:
        own = min(own, cap - 1)  # the last attempt is kept for the other model
        assert len(called) <= cap
    assert called.count("small") == min(own, len(called))
    escalates = not is_off and said["autoEscalate"] and after <= retries
    assert ("large" in called) is escalates


def test_waits_are_bounded_by_what_get_says(service: Running, tmp_path: Path) -> None:
    """The gateway's default backoff is the one that GET shows: base, multiplier and cap."""
    service.context.policies.book = parse_policy_file({})
    with Behind(policy={}, journal=open_journal(tmp_path / "journal.db")) as gateway:
        said = service.get("/api/retry-policy")
        gateway.policy_table.pop("backoff")
        gateway.policy_table.pop("retries")
        gateway.gateway.reload(gateway.settings())
        used = gateway.gateway.policy("")
    assert (used.backoff.base, used.backoff.multiplier, used.backoff.cap) == (
        said["backoffBase"], said["backoffMultiplier"], said["maxBackoff"],
    )  # fmt: skip
    assert used.retries == said["maxRetries"]
    assert [used.backoff.ceiling(n) for n in range(1, 4)] == said["waits"] == [1, 2, 4]


def test_the_timeout_of_an_attempt(service: Running, tmp_path: Path) -> None:
    """`attempt_seconds`, set just before the first call, ends an attempt whose upstream does not answer."""
    service.context.policies.book = parse_policy_file({"policy": FILE})
    journal = open_journal(tmp_path / "journal.db")
    with Behind([{"fault": "slow", "seconds": 30}], policy={**FILE, "models": []}, journal=journal) as gateway:
        put(service, "slow", attempt_seconds=0.3, retries=1)
        with pytest.raises(anthropic.APIStatusError) as raised:
            gateway.claude(default_headers={"x-rung-project": "slow"}).messages.create(
                model="small", max_tokens=4_000, messages=[{"role": "user", "content": "count to 4 as a"}]
            )
        assert "attempt timed out after 0.3 s" in str(raised.value)
        assert gateway.attempts == 2


def test_a_stream_that_takes_too_long_is_resumed(service: Running, tmp_path: Path) -> None:
    """A stream that `attempt_seconds` cuts is continued where the client is, and no word comes twice."""
    service.context.policies.book = parse_policy_file({"policy": FILE})
    journal = open_journal(tmp_path / "journal.db")
    with Behind(policy={**FILE, "models": []}, gap=0.05, journal=journal) as gateway:
        put(service, "slow", attempt_seconds=0.5)
        client = gateway.claude(default_headers={"x-rung-project": "slow"})
        with client.messages.stream(
            model="small", max_tokens=4_000, messages=[{"role": "user", "content": "count to 40 as apple"}]
        ) as events:
            text = events.get_final_text()
        assert text.split() == [f"apple{n}" for n in range(1, 41)]
        assert gateway.attempts > 1


def test_get_shows_jitter_and_the_timeout(service: Running) -> None:
    """GET shows that waits are random up to those listed, and the timeout of an attempt; PUT takes both by name."""
    said = service.get("/api/retry-policy")
    assert (said["jitter"], said["waits"], said["attemptSeconds"]) == (True, [1, 2, 4], None)
    changed = service.admin.put("/api/retry-policy", json={**said, "jitter": False, "attemptSeconds": 5})
    assert changed.status_code == 200, changed.text
    got = service.get("/api/retry-policy")
    assert (got["jitter"], got["attemptSeconds"]) == (False, 5)
    assert got["settings"] == {"backoff": {"jitter": False}, "attempt_seconds": 5}
