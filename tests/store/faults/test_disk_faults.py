"""Full or broken disks: work continues, the user is warned once, and finally every event is stored once."""

from __future__ import annotations

import os
from random import Random
from typing import TYPE_CHECKING

import pytest

from rung.core.domain import events as ev
from rung.store.backends.sqlite import SqliteBackend
from rung.store.journal.journal import Journal
from tests.store.faults.disk import Disk, broken, full
from tests.store.faults.stories import BEGAN, Part, Teller, held
from tests.store.faults.trials import LONG, DiskSwitch, check, trial

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SEEDS = 300 if os.environ.get("RUNG_STORM") else 12


@pytest.fixture
def disk() -> Iterator[Disk]:
    disk = Disk()
    yield disk
    disk.unregister()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


@pytest.mark.parametrize("act", ["write", "sync"])
@pytest.mark.parametrize("error", ["EIO", "ENOSPC"])
def test_work_goes_on(disk: Disk, path: Path, act: str, error: str) -> None:
    """No caller waits for a failing disk, and afterwards every event is in the file once."""
    seen, teller = trial(SqliteBackend(path, vfs=disk.name), DiskSwitch(disk), Random(1), act, error)
    check(seen)
    assert held(path) == teller.told


@pytest.mark.parametrize("forgetful", [False, True], ids=["kept", "forgotten"])
@pytest.mark.parametrize("times", range(1, 7))
def test_unknown_commit(disk: Disk, path: Path, tmp_path: Path, times: int, forgetful: bool) -> None:
    """A commit whose sync failed has an unknown outcome: nothing is lost or duplicated, even after a power loss.

    After a single failure it did not happen; while the failure lasts, the data is readable, and on Linux may never
    reach the disk.
    """
    disk.forgetful = forgetful
    teller = Teller(Random(times))
    journal = Journal(SqliteBackend(path, vfs=disk.name), on_warning=lambda _: None)
    acknowledged: dict[tuple[str, int], ev.Event] = {}
    for round_ in range(12):
        if round_ in {3, 8}:
            disk.fault = _failing(times)
        part = teller.part()
        if journal.append(*part).result(LONG) is not None:
            acknowledged |= {place: teller.told[place] for place in part.places}
    DiskSwitch(disk).off()
    assert journal.flush(LONG)
    disk.off = True
    disk.after_a_cut(Random(times), tmp_path / "later")
    journal.close()
    found = held(tmp_path / "later" / "journal.db")
    assert found == teller.told
    assert acknowledged


def _failing(times: int) -> Callable[[str, Path], object]:
    left = [times]

    def fault(act: str, path: Path) -> None:
        if act == "sync" and left[0]:
            left[0] -= 1
            raise broken("fsync")

    return fault


@pytest.mark.parametrize("seed", range(SEEDS))
def test_any_fault_at_any_time(disk: Disk, tmp_path: Path, seed: int) -> None:
    """After random faults and a power loss, every flushed event is stored once."""
    random = Random(seed)
    disk.forgetful = random.random() < 0.5
    chance, broken_now = random.choice((0.01, 0.05, 0.3)), [0]

    def fault(act: str, path: Path) -> None:
        if not broken_now[0] and random.random() < chance:
            broken_now[0] = random.choice((1, 1, 2, 3, 5, 20))
        if broken_now[0]:
            broken_now[0] -= 1
            raise random.choice((broken(act), full()))

    path = tmp_path / "journal.db"
    teller = Teller(random)
    journal = Journal(SqliteBackend(path, vfs=disk.name), on_warning=lambda _: None)
    for _ in range(4):
        disk.fault = fault
        tickets = [journal.append(*teller.part()) for _ in range(random.randrange(1, 20))]
        for ticket in tickets:
            ticket.result(LONG)
        disk.fault = lambda act, path: None
        assert journal.flush(LONG), f"seed {seed}"
    disk.off = True
    journal.close()
    disk.after_a_cut(random, tmp_path / "later")
    assert held(tmp_path / "later" / "journal.db") == teller.told, f"seed {seed}"


def whole(number: int) -> Part:
    """Run one complete recovery."""
    name, at = f"whole-{number}", BEGAN + number
    return Part(name, 0, (ev.Opened(at, name, ev.IncidentContext("call", "call")), ev.AttemptSucceeded(at, 0.5, 0.0)))


def test_bound_of_what_waits(disk: Disk, path: Path) -> None:
    """The spool is bounded; events beyond it are dropped, and their number is reported."""
    told: list[str] = []
    journal = Journal(SqliteBackend(path, vfs=disk.name), on_warning=told.append, max_spooled_items=50)
    switch = DiskSwitch(disk)
    switch.on("write", "ENOSPC")
    for number in range(80):
        journal.append(*whole(number)).result(LONG)
    switch.off()
    assert journal.flush(LONG)
    journal.append(*whole(80)).result(LONG)
    journal.close()
    assert told[1:] == ["the journal is writable again; buffered events are written; 30 were lost"]
    assert {incident for incident, _ in held(path)} == {f"whole-{number}" for number in (*range(50), 80)}


def test_closed_in_trouble(disk: Disk, path: Path) -> None:
    """Closing a journal while the store is unavailable reports the number of lost writes."""
    told: list[str] = []
    journal = Journal(SqliteBackend(path, vfs=disk.name), on_warning=told.append)
    DiskSwitch(disk).on("write", "EIO")
    for number in range(3):
        journal.append(*whole(number)).result(LONG)
    journal.close()
    assert told[1:] == ["the journal was closed while the store was unavailable; lost writes: 3"]


def test_flush_says_no(disk: Disk, path: Path) -> None:
    """`flush` returns True only when everything is durable."""
    journal = Journal(SqliteBackend(path, vfs=disk.name), on_warning=lambda _: None)
    switch = DiskSwitch(disk)
    switch.on("sync", "EIO")
    journal.append(*whole(1))
    assert not journal.flush(LONG)
    assert not journal.flush(LONG)
    switch.off()
    assert journal.flush(LONG)
    journal.close()
    assert len(held(path)) == 2


def test_writes_after_close(path: Path) -> None:
    """Appends during or after a close are still written: no caller waits forever."""
    journal = Journal(SqliteBackend(path))
    for number in range(40):
        ticket = journal.append(*whole(number))
        journal.close()
        assert ticket.result(LONG) is not None
    assert len(held(path)) == 80


def test_telling_breaks(disk: Disk, path: Path) -> None:
    """A warning callback may raise: the writer continues, and no caller waits forever."""

    def tell(message: str) -> None:
        raise RuntimeWarning(message)

    journal = Journal(SqliteBackend(path, vfs=disk.name), on_warning=tell)
    switch = DiskSwitch(disk)
    switch.on("write", "EIO")
    journal.append(*whole(1)).result(LONG)
    switch.off()
    assert journal.flush(LONG)
    assert journal.append(*whole(2)).result(LONG) is not None
    journal.close()
    assert len(held(path)) == 4


def test_nobody_waits_any_more(path: Path) -> None:
    """A cancelled caller cancels its future at any moment without disturbing others."""
    told: list[str] = []
    journal = Journal(SqliteBackend(path), on_warning=told.append)
    for number in range(300):
        ticket = journal.append(*whole(number))
        ticket.cancel()
    assert journal.flush(LONG)
    journal.close()
    assert told == []
    assert len(held(path)) == 600


def test_own_fault_after_trouble(disk: Disk, path: Path) -> None:
    """A spooled event that turns out invalid is reported: its caller no longer waits."""
    told: list[str] = []
    journal = Journal(SqliteBackend(path, vfs=disk.name), on_warning=told.append)
    switch = DiskSwitch(disk)
    switch.on("write", "EIO")
    opened = ev.Opened(BEGAN, "x", ev.IncidentContext("call", "call"))._replace(at="never")  # type: ignore[arg-type]
    journal.append(*whole(1)).result(LONG)
    journal.append("x", 0, [opened]).result(LONG)
    switch.off()
    assert journal.flush(LONG)
    journal.close()
    assert "an event could not be written" in told[1]
    assert len(held(path)) == 2
