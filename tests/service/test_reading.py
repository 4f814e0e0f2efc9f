"""What the page reads: lists that are filtered, sorted and paged, figures with their denominators, files."""

from __future__ import annotations

import csv
import io
import json
import os
from typing import TYPE_CHECKING

import pytest

import rung
from rung.core.classify.error_types import ErrorType
from rung.testing import Script

if TYPE_CHECKING:
    from pathlib import Path

    from tests.service.conftest import Running


def test_sessions(service: Running, past: None) -> None:
    """Each once, whatever the page's size; narrowed by all that can be asked for."""
    seen, cursor = [], None
    while True:
        page = service.get("/api/sessions", limit=1, **({"cursor": cursor} if cursor else {}))
        assert page["total"] == 3
        seen += [one["id"] for one in page["items"]]
        cursor = page["nextCursor"]
        if cursor is None:
            break
    assert seen == ["good", "saved", "lost"]
    for query, found in (
        ({"status": "recovered"}, ["saved"]),
        ({"status": "active"}, []),
        ({"q": "SAVE"}, ["saved"]),
        ({"q": "x-api-key"}, ["lost"]),
        ({"q": "100%"}, []),
        ({"project": "shop", "model": "small", "sort": "failures"}, ["saved", "lost", "good"]),
        ({"project": "other"}, []),
    ):
        assert [one["id"] for one in service.get("/api/sessions", **query)["items"]] == found, query
    for wrong, field in (
        ({"status": "x"}, "status"),
        ({"sort": "x"}, "sort"),
        ({"cursor": "x"}, "cursor"),
        ({"limit": 0}, "limit"),
    ):
        answer = service.admin.get("/api/sessions", params=wrong)
        assert (answer.status_code, answer.json()["field"]) == (422, field)


def test_incidents(service: Running, past: None) -> None:
    """Narrowed to what a chart's bar stands for."""
    everything = service.get("/api/incidents")["items"]
    assert len(everything) == 3
    (lost,) = service.get("/api/incidents", kind="auth_error")["items"]
    assert [one["id"] for one in service.get("/api/incidents", fingerprint=lost["fingerprint"])["items"]] == [
        lost["id"]
    ]
    assert len(service.get("/api/incidents", troubled=True)["items"]) == 2
    assert service.get("/api/incidents", since=lost["openedAt"] + 1e6)["items"] == []
    assert [one["rung"] for one in service.get("/api/incidents", rung="retry")["items"]] == ["retry"]


def test_analytics(service: Running, past: None) -> None:
    """Every number has what it is a share of beside it."""
    found = service.get("/api/analytics/failures")
    assert (found["totalFailures"], found["totalAttempts"]) == (2, 4)
    assert found["byKind"] == {"auth_error": 1, "overloaded": 1}
    assert found["byErrorType"] == dict.fromkeys(ErrorType, 0) | {"auth_error": 1, "server_error": 1}
    assert found["byModel"] == {"small": 2}
    assert {one["message"] for one in found["topErrorMessages"]} == {"invalid x-api-key", "overloaded"}
    assert [(one["failures"], one["attempts"]) for one in found["days"]] == [(2, 4)]
    assert found["failureRateByDay"] == {one["day"]: 0.5 for one in found["days"]}
    for by in ("kind", "model", "project", "day", "hour", "tool", "prompt"):
        assert service.get("/api/analytics/failures", by=by)["by"] == by
    assert service.admin.get("/api/analytics/failures", params={"by": "mood"}).json()["field"] == "by"
    assert {one["kind"]: one["rate"] for one in service.get("/api/analytics/recovery")} == {
        "auth_error": 0,
        "overloaded": 1,
    }
    assert next((one["rung"], one["saved"]) for one in service.get("/api/analytics/rungs")) == ("retry", 1)
    tiles = {one["id"]: one for one in service.get("/api/analytics/success")}
    automatic = tiles["autoRecovered"]
    assert (automatic["value"], automatic["numerator"], automatic["denominator"], automatic["isMet"]) == (1, 1, 1, True)
    assert (tiles["manualInterventions"]["numerator"], tiles["manualInterventions"]["denominator"]) == (0, 3)
    assert all(tile["definition"] for tile in tiles.values())
    assert len(tiles) == 4
    for path in ("cost", "prompts"):
        assert isinstance(service.get(f"/api/analytics/{path}"), list)


def test_times_as_people_and_programs_write_them(service: Running, past: None) -> None:
    """`since` and `until` take an age, a date, the API's own ISO 8601 times and Unix seconds; another text is named."""
    (attempt,) = service.get("/api/sessions/lost")["attemptsMade"]
    for since, failures in (
        ("1d", 2), ("2w", 2), ("2000-01-01", 2), (attempt["timestamp"], 2), ("0", 2), ("2200-01-01T00:00:00Z", 0),
    ):  # fmt: skip
        assert service.get("/api/analytics/failures", since=since)["totalFailures"] == failures, since
    assert service.get("/api/analytics/failures", until="2000-01-01")["totalFailures"] == 0
    lines = service.admin.get("/api/export", params={"what": "events", "format": "jsonl", "since": "1d"}).text
    assert [line for line in lines.splitlines() if '"opened"' in line]
    assert (
        service.admin.get("/api/export", params={"what": "events", "format": "jsonl", "since": "2200-01-01"}).text == ""
    )
    for wrong in ("yesterday", "7 days", "nan", "-5"):
        answer = service.admin.get("/api/analytics/failures", params={"since": wrong})
        assert (answer.status_code, answer.json()["field"]) == (422, "since"), wrong
    assert "7d" in service.admin.get("/api/analytics/failures", params={"since": "yesterday"}).json()["detail"]


def test_groups(service: Running, past: None) -> None:
    """Resolved, seen again as a regression, in the inbox; snoozed and reopened."""
    (group,) = [one for one in service.get("/api/groups") if one["kind"] == "overloaded"]
    assert sum(group["trend"]) == 1
    path = f"/api/groups/{group['project']}/{group['fingerprint']}"
    assert service.post(f"{path}/resolve")["state"] == "resolved"
    from rung.testing import HttpError

    rung.recover_sync(
        Script(HttpError(529, "overloaded"), "fine"),
        rung.Request(prompt="x", model="small"),
        policy=rung.policy("model", backoff={"base": 0}),
        journal=service.journal,
        breakers=rung.BreakerRegistry(),
        retry_budget=None,
    )
    service.journal.flush()
    assert [one["kind"] for one in service.get("/api/groups", state="regression")] == ["overloaded"]
    assert [one["kind"] for one in service.get("/api/inbox")] == ["group"]
    assert service.post(f"{path}/snooze", {"hours": 1})["state"] == "snoozed"
    assert service.post(f"{path}/reopen")["state"] == "open"
    assert service.post("/api/groups/-/none/reopen", None, 404)["status"] == 404


def test_exports(service: Running, past: None) -> None:
    """The same rows in each format."""
    text = service.admin.get("/api/export", params={"format": "csv"}).text
    assert len(list(csv.DictReader(io.StringIO(text)))) == 4
    lines = service.admin.get("/api/export", params={"format": "jsonl", "what": "incidents"}).text.splitlines()
    assert {json.loads(line)["session"] for line in lines} == {"lost", "saved", "good"}
    parquet = service.admin.get("/api/export", params={"format": "parquet", "what": "events"})
    assert parquet.content[:4] == b"PAR1"
    assert service.admin.get("/api/export", params={"format": "doc"}).json()["field"] == "format"


def test_policies(service: Running) -> None:
    """Set whole, seen by whoever recovers, refused where it is wrong or somebody was faster."""
    policy = service.admin.get("/api/retry-policy")
    assert policy.headers["etag"] == '"0"'
    assert (policy.json()["maxRetries"], policy.json()["waits"]) == (3, [1.0, 2.0, 4.0])
    wanted = {
        "maxRetries": 5,
        "backoffBase": 2,
        "maxBackoff": 9,
        "retryableErrors": ["transient"],
        "settings": {"dollars": 3},
    }
    assert service.admin.put("/api/retry-policy", json=wanted).status_code == 428
    changed = service.admin.put("/api/retry-policy", json=wanted, headers={"if-match": '"0"'})
    assert changed.status_code == 200
    assert changed.json()["waits"] == [2.0, 4.0, 8.0, 9.0, 9.0]
    assert changed.json()["worstDollars"] == pytest.approx(0.88, abs=2)
    assert service.admin.put("/api/retry-policy", json=wanted, headers={"if-match": '"0"'}).status_code == 412
    assert service.context.policies.effective().backoff.cap == 9
    project = service.admin.put(
        "/api/projects/shop/retry-policy",
        json={"toml": "retries = 1\n[backoff]\ncap = 4\n"},
        headers={"if-match": '"0"'},
    )
    assert (project.json()["maxRetries"], project.json()["backoffBase"], project.json()["maxBackoff"]) == (1, 2, 4)
    assert project.json()["toml"] == "retries = 1\n\n[backoff]\ncap = 4\n"
    values = {one["key"]: one["origin"] for one in service.get("/api/projects/shop/retry-policy/effective")["values"]}
    assert (values["backoff.cap"], values["backoff.base"], values["models"], values["learn"]) == (
        "project", "service", "file", "preset",
    )  # fmt: skip
    assert [one["project"] for one in service.get("/api/projects/retry-policies")] == ["shop"]
    assert next(one["id"] for one in service.get("/api/retry-policy/templates")) == "default"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"maxRetries": True}, "maxRetries"),
        ({"maxRetries": "3"}, "maxRetries"),
        ({"maxRetries": -1}, "maxRetries"),
        ({"backoffBase": 1e400}, "backoffBase"),
        ({"retryableErrors": ["auth_error"]}, "retry"),
        ({"retryableErrors": ["nonsense"]}, "retry"),
        ({"unknown": 1}, "unknown"),
        ({"settings": {"unknown": 1}}, "unknown"),
        ({"settings": {"ladder": "stairs"}}, "ladder"),
        ({"toml": "a ="}, "toml"),
        ({"toml": "retries = 1", "settings": {}}, "toml"),
    ],
)
def test_a_policy_that_cannot_be(service: Running, body: dict[str, object], field: str) -> None:
    """Refused whole, naming the field; nothing is changed."""
    content = json.dumps(body)
    headers = {"if-match": '"0"', "content-type": "application/json"}
    answer = service.admin.put("/api/retry-policy", content=content, headers=headers)
    assert answer.status_code == 422, answer.text
    assert field in answer.json()["field"]
    assert service.context.policies.stored().version == 0


def test_backtest(service: Running, past: None) -> None:
    """What a policy would have done, and what nobody can know."""
    found = service.post("/api/backtest", {"policy": {"maxRetries": 0}})
    assert (found["incidents"], len(found["cannotKnow"])) == (2, 4)
    valid = service.post("/api/retry-policy/validate", {"maxRetries": 2})
    assert valid["policy"]["maxRetries"] == 2
    wrong = service.post("/api/retry-policy/validate", {"retryableErrors": ["x"]})
    assert (wrong["valid"], "retry" in wrong["field"]) == (False, True)


def test_operation(service: Running, past: None) -> None:
    """For whoever runs it."""
    lines = service.admin.get("/metrics").text.splitlines()
    assert 'rung_incidents_total{status="recovered"} 1' in lines
    assert "rung_journal_in_trouble 0" in lines
    assert service.get("/api/tasks") == {"items": [], "nextCursor": None}
    service.admin.put("/api/notifications", json={"webhook": "http://192.0.2.9:9/hook"})
    assert service.get("/api/notifications")["webhook"] == "http://192.0.2.9:9/hook"
    assert service.admin.put("/api/notifications", json={"webhook": "file:///etc/passwd"}).status_code == 422


def test_settings_files(service: Running, tmp_path: Path) -> None:
    """The settings files that were met are listed with what they need trust for; deciding is not possible here."""
    from rung.wiring.settings_file import find

    path = tmp_path / "rung.toml"
    path.write_text('journal = "x.db"\n')
    find(tmp_path, quiet=True)
    odd = tmp_path / os.fsdecode(b"\xff\x1b[2J")
    odd.mkdir()
    (odd / "rung.toml").write_text('journal = "x.db"\n')
    find(odd, quiet=True)
    assert {"path": str(path), "decision": "undecided", "needsTrust": ["journal"]} in service.get("/api/settings-files")
    assert service.admin.post("/api/settings-files", json={}).status_code == 404


def test_the_root_cause_of_a_session(service: Running, past: None) -> None:
    """A session says which attempt first went wrong; one without a failure has no cause."""
    lost = service.get("/api/sessions/lost")["rootCause"]
    assert (lost["step"], lost["kind"], lost["chain"], lost["confidence"]) == (1, "auth_error", [], 1.0)
    assert lost["sentence"].startswith("Attempt 1 of the session went wrong first, auth_error: ")
    assert lost["where"] in [one["id"] for one in service.get("/api/incidents")["items"]]
    assert service.get("/api/sessions/saved")["rootCause"]["kind"] == "overloaded"
    assert service.get("/api/sessions/good")["rootCause"] is None
