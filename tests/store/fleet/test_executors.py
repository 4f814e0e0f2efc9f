"""Heartbeat rows of executors, in both stores."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import rung
from rung.core.domain.errors import ConfigError
from rung.core.policy.executor_health import ExecutorHealth
from rung.store import messages
from rung.store.fleet.executors import (
    FORGET_SECONDS,
    ExecutorRole,
    ExecutorState,
    announce,
    beat,
    dead,
    drain,
    executors,
    find_executor,
    forget,
    leave,
    new_executor,
)
from rung.store.replay_orders import present_upstreams

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.store.journal.journal import Journal

LEASE = 30.0


def test_a_process_is_listed_while_it_beats(journal: Journal) -> None:
    """An announced executor is listed with its process, and its heartbeat and detail are those of its last beat."""
    made = new_executor(ExecutorRole.WORKER, engine="dbos", lease=LEASE)
    started = announce(journal, made, 1000.0)
    beat(journal, replace(started, detail={"runs": 2, "queues": ["rung"]}), 1010.0)
    (found,) = executors(journal, 1015.0)
    assert (found.id, found.role, found.engine) == (made.id, "worker", "dbos")
    assert (found.host, found.pid, found.version) == (socket.gethostname(), os.getpid(), rung.__version__)
    assert (found.started_at, found.heartbeat, found.lease) == (1000.0, 1010.0, LEASE)
    assert found.detail == {"runs": 2, "queues": ["rung"]}
    assert (found.state, found.health) == (ExecutorState.LIVE, ExecutorHealth.LIVE)


def test_an_executor_is_dead_after_its_own_lease(journal: Journal) -> None:
    """Each executor is judged by its own lease, and one that beats again is no longer dead."""
    short = announce(journal, new_executor(ExecutorRole.WORKER, lease=10.0), 1000.0)
    announce(journal, new_executor(ExecutorRole.GATEWAY, lease=60.0), 1000.0)
    assert dead(journal, 1010.0) == []
    assert [each.id for each in dead(journal, 1010.1)] == [short.id]
    beat(journal, short, 1011.0)
    assert dead(journal, 1012.0) == []


def test_an_outage_of_the_database_kills_nobody(journal: Journal) -> None:
    """After an outage longer than the lease, executors have a whole lease to beat again."""
    made = announce(journal, new_executor(ExecutorRole.WORKER, lease=LEASE), 1000.0)
    assert dead(journal, 1100.0, observed_since=1090.0) == []
    assert [each.id for each in dead(journal, 1121.0, observed_since=1090.0)] == [made.id]


def test_an_order_to_drain_arrives_with_the_next_beat(journal: Journal) -> None:
    """A drained executor learns it when it beats, stays draining, and takes its order with it when it leaves."""
    made = announce(journal, new_executor(ExecutorRole.WORKER), 1000.0)
    other = announce(journal, new_executor(ExecutorRole.WORKER), 1000.0)
    assert beat(journal, made, 1001.0).state is ExecutorState.LIVE
    assert drain(journal, made.id, 1002.0)
    assert {each.id: each.state.value for each in executors(journal, 1002.0)} == {made.id: "draining", other.id: "live"}
    assert beat(journal, made, 1003.0).state is ExecutorState.DRAINING
    leave(journal, made.id)
    assert [each.id for each in executors(journal, 1004.0)] == [other.id]
    assert beat(journal, made, 1005.0).state is ExecutorState.LIVE


def test_nobody_is_drained_by_a_wrong_id(journal: Journal) -> None:
    """An order for an executor that is not listed is refused and leaves no row."""
    assert not drain(journal, "nobody", 1000.0)
    assert messages.latest(journal, "executor-drain/nobody") is None


def test_a_dead_executor_is_forgotten_once(journal: Journal) -> None:
    """Exactly one of two watchdogs forgets a dead executor, and one that has beaten since is kept."""
    made = announce(journal, new_executor(ExecutorRole.WORKER, lease=LEASE), 1000.0)
    (seen,) = dead(journal, 1031.0)
    beat(journal, made, 1032.0)
    assert not forget(journal, seen)
    (seen,) = dead(journal, 1063.0)
    assert forget(journal, seen)
    assert not forget(journal, seen)
    assert find_executor(journal, made.id) is None


def test_long_dead_gateways_are_forgotten_and_workers_are_kept(journal: Journal) -> None:
    """A new executor removes gateways dead for a day; a worker stays until a watchdog has handed its runs over."""
    announce(journal, new_executor(ExecutorRole.GATEWAY), 1000.0)
    worker = announce(journal, new_executor(ExecutorRole.WORKER), 1000.0)
    late = 1001.0 + FORGET_SECONDS
    service = announce(journal, new_executor(ExecutorRole.SERVICE), late)
    assert [each.id for each in executors(journal, late)] == [service.id, worker.id]


def test_rows_of_other_versions_are_read(journal: Journal) -> None:
    """Fields that this version does not know are ignored, and a row that it cannot read is left out."""
    body = {"role": "worker", "host": "h", "pid": 1, "version": "9.0", "zone": "b", "detail": {"runs": 1, "gpu": 2}}
    messages.send(journal, "executor/newer", body, 1000.0)
    messages.send(journal, "executor/unknown", {**body, "role": "oracle"}, 1000.0)
    messages.send(journal, "executor/broken", [], 1000.0)
    (found,) = executors(journal, 1000.0)
    assert (found.id, found.version, found.detail["runs"]) == ("newer", "9.0", 1)


def test_presence_rows_are_separate(journal: Journal) -> None:
    """An executor is no replayer, and its rows are not in the way of the gateways' own presence."""
    announce(journal, new_executor(ExecutorRole.GATEWAY), 1000.0)
    assert present_upstreams(journal, 1000.0) == {}


def test_misuse_is_named(journal: Journal) -> None:
    """A wrong engine, role, lease or id is rejected before anything is written."""
    with pytest.raises(ConfigError, match="engine: 'cron' is invalid; must be embedded, dbos, temporal"):
        new_executor(ExecutorRole.WORKER, engine="cron")
    with pytest.raises(ConfigError, match="lease: 0 is invalid"):
        new_executor(ExecutorRole.WORKER, lease=0)
    with pytest.raises(ConfigError, match="id: 'a/b' is invalid"):
        new_executor(ExecutorRole.WORKER, executor_id="a/b")
    assert executors(journal, 0.0) == []


_SKEWED = """
import sys, time
from rung.store import open_journal
from rung.store.fleet.executors import ExecutorRole, announce, new_executor
real = time.time
time.time = lambda: real() + 86400
with open_journal(sys.argv[1]) as journal:
    print(announce(journal, new_executor(ExecutorRole.WORKER, lease=3600)).id)
"""


def test_a_host_with_a_wrong_clock_is_not_dead(postgres_url: str, postgres_journal: Journal) -> None:
    """On PostgreSQL the heartbeat of a host whose clock is a day ahead is a time of the database."""
    done = subprocess.run([sys.executable, "-c", _SKEWED, postgres_url], capture_output=True, text=True, check=True)
    (found,) = executors(postgres_journal)
    assert found.id == done.stdout.strip()
    assert found.health is ExecutorHealth.LIVE
    assert found.heartbeat <= time.time() + 3600


_BEATING = """
import sys, time
from rung.store import open_journal
from rung.store.fleet.executors import ExecutorRole, announce, beat, new_executor
with open_journal(sys.argv[1]) as journal:
    mine = announce(journal, new_executor(ExecutorRole.WORKER, lease=0.5))
    print(mine.id, flush=True)
    while True:
        beat(journal, mine)
        time.sleep(0.1)
"""


def test_a_stopped_process_looks_dead_and_returns(url: str, make_journal: Callable[[], Journal]) -> None:
    """A process that is really stopped becomes dead by its row, and live again when it continues."""
    journal = make_journal()
    with subprocess.Popen([sys.executable, "-c", _BEATING, url], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            name = process.stdout.readline().strip()
            os.kill(process.pid, signal.SIGSTOP)
            while not dead(journal):
                time.sleep(0.05)
            assert [each.id for each in dead(journal)] == [name]
            os.kill(process.pid, signal.SIGCONT)
            while dead(journal):
                time.sleep(0.05)
        finally:
            process.kill()
    found = find_executor(journal, name)
    assert found is not None
    assert found.pid == process.pid
