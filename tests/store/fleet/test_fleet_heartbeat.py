"""Heartbeat of a process, with a real database that really goes away, and with real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import httpx
import pytest

from rung.core.domain.errors import ConfigError
from rung.core.policy.executor_health import ExecutorHealth
from rung.store import open_journal
from rung.store.fleet.executors import Executor, ExecutorRole, drain, executors, find_executor, new_executor
from rung.wiring.fleet_heartbeat import FleetHeartbeat, beside, lease_setting
from tests.store import postgres
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from rung.store.journal.journal import Journal

QUICK = 0.3  # seconds of lease: the thread beats ten times a second
MESSAGE = b"""{"id": "msg_1", "type": "message", "role": "assistant", "model": "small", "stop_reason": "end_turn",
 "content": [{"type": "text", "text": "1 2 3"}], "usage": {"input_tokens": 3, "output_tokens": 3}}"""
RUNG = [sys.executable, "-m", "rung"]


def test_the_row_follows_the_process(journal: Journal) -> None:
    """The row appears at the start, shows what is in hand at each beat, and is gone at the end."""
    hands = iter(range(1_000_000))
    with FleetHeartbeat(
        journal, new_executor(ExecutorRole.WORKER, lease=QUICK), detail=lambda: {"runs": next(hands)}
    ) as heartbeat:
        wait_until(lambda: _runs(journal, heartbeat.executor.id) >= 3)
    assert executors(journal) == []


def _runs(journal: Journal, name: str) -> int:
    found = find_executor(journal, name)
    return int(found.detail["runs"]) if found else -1


def test_an_order_is_told_once(journal: Journal) -> None:
    """An order to drain reaches the process once, and the row says that it is draining."""
    told: list[str] = []
    executor = new_executor(ExecutorRole.WORKER, lease=QUICK)
    with FleetHeartbeat(journal, executor, on_drain=lambda: told.append("drain")) as heartbeat:
        wait_until(lambda: drain(journal, executor.id))
        wait_until(lambda: heartbeat.is_draining)
        seen = heartbeat.executor.heartbeat
        wait_until(lambda: heartbeat.executor.heartbeat > seen)
        assert [each.state.value for each in executors(journal)] == ["draining"]
        assert told == ["drain"]


def test_a_process_that_drains_says_so_at_once(journal: Journal) -> None:
    """A process that drains by itself writes it without waiting for the next beat, and is not told its own words."""
    told: list[str] = []
    executor = new_executor(ExecutorRole.GATEWAY, lease=3600.0)
    with FleetHeartbeat(journal, executor, on_drain=lambda: told.append("drain")) as heartbeat:
        wait_until(lambda: find_executor(journal, executor.id))
        heartbeat.drain()
        wait_until(lambda: [each.state.value for each in executors(journal)] == ["draining"])
    assert told == []


def test_a_faulty_detail_is_no_fault_of_the_process(journal: Journal) -> None:
    """An error in what the process says about itself is reported once and costs only that heartbeat."""
    said: list[str] = []
    tries = 0

    def detail() -> dict[str, int]:
        nonlocal tries
        tries += 1
        if tries < 4:
            raise RuntimeError("no idea")
        return {"runs": tries}

    executor = new_executor(ExecutorRole.WORKER, lease=QUICK)
    with FleetHeartbeat(journal, executor, detail=detail, warn=said.append):
        wait_until(lambda: find_executor(journal, executor.id))
    assert said == ["fleet heartbeat not written, the next one is tried: RuntimeError: no idea"]


def test_the_database_goes_away_and_returns() -> None:
    """While PostgreSQL is away the process lives on, and its heartbeats continue afterwards."""
    said: list[str] = []
    with postgres.server() as url, open_journal(url, on_warning=lambda _: None) as journal:
        executor = new_executor(ExecutorRole.GATEWAY, lease=QUICK)
        with FleetHeartbeat(journal, executor, warn=said.append) as heartbeat:
            wait_until(lambda: find_executor(journal, executor.id))
            with postgres.outage(url):
                wait_until(lambda: said)
            before = heartbeat.executor.heartbeat
            wait_until(lambda: heartbeat.executor.heartbeat > before)
        assert executors(journal) == []
    assert said[0].startswith("fleet heartbeat not written, the next one is tried: StoreUnavailable")


def test_a_database_that_is_away_does_not_delay_the_exit() -> None:
    """A process that ends while PostgreSQL is away ends in bounded time; its row expires instead."""
    with postgres.server() as url, open_journal(url, on_warning=lambda _: None) as journal:
        heartbeat = FleetHeartbeat(journal, new_executor(ExecutorRole.GATEWAY, lease=QUICK)).start()
        wait_until(lambda: find_executor(journal, heartbeat.executor.id))
        with postgres.outage(url):
            heartbeat.stop()
        wait_until(lambda: [each.health for each in executors(journal)] in ([ExecutorHealth.DEAD], []))


def test_only_a_shared_journal_has_a_fleet(tmp_path: Path, postgres_journal: Journal) -> None:
    """A gateway or service has a heartbeat on PostgreSQL, and none on SQLite or without a journal."""
    with open_journal(tmp_path / "journal.db") as single:
        assert beside(single, ExecutorRole.GATEWAY) is None
    assert beside(None, ExecutorRole.GATEWAY) is None
    shared = beside(postgres_journal, ExecutorRole.GATEWAY)
    assert shared is not None
    assert shared.executor.role is ExecutorRole.GATEWAY


@pytest.mark.parametrize("given", ["0", "soon", "-5", "inf", "nan"])
def test_a_wrong_lease_is_named(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """RUNG_FLEET_LEASE must be a number of seconds above zero."""
    monkeypatch.setenv("RUNG_FLEET_LEASE", given)
    with pytest.raises(ConfigError, match=f"RUNG_FLEET_LEASE: '{given}' is invalid; must be seconds, more than 0"):
        lease_setting()


class StartedCommand:
    """A command in a process of its own, over a journal in PostgreSQL."""

    def __init__(self, journal_url: str, place: Path, *words: str) -> None:
        environment = {**os.environ, "RUNG_JOURNAL": journal_url, "RUNG_FLEET_LEASE": "1", "XDG_DATA_HOME": str(place)}
        self.process = subprocess.Popen(
            [*RUNG, *words], env=environment, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def executor(self, journal: Journal, role: str) -> Executor:
        """Wait for its row."""
        return wait_until(lambda: self._listed(journal, role))

    def gateway_url(self) -> str:
        """Wait for the line with its address."""
        assert self.process.stdout is not None
        return next(line for line in self.process.stdout if "http://" in line).split()[-1]

    def _listed(self, journal: Journal, role: str) -> Executor | None:
        assert self.process.poll() is None, self.process.communicate()
        mine = [each for each in executors(journal) if each.pid == self.process.pid and each.role == role]
        return mine[0] if mine else None

    def end(self) -> None:
        """Kill what is left of it."""
        self.process.kill()
        self.process.communicate()


class PatientUpstream:
    """A provider that answers when it is released."""

    def __init__(self) -> None:
        self.release = threading.Event()
        upstream = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                upstream.release.wait()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(MESSAGE)))
                self.end_headers()
                self.wfile.write(MESSAGE)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self) -> PatientUpstream:
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.release.set()
        self.server.shutdown()
        self.server.server_close()


def test_a_drained_gateway_finishes_what_is_in_flight(
    postgres_url: str, postgres_journal: Journal, tmp_path: Path
) -> None:
    """A gateway that is drained answers the request in flight, even when a signal follows, exits with 0 and leaves."""
    answers: list[httpx.Response] = []
    with PatientUpstream() as upstream:
        started = StartedCommand(postgres_url, tmp_path, "gateway", "--anthropic", upstream.url, "--port", "0")
        try:
            url = started.gateway_url()
            name = started.executor(postgres_journal, "gateway").id
            caller = threading.Thread(target=lambda: answers.append(_ask(url)))
            caller.start()
            wait_until(lambda: (row := find_executor(postgres_journal, name)) and row.detail.get("requests") == 1)
            assert drain(postgres_journal, name)
            wait_until(lambda: (row := find_executor(postgres_journal, name)) and row.state == "draining")
            wait_until(lambda: _refuses(url))
            started.process.send_signal(signal.SIGTERM)
            _wait_for_beats(postgres_journal, name, 4)  # long after the signal it is still there
            upstream.release.set()
            caller.join()
            assert started.process.wait(60) == 0
        finally:
            started.end()
    assert [answer.status_code for answer in answers] == [200]
    assert find_executor(postgres_journal, name) is None


def _wait_for_beats(journal: Journal, name: str, number: int) -> None:
    """Wait until an executor has beaten so often; fail when it leaves before."""
    seen: set[float] = set()
    while len(seen) < number:
        row = find_executor(journal, name)
        assert row is not None, "it has left"
        seen.add(row.heartbeat)
        time.sleep(0.02)


def _refuses(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz").status_code == 503
    except httpx.HTTPError:
        return True


def _ask(url: str) -> httpx.Response:
    body = {"model": "small", "max_tokens": 50, "messages": [{"role": "user", "content": "count to 3"}]}
    return httpx.post(f"{url}/v1/messages", json=body, headers={"x-api-key": "k"}, timeout=120)


def test_a_killed_gateway_is_dead_after_its_lease(postgres_url: str, postgres_journal: Journal, tmp_path: Path) -> None:
    """A gateway that is killed with -9 leaves its row, which expires."""
    started = StartedCommand(postgres_url, tmp_path, "gateway", "--port", "0")
    try:
        executor = started.executor(postgres_journal, "gateway")
        started.process.kill()
        wait_until(lambda: [each.id for each in executors(postgres_journal) if each.health == "dead"] == [executor.id])
    finally:
        started.end()


def test_a_service_and_its_gateway_are_two_executors(
    postgres_url: str, postgres_journal: Journal, tmp_path: Path
) -> None:
    """`rung serve` lists itself and its gateway; drained, both leave and the process exits with 0."""
    started = StartedCommand(postgres_url, tmp_path, "serve", "--port", "0", "--token", "a-token-of-a-fleet")
    try:
        both = [started.executor(postgres_journal, role) for role in ("service", "gateway")]
        for each in both:
            assert drain(postgres_journal, each.id)
        assert started.process.wait(120) == 0
    finally:
        started.end()
    assert executors(postgres_journal) == []
