"""Policies over HTTP: what a GET returned can be PUT, and the document's RetryPolicy with its nine fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import rung
from rung.testing import HttpError, Script

if TYPE_CHECKING:
    from tests.service.conftest import Running

DOCUMENT: dict[str, Any] = {
    "id": "default",
    "name": "careful",
    "maxRetries": 2,
    "backoffBase": 1,
    "backoffMultiplier": 3,
    "maxBackoff": 20,
    "retryableErrors": ["rate_limit", "server_error"],
    "autoEscalate": False,
    "escalateAfterRetries": 2,
}
PATHS = [("/api/retry-policy", "default"), ("/api/projects/team/shop/retry-policy", "team/shop")]


@pytest.mark.parametrize(("path", "name"), PATHS)
def test_the_documents_policy_is_stored(service: Running, path: str, name: str) -> None:
    """The nine fields are stored without If-Match, and a GET returns them; a second PUT of them replaces the first."""
    wanted = DOCUMENT | {"id": name}
    for retries in (2, 4):
        changed = service.admin.put(path, json=wanted | {"maxRetries": retries})
        assert changed.status_code == 200, changed.text
        found = service.get(path)
        assert {key: found[key] for key in wanted} == wanted | {"maxRetries": retries}
    assert found["version"] == 2


@pytest.mark.parametrize(("path", "name"), PATHS)
def test_a_get_can_be_put_back(service: Running, path: str, name: str) -> None:
    """What a GET returned is accepted as it is, changes nothing, and pins no value that is inherited."""
    before = service.get(path)
    assert before["id"] == name
    assert service.admin.put(path, json=before).status_code == 200
    after = service.get(path)
    assert after == before | {"version": 1}
    assert after["settings"] == {}


def test_a_changed_get_changes_what_was_changed(service: Running) -> None:
    """A field that is changed in what a GET returned is stored beside the settings; the others stay as they are."""
    service.admin.put(
        "/api/retry-policy",
        json={"settings": {"retry": ["overloaded"], "dollars": 3}, "maxRetries": 1},
        headers={"if-match": '"0"'},
    )
    found = service.get("/api/retry-policy")
    assert (found["retryableErrors"], found["retryableKinds"]) == ([], ["overloaded"])
    changed = service.admin.put("/api/retry-policy", json=found | {"maxRetries": 5})
    assert changed.json()["settings"] == {"retry": ["overloaded"], "dollars": 3, "retries": 5}


def test_nine_fields_of_a_get_keep_the_kinds(service: Running) -> None:
    """A client that knows the nine fields alone does not change the kinds that its error types stand for."""
    before = service.get("/api/retry-policy")
    service.admin.put("/api/retry-policy", json={name: before[name] for name in DOCUMENT})
    after = service.get("/api/retry-policy")
    assert after["retryableKinds"] == before["retryableKinds"]
    assert "malformed_output" in after["retryableKinds"]


def test_a_stale_version_is_refused(service: Running) -> None:
    """Two clients that read the same version cannot both replace it, by If-Match or by the version in the body."""
    first = service.get("/api/retry-policy")
    assert service.admin.put("/api/retry-policy", json=first | {"maxRetries": 1}).status_code == 200
    assert service.admin.put("/api/retry-policy", json=first | {"maxRetries": 9}).status_code == 412
    stale = service.admin.put("/api/retry-policy", json=DOCUMENT, headers={"if-match": '"0"'})
    assert stale.status_code == 412
    assert service.get("/api/retry-policy")["maxRetries"] == 1


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        (DOCUMENT | {"id": "shop"}, 422, "id"),
        (DOCUMENT | {"retryableErrors": ["auth_error"]}, 422, "retry"),
        (DOCUMENT | {"ladder": "call"}, 422, "ladder"),
        ({"settings": {"retries": 1}, "toml": "retries = 2", "version": 0}, 422, "toml"),
        ({"maxRetries": 1}, 428, None),
        ({"toml": "retries = 1"}, 428, None),
    ],
)
def test_a_policy_that_contradicts_itself(
    service: Running, body: dict[str, Any], status: int, field: str | None
) -> None:
    """An id of another path, another ladder, contradicting settings and a part without a version are refused."""
    answer = service.admin.put("/api/retry-policy", json=body)
    assert (answer.status_code, field is None or field in answer.json()["field"]) == (status, True), answer.text
    assert service.get("/api/retry-policy")["version"] == 0


def test_retryable_errors_hold_in_a_recovery(service: Running) -> None:
    """`retryableErrors: ["server_error"]` in the service retries 503 and 504, and not 429."""
    service.admin.put("/api/retry-policy", json=DOCUMENT | {"retryableErrors": ["server_error"], "backoffBase": 0})
    calls = {}
    for status in (503, 504, 429):
        script = Script(HttpError(status, "no"), "fine")
        policy = service.context.policies.effective().replace(patience=0.0, models=())
        rung.recover_sync(script, rung.Request(prompt="x", model="small"), policy=policy, retry_budget=None)
        calls[status] = [decision for decision in script.requests if decision.prompt == "x"]
    assert {status: len(made) for status, made in calls.items()} == {503: 2, 504: 2, 429: 1}
