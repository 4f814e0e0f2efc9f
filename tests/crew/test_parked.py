"""A crew of real processes whose agents meet a limit or an overload: it waits, and goes on after `kill -9` of everything."""

from __future__ import annotations

import json
import os
import signal
import time
from datetime import UTC, datetime

import pytest

from rung.adapters.system.pid_file import read_pid
from rung.core.crew.contract import CONDUCTOR, MessageType, TaskState
from rung.core.crew.pool import Pool, PoolState
from rung.engine.process_identity import is_alive
from rung.store.crew.table import CrewTable
from tests.crew.test_conducted import RUNG, Place, place

__all__ = ["place"]  # a fixture
pytestmark = pytest.mark.usefixtures("measured_processes")  # the conductor is a process of its own
TASKS = [f"task-{n:02}" for n in range(1, 7)]
QUICK = {"workers": 2, "probe_interval": 1.0, "probe_seconds": 60.0, "spread": 0.1}
OVERLOADED = 'API Error: 529 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'
# An agent that is refused until the time in the file `until`: the first one to start sets it. It logs each start and what
# came of it.
AGENT = """\
now=$(date +%s)
echo "$((now + {seconds}))" > {folder}/until.$$; ln {folder}/until.$$ {folder}/until 2>/dev/null
if [ "$now" -lt "$(cat {folder}/until)" ]; then echo "$RUNG_TASK refused $now" >> {folder}/starts; {refusal}; fi
echo "$RUNG_TASK served $now" >> {folder}/starts; echo done
"""
LIMIT = 'echo "Claude AI usage limit reached|$(cat {folder}/until)" >&2; exit 1'
TRY_LATER = (
    """printf '{"status": "partial", "parked_until": "%s"}' "$(date -u -d @$(cat {folder}/until) +%FT%TZ)"; exit 75"""
)


def prepare(place: Place, refusal: str, seconds: int, **crew: float) -> None:
    """Write a plan of six tasks whose agents are refused for some seconds after the first start."""
    script = place.folder / "agent.sh"
    text = AGENT.replace("{refusal}", refusal).replace("{seconds}", str(seconds))
    script.write_text(text.replace("{folder}", str(place.folder)))
    worker = [*RUNG, "worker", "run", "--check", "true", "--poll-interval", "0.1", "--", "sh", str(script)]
    place.plan([{"id": name} for name in TASKS], worker=worker, **{**QUICK, **crew})


def end_of_refusals(place: Place) -> int:
    return int((place.folder / "until").read_text())


def time_text(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def refused(place: Place) -> list[str]:
    """Return the tasks whose agents were refused, once for each refusal."""
    lines = (place.folder / "starts").read_text().splitlines()
    return [line.split()[0] for line in lines if line.split()[1] == "refused"]


def pool_of(place: Place, name: str = "default") -> Pool:
    with CrewTable.open(str(place.db)) as table:
        return table.pools().get(name, Pool())


def until_closed(place: Place, state: PoolState) -> None:
    place.until(lambda: place.db.exists() and place.state("task-01") is not None and pool_of(place).state is state)


def nobody_is_charged(place: Place) -> None:
    """Assert that every task is complete, and that no error, restart or lost worker was counted."""
    with CrewTable.open(str(place.db)) as table:
        rows = table.tasks()
        assert table.restarts(1e9) == []
    assert {(row.state, row.error_tries, row.redispatches) for row in rows} == {(TaskState.COMPLETE, 0, 0)}


@pytest.mark.parametrize("refusal", [LIMIT, TRY_LATER], ids=["plan limit", "exit code 75"])
def test_six_tasks_wait_together(place: Place, refusal: str) -> None:
    """At most two workers meet the limit, the others wait for its end; then all six complete, and nothing is counted."""
    prepare(place, refusal, 8)
    place.start()
    code, said = place.end()
    assert code == 0, said + place.log()
    assert "pool default" in said
    nobody_is_charged(place)
    assert len(refused(place)) <= 2, "a worker was started before the end of the limit"
    messages = place.messages(CONDUCTOR, MessageType.SYSTEM)
    assert messages[0].startswith(f"POOL default: parked until {time_text(end_of_refusals(place))}")
    assert messages[-1] == "POOL default: open"


def test_an_overload_is_probed_until_it_ends(place: Place) -> None:
    """Two workers meet the overload, and probes follow; when one is served all six tasks complete, and nothing is counted."""
    prepare(place, f"echo '{OVERLOADED}' >&2; exit 1", 3_600)
    place.start()
    until_closed(place, PoolState.BACKING_OFF)
    closed = json.loads(place.say("crew", "status", "--json").stdout)["pools"]["default"]
    assert (closed["state"], bool(closed["next_probe"])) == ("backing_off", True)
    place.until(lambda: len(refused(place)) >= 3)  # both workers, and a probe
    (place.folder / "until").write_text("0")
    code, said = place.end()
    assert code == 0, said + place.log()
    nobody_is_charged(place)
    messages = place.messages(CONDUCTOR, MessageType.SYSTEM)
    assert messages[0].startswith("POOL default: backing off")
    assert messages[-1] == "POOL default: open"


@pytest.mark.usefixtures("unmeasured_processes")
def test_kill_everything_in_the_middle_of_the_park(place: Place) -> None:
    """Conductor, watchdog and workers get SIGKILL during the park: `rung crew run` waits until the same time and goes on."""
    prepare(place, LIMIT, 20)
    place.start()
    until_closed(place, PoolState.PARKED)
    place.until(lambda: not list((place.runtime / "pids").glob("task-*.pid")))
    end, before = end_of_refusals(place), pool_of(place)
    kill_everything(place)
    assert pool_of(place) == before
    assert before.until == end
    place.start()
    place.until(lambda: (pid := read_pid(place.runtime / "pids" / "conductor.pid")) is not None and is_alive(pid))
    assert pool_of(place).until == end or time.time() >= end
    code, said = place.end()
    assert code == 0, said + place.log()
    nobody_is_charged(place)
    assert len(refused(place)) <= 2, "a worker was started before the end of the limit"


def test_a_person_wakes_the_pool(place: Place) -> None:
    """A pool that is parked for hours is shown; `rung crew wake` opens it, and a second time there is nothing to open."""
    prepare(place, LIMIT, 5 * 3_600)
    place.start()
    until_closed(place, PoolState.PARKED)
    place.until(lambda: not list((place.runtime / "pids").glob("task-*.pid")))
    parked = json.loads(place.say("crew", "status", "--json").stdout)["pools"]["default"]
    assert (parked["state"], bool(parked["next_probe"])) == ("parked", True)
    assert parked["parked_until"] == time_text(end_of_refusals(place))
    assert "pool default: parked until" in place.say("crew", "board", "--once").stdout
    (place.folder / "until").write_text("0")
    assert place.say("crew", "wake", "nobody").returncode == 2
    assert place.say("crew", "wake").stdout == "open: default\n"
    code, said = place.end()
    assert code == 0, said
    nobody_is_charged(place)
    assert place.say("crew", "wake").returncode == 2


def test_an_unknown_end_is_one_question(place: Place) -> None:
    """A quota without a reset ends the unattended crew with one report for all six tasks; the next run goes on."""
    prepare(
        place, "echo 'You exceeded your current quota, please check your plan and billing details' >&2; exit 1", 3_600
    )
    place.start()
    code, said = place.end()
    assert code == 4, said
    assert "0 of 6 tasks complete; pool default needs an operator" in said
    assert [file.name for file in (place.runtime / "escalations").iterdir()] == ["pool-default.md"]
    (place.folder / "until").write_text("0")
    place.start()
    code, said = place.end()
    assert code == 0, said
    nobody_is_charged(place)


def kill_everything(place: Place) -> None:
    """Send SIGKILL to every process of the crew, the front end included."""
    assert place.front is not None
    place.front.kill()
    place.front.communicate()
    while pids := [pid for pid in map(read_pid, place.runtime.glob("pids/*.pid")) if pid is not None and is_alive(pid)]:
        for pid in pids:
            try:
                os.killpg(pid.number, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.05)
