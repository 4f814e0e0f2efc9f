"""Alerts of real processes: two services, a gateway without a service, and a crew without a service."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from bench.gateway.subjects import free_port

from rung.core.policy.serializer import to_toml
from rung.store import open_journal
from rung.store.alerts.states import history
from rung.store.fleet.database_clock import time_of
from rung.testing import HttpError
from tests.crew.running import WORKER, RunningCrew
from tests.store.recorded import Recorded
from tests.trusting import write_trusted
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.adapters.alerts.receiver import Receiver

RULE: dict[str, Any] = {
    "when": "failure_rate", "threshold": 0.5, "minimum": 2, "window": 600, "channels": ["hook", "page"],
}  # fmt: skip


def write_settings(folder: Path, **rules: dict[str, Any]) -> None:
    """Write a trusted rung.toml with these rules and two channels."""
    tables: dict[str, dict[str, Any]] = {
        "[alerts]": {"interval": 0.2, "allow_hosts": ["127.0.0.1"]},
        "[alerts.channels.hook]": {"type": "webhook", "url_env": "HOOK_URL", "secret_env": "HOOK_SECRET", "timeout": 1},
        "[alerts.channels.page]": {"type": "pagerduty", "url_env": "PAGERDUTY_URL", "key_env": "PAGERDUTY_KEY"},
        **{f"[alerts.rules.{name}]": rule for name, rule in rules.items()},
    }
    write_trusted(folder / "rung.toml", "".join(f"{name}\n{to_toml(table)}\n" for name, table in tables.items()))


def fail(url: str) -> None:
    """Record failures a moment ago."""
    with open_journal(url) as journal:
        recorded = Recorded(journal)
        recorded.clock.time = time_of(journal) - 60
        recorded.recover(HttpError(529, "overloaded"), HttpError(529, "overloaded"), "fine")


@contextmanager
def running(folder: Path, url: str, receiver: Receiver, *words: str) -> Iterator[subprocess.Popen[str]]:
    """Run `rung WORDS` in a folder until the end of the block."""
    environment = {**os.environ, **receiver.environment(), "RUNG_JOURNAL": url, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "rung", *words],
        env={**environment, "RUNG_ADMIN_TOKEN": "a-token-of-the-tests"},
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    for line in process.stdout:
        if re.search(r"http://127\.0\.0\.1:\d+", line):
            break
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def test_two_services_notify_once(tmp_path: Path, url: str, receiver: Receiver) -> None:
    """Two services on one journal send each notification once, and one that is killed leaves its work to the other."""
    write_settings(tmp_path, failing=RULE)
    fail(url)
    serve = ("serve", "--port", "0", "--no-gateway")
    with running(tmp_path, url, receiver, *serve) as first, running(tmp_path, url, receiver, *serve):
        wait_until(lambda: len(receiver.accepted) >= 2)
        first.kill()
        first.wait(60)
        with open_journal(url) as journal:
            wait_until(lambda: {one["state"] for one in history(journal)[0].deliveries.values()} == {"sent"})
    assert sorted(one.service for one in receiver.accepted) == ["pagerduty", "webhook"]
    assert receiver.refused == []


def test_a_service_that_is_killed_while_it_sends(tmp_path: Path, receiver: Receiver) -> None:
    """The next service sends what the killed one had decided, with the same id, and the alert fires once."""
    at = str(tmp_path / "journal.db")
    write_settings(tmp_path, failing={**RULE, "channels": ["hook"]})
    fail(at)
    receiver.hangs = 1
    serve = ("serve", "--port", "0", "--no-gateway")
    with running(tmp_path, at, receiver, *serve) as first:
        wait_until(lambda: receiver.unanswered)
        first.kill()
    assert receiver.accepted == []
    with running(tmp_path, at, receiver, *serve):
        wait_until(lambda: receiver.accepted)
    (sent,) = receiver.accepted
    assert [sent.headers["webhook-id"]] == receiver.unanswered
    with open_journal(at) as journal:
        (entry,) = history(journal)
    assert entry.notification.id == sent.headers["webhook-id"]
    assert entry.deliveries["hook"]["state"] == "sent"


def test_a_gateway_without_a_service(tmp_path: Path, receiver: Receiver) -> None:
    """A gateway alone evaluates the rules of its file and notifies."""
    at = str(tmp_path / "journal.db")
    write_settings(tmp_path, failing=RULE)
    fail(at)
    with running(tmp_path, at, receiver, "gateway", "--port", "0"):
        wait_until(lambda: {one.service for one in receiver.accepted} == {"webhook", "pagerduty"})
    (body,) = receiver.events("webhook")
    assert (body["rule"], body["event"], round(body["value"], 3)) == ("failing", "fired", 0.667)


@pytest.mark.parametrize("before", [{}, {"calm": {**RULE, "threshold": 0.99}}], ids=["no rules", "another rule"])
def test_the_rules_of_a_running_gateway_follow_its_file(
    tmp_path: Path, receiver: Receiver, before: dict[str, Any]
) -> None:
    """A rule that is added while the gateway runs is evaluated and notifies, without a restart."""
    at = str(tmp_path / "journal.db")
    write_settings(tmp_path, **before)
    fail(at)
    with running(tmp_path, at, receiver, "gateway", "--port", "0"):
        write_settings(tmp_path, failing=RULE)
        wait_until(lambda: receiver.events("webhook"))
    assert {body["rule"] for body in receiver.events("webhook")} == {"failing"}


@pytest.mark.parametrize("attended", [True, False])
def test_a_crew_without_a_service(tmp_path: Path, receiver: Receiver, *, attended: bool) -> None:
    """A crew's conductor notifies once when a task waits for a person, whether it asks or was escalated."""
    crew = RunningCrew(tmp_path)
    crew.environment |= receiver.environment()
    write_settings(tmp_path, waiting={"when": "unanswered", "threshold": 1, "window": 0.1, "channels": ["hook"]})
    failing = [*WORKER, "sh", "-c", "cat >/dev/null; echo HTTP 401 invalid x-api-key >&2; exit 1"]
    plan = crew.plan([{"id": "t1", "command": failing}], attended=attended)
    crew.start("crew", "run", str(plan), "--db", crew.url)
    try:
        wait_until(lambda: receiver.events("webhook"))
    finally:
        crew.close()
    (body,) = [one for one in receiver.events("webhook") if one["event"] == "fired"]
    assert (body["rule"], body["value"]) == ("waiting", 1)
    assert body["scope"].startswith("crew:") is not attended  # a question is in the journal


@pytest.mark.parametrize(
    "words", [("serve", "--port", "0", "--no-gateway"), ("gateway", "--port", "0"), ("crew", "run", "plan.toml")]
)
def test_a_wrong_channel_is_an_error_at_the_start(tmp_path: Path, words: tuple[str, ...]) -> None:
    """A way in whose alerts cannot be delivered does not start, and names the key."""
    write_settings(tmp_path, failing=RULE)
    RunningCrew(tmp_path).plan([{"id": "t1"}])
    done = subprocess.run(
        [sys.executable, "-m", "rung", *words],
        env={**os.environ, "RUNG_JOURNAL": str(tmp_path / "journal.db")},
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert "alerts.channels.hook.url_env: 'HOOK_URL' is invalid" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_untrusted_file_defines_no_alerts(tmp_path: Path, receiver: Receiver) -> None:
    """A rung.toml that came with a clone runs no command and notifies nobody."""
    touched = tmp_path / "touched"
    (tmp_path / "rung.toml").write_text(
        f'[alerts]\ninterval = 0.1\n[alerts.channels.c]\ntype = "command"\nrun = ["touch", "{touched}"]\n'
        '[alerts.rules.r]\nwhen = "failure_rate"\nthreshold = 0.5\nminimum = 1\nchannels = ["c"]\n'
    )
    at = str(tmp_path / "journal.db")
    fail(at)
    with running(tmp_path, at, receiver, "serve", "--port", "0", "--no-gateway"):
        pass
    assert not touched.exists()
    with open_journal(at) as journal:
        assert history(journal) == []


@pytest.mark.parametrize(
    "words", [("serve", "--port", "0", "--no-gateway"), ("gateway", "--port", "0"), ("crew", "run", "plan.toml")]
)
def test_a_changed_file_is_a_warning_that_alerts_are_off(tmp_path: Path, words: tuple[str, ...]) -> None:
    """A way in whose rung.toml changed since it was trusted starts, and names the alerts and the command that trusts it."""
    write_settings(tmp_path, failing=RULE)
    path = tmp_path / "rung.toml"
    path.write_text(path.read_text() + "\n")
    crew = RunningCrew(tmp_path)
    crew.plan([{"id": "t1"}])
    process = subprocess.Popen(
        [sys.executable, "-m", "rung", *words],
        env={**os.environ, **crew.environment, "RUNG_JOURNAL": str(tmp_path / "journal.db"), "PYTHONUNBUFFERED": "1"},
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if "WARNING: alerts are off" in line:
            break
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert f"run `rung trust {path}`" in lines[-1], lines


def test_the_service_says_that_its_alerts_are_off(tmp_path: Path, receiver: Receiver) -> None:
    """GET /api/alerts names the file that is not trusted, and the command that trusts it."""
    path = tmp_path / "rung.toml"
    path.write_text("[alerts.rules.r]\nwhen = 'cost'\nthreshold = 5\n")
    at = str(tmp_path / "journal.db")
    port = free_port()
    with running(tmp_path, at, receiver, "serve", "--port", str(port), "--no-gateway"):
        answer = httpx.get(
            f"http://127.0.0.1:{port}/api/alerts", headers={"Authorization": "Bearer a-token-of-the-tests"}
        )
    assert answer.json() == {
        "rules": [],
        "channels": [],
        "untrusted": {"path": str(path), "decision": "undecided", "command": f"rung trust {path}"},
    }
