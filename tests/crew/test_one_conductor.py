"""One conductor for a crew of real processes, wherever it is started, and whatever is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import tomllib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rung.adapters.system.file_locks import lock_holders
from rung.cli.exit_codes import ALREADY_CONDUCTED, LEASE_EXPIRED
from rung.core.crew.contract import CONDUCTOR, WATCHDOG, MessageType, TaskState
from rung.crew.plan_sync import insert_plan
from rung.engine.process_identity import is_stopped
from rung.store.crew.table import CrewTable
from tests.crew.running import RUNG, SLOW, until_file
from tests.waiting import is_running, wait_until

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.crew.running import RunningCrew

ROUNDS = int(os.environ.get("RUNG_LEASE_ROUNDS", "1"))
CRASHES = int(os.environ.get("RUNG_LEASE_ROUNDS", "2"))
pytestmark = pytest.mark.usefixtures("unmeasured_processes")


def other_folder(crew: RunningCrew, name: str = "elsewhere") -> Path:
    folder = crew.folder / name
    folder.mkdir(exist_ok=True)
    return folder


def read_all(front: subprocess.Popen[str]) -> tuple[int, str]:
    said, _ = front.communicate(timeout=240)
    return front.returncode, said


def stop_without_lock(crew: RunningCrew, *numbers: int) -> None:
    """Stop processes while none of them holds the lock of an SQLite table, which would stop everybody."""
    for number in numbers:
        while True:
            crew.signal([number], signal.SIGSTOP)
            wait_until(lambda: is_stopped(number))  # noqa: B023  # it is over before the next round
            if "://" in crew.url or number not in lock_holders(Path(crew.url)):
                break
            crew.signal([number], signal.SIGCONT)


def three_have_ended(fronts: Sequence[subprocess.Popen[str]]) -> bool:
    return sum(front.poll() is not None for front in fronts) == 3


def is_corrected(crew: RunningCrew, name: str, state: str, own: str) -> bool:
    """Set a reserved row, and return whether it was put right and logged; a heartbeat may replace the state unseen."""
    with CrewTable.open(crew.url) as table:
        table.heartbeat_self(name, TaskState(state))
    crew.until_state(name, own)
    return is_logged(crew, f"somebody set {name} to {state}")


def is_logged(crew: RunningCrew, text: str) -> bool:
    return text in crew.log()


def test_a_second_run_from_another_folder_is_refused(crew: RunningCrew) -> None:
    """The second `crew run` exits with 5, names the holder in one line, and touches neither plan nor workers."""
    go = crew.folder / "go"
    crew.plan([{"id": "a", "command": until_file(go)}, {"id": "b", "command": until_file(go)}], workers=2)
    first = crew.run()
    for name in ("a", "b"):
        crew.until_state(name, "working")
    workers = crew.processes("worker")
    with CrewTable.open(crew.url) as table:
        lease, before = table.conductor_lease(), len(table.messages())
    for words in (
        ["crew", "run", str(crew.folder / "plan.toml"), "--db", crew.url],
        ["crew", "conduct", "--db", crew.url],
    ):
        code, said = read_all(crew.start(*words, folder=other_folder(crew)))
        assert code == ALREADY_CONDUCTED, said
        assert len(said.splitlines()) == 1
        assert f"already conducted by process {lease.pid} on {lease.host}, since {lease.since} UTC" in said
    assert set(crew.processes("worker")) >= set(workers)
    assert len(crew.conductors()) == len(crew.watchdogs()) == 1
    with CrewTable.open(crew.url) as table:
        assert len(table.messages()) == before
    go.touch()
    code, said = read_all(first)
    assert code == 0, said
    assert crew.task("a").generation == crew.task("b").generation == 1


@pytest.mark.parametrize("command", ["run", "conduct"])
def test_four_at_once_are_one(crew: RunningCrew, command: str) -> None:
    """Of four that start at the same instant, each in its own folder, one conducts and three are refused in one line."""
    tasks: list[dict[str, Any]] = []
    plan = crew.plan([{"id": "first"}])
    assert read_all(crew.run())[0] == 0
    for number in range(ROUNDS):
        go = crew.folder / f"go-{number}"
        tasks.append({"id": f"r{number}", "command": until_file(go)})
        crew.plan(tasks)
        words = ["crew", "run", str(plan)]
        if command == "conduct":
            words = ["crew", "conduct"]
            with CrewTable.open(crew.url) as table:
                insert_plan(table, tomllib.loads(plan.read_text()), crew.folder)
        fronts = [crew.start(*words, "--db", crew.url, folder=other_folder(crew, f"f{number}-{n}")) for n in range(4)]
        wait_until(partial(three_have_ended, fronts))
        crew.until_state(f"r{number}", "working")
        assert len(crew.conductors()) == 1
        crew.until(lambda: len(crew.watchdogs()) == 1)
        go.touch()
        ended = [read_all(front) for front in fronts]
        assert sorted(code for code, _ in ended) == [0, *[ALREADY_CONDUCTED] * 3], ended
        refusals = [said for code, said in ended if code]
        assert all(len(said.splitlines()) == 1 and "already conducted by process" in said for said in refusals), ended
        wait_until(lambda: not crew.conductors() and not crew.watchdogs())
        assert crew.task(f"r{number}").generation == 1
    assert "Traceback" not in crew.log()


def test_a_stopped_conductor_wakes_up_to_nothing(crew: RunningCrew) -> None:
    """A conductor that was stopped past its lease finds a standby in its place: it writes nothing and ends alone."""
    go = crew.folder / "go"
    crew.plan([{"id": "a", "command": until_file(go)}, {"id": "b"}], workers=1, conductor_stale=3.0)
    first = crew.run()
    crew.until_state("a", "working")
    workers = crew.processes("worker")
    (conductor,) = crew.conductors()
    (watchdog,) = crew.watchdogs()
    second = crew.run("--standby", folder=other_folder(crew))
    stop_without_lock(crew, watchdog, conductor)
    with CrewTable.open(crew.url) as table:
        term = table.conductor_lease().term
        crew.until(lambda: table.conductor_lease().term >= term + 2)
        crew.until(lambda: table.conductor_lease().holder == (table.task(CONDUCTOR) or table.tasks()[0]).session_id)
        crew.signal([conductor], signal.SIGCONT)
        wait_until(lambda: not is_running(conductor))
        assert table.conductor_lease().is_live
        assert table.conductor_lease().pid != conductor
    assert set(crew.processes("worker")) >= set(workers)
    assert crew.task("a").generation == 1
    assert "another conductor has the lease" in crew.log()
    go.touch()
    for front in (first, second):
        code, said = read_all(front)
        assert code == 0, said
        assert "Traceback" not in said
    assert "Traceback" not in crew.log()


def test_the_workers_of_a_hung_conductor_are_adopted(crew: RunningCrew) -> None:
    """A conductor that hangs is killed by its watchdog: its successor keeps the workers, which are not asked to exit."""
    go = crew.folder / "go"
    crew.plan([{"id": "a", "command": until_file(go)}], workers=1, conductor_stale=3.0)
    front = crew.run()
    crew.until_state("a", "working")
    workers = crew.processes("worker")
    (conductor,) = crew.conductors()
    (watchdog,) = crew.watchdogs()
    stop_without_lock(crew, watchdog, conductor)
    crew.signal([watchdog], signal.SIGCONT)
    crew.until(lambda: crew.conductors() not in ([], [conductor]))
    go.touch()
    code, said = read_all(front)
    assert code == 0, said
    assert set(workers).isdisjoint(crew.processes("worker"))
    assert crew.task("a").generation == 1
    assert not [text for text in crew.messages("a") if "EXITED" in text]


def test_a_conductor_that_lost_its_lease_exits_with_its_code(crew: RunningCrew) -> None:
    """A conductor whose lease another process has taken exits with 6 within a poll, and its workers live."""
    crew.plan([{"id": "a", "command": SLOW}], workers=1)
    assert read_all(crew.run("--detach"))[0] == 0
    crew.until_state("a", "working")
    workers = crew.processes("worker")
    (conductor,) = crew.conductors()
    with CrewTable.open(crew.url) as table:
        table.acquire_lease(600, succeeds=table.conductor_lease().holder)
        wait_until(lambda: conductor not in crew.conductors())
        assert table.require_task("a").state is TaskState.WORKING
        messages = table.messages(CONDUCTOR, types=(MessageType.HANDOFF,))
    assert not messages
    assert set(crew.processes("worker")) >= set(workers)
    assert LEASE_EXPIRED == 6


def test_a_standby_takes_over_from_a_dead_crew(crew: RunningCrew) -> None:
    """A standby takes over at once when conductor and watchdog die on its machine, and the live worker goes on."""
    go = crew.folder / "go"
    crew.plan([{"id": "a", "command": until_file(go)}], workers=1)
    crew.run()
    crew.until_state("a", "working")
    second = crew.run("--standby", folder=other_folder(crew))
    assert second.stdout is not None
    assert "standing by" in second.stdout.readline()
    crew.signal([*crew.watchdogs(), *crew.conductors()], signal.SIGKILL)
    crew.until(crew.conductors)
    go.touch()
    code, said = read_all(second)
    assert code == 0, said
    assert crew.task("a").generation == 1


def test_a_standby_ends_with_the_crew(crew: RunningCrew) -> None:
    """A standby whose crew completes reports that and exits with 0; it does not run the crew again."""
    go = crew.folder / "go"
    crew.plan([{"id": "a", "command": until_file(go)}], workers=1)
    first = crew.run()
    crew.until_state("a", "working")
    second = crew.run("--standby", folder=other_folder(crew))
    go.touch()
    for front in (first, second):
        code, said = read_all(front)
        assert code == 0, said
        assert "1 of 1 tasks complete" in said


def test_run_after_a_crash_of_both_reports_what_is_true(crew: RunningCrew) -> None:
    """After kill -9 of conductor and watchdog, the next `crew run` waits for its own conductor, every time."""
    go = crew.folder / "go"
    crew.plan([{"id": "a", "command": until_file(go)}, {"id": "b"}], workers=2)
    for _ in range(CRASHES):
        front = crew.run()
        crew.until(lambda: crew.watchdogs() and crew.task(WATCHDOG).state is TaskState.CONFIRMED)
        crew.until_state("a", "working")
        crew.signal([*crew.watchdogs(), *crew.conductors()], signal.SIGKILL)
        code, said = read_all(front)
        assert code == 1, said
        assert "the crew has not ended: the conductor and its watchdog are gone" in said
    go.touch()
    code, said = read_all(crew.run())
    assert code == 0, said
    assert "2 of 2 tasks complete" in said


def test_a_watchdog_killed_before_it_confirmed_does_not_stop_the_crew(crew: RunningCrew) -> None:
    """With each watchdog killed as soon as it appears, the conductor still dispatches every task and completes."""
    go = crew.folder / "go"
    crew.plan([{"id": "a", "command": until_file(go)}, {"id": "b"}], workers=1)
    front = crew.run()
    crew.until_state("a", "working")
    for _ in range(2):
        wait_until(crew.watchdogs)
        crew.signal(crew.watchdogs(), signal.SIGKILL)
    go.touch()
    crew.until_state("b", "complete")
    code, said = read_all(front)
    assert code == 0, said


def test_a_reserved_row_that_somebody_set_is_corrected(crew: RunningCrew) -> None:
    """A row of the conductor or the watchdog that somebody with the key set is put right and logged; the crew goes on."""
    go = crew.folder / "go"
    crew.plan([{"id": "a", "command": until_file(go)}, {"id": "b"}], workers=1)
    front = crew.run()
    crew.until_state("a", "working")
    for name, own, states in (
        (CONDUCTOR, "watching", ("complete", "exited", "error", "exit_requested")),
        (WATCHDOG, "confirmed", ("complete", "exited", "error")),
    ):
        for state in states:
            crew.until(partial(is_corrected, crew, name, state, own))
    go.touch()
    code, said = read_all(front)
    assert code == 0, said
    assert "Traceback" not in crew.log()


def test_a_refused_plan_leaves_no_file(tmp_path: Path) -> None:
    """A plan that is refused, for whatever reason, leaves no table beside it."""
    plans = {
        "reserved": '[[task]]\nid = "task-00"\ninstruction = "x"',
        "fallback": '[[task]]\nid = "fallback-1"\ninstruction = "x"',
        "cycle": '[[task]]\nid = "a"\ninstruction = "x"\ndepends_on = ["a"]',
        "program": '[crew]\nworker = ["no-such-program"]\n[[task]]\nid = "a"\ninstruction = "x"',
        "nothing": "",
        "pool": '[[task]]\nid = "a"\ninstruction = "x"\npool = "a b"',
        "long": f'[[task]]\nid = "{"a" * 101}"\ninstruction = "x"',
    }
    for name, text in plans.items():
        file = tmp_path / f"{name}.toml"
        file.write_text(text)
        done = subprocess.run([*RUNG, "crew", "run", str(file)], capture_output=True, text=True, check=False)
        assert done.returncode == 2, (name, done.stderr)
        assert "Traceback" not in done.stderr
        assert [one.name for one in tmp_path.glob(f"{name}.*")] == [f"{name}.toml"], name
