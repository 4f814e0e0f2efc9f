"""Power loss at any moment: acknowledged events survive, and the file is intact."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from random import Random
from threading import Event
from typing import TYPE_CHECKING

import pytest

from rung.core.domain.errors import RungError
from rung.store.backends.sqlite import SqliteBackend
from rung.store.journal.journal import Journal
from tests.store.faults.disk import Disk
from tests.store.faults.stories import BEGAN, Teller, held

if TYPE_CHECKING:
    from pathlib import Path

    from rung.store.backends.sqlite_connection import SqliteConnection
    from tests.store.faults.stories import Part

LIVES = 3  # power losses per seed
SEEDS = 200 if os.environ.get("RUNG_STORM") else 6


class OnDisk(SqliteBackend):
    """Back end on a simulated disk that checkpoints often, so that power losses hit checkpoints, too."""

    def __init__(self, path: Path, disk: Disk, *, pages: int, synchronous: str) -> None:
        super().__init__(path, vfs=disk.name)
        self.pragmas = (f"wal_autocheckpoint={pages}", f"synchronous={synchronous}")

    def connect(self, *, write: bool) -> SqliteConnection:
        connection = super().connect(write=write)
        for pragma in self.pragmas if write else ():
            connection.execute(f"PRAGMA {pragma}")
        return connection


def live(path: Path, random: Random, teller: Teller, *, synchronous: str = "FULL") -> tuple[Disk, list[Part]]:
    """Append until the power fails; return the events acknowledged until then."""
    disk = Disk()
    disk.cut_at = random.randrange(1, 60) if random.random() < 0.2 else random.randrange(60, 700)
    acknowledged: list[Part] = []
    with suppress(RungError):
        journal = Journal(
            OnDisk(path, disk, pages=random.choice((2, 8, 40, 1000)), synchronous=synchronous),
            on_warning=lambda _: None,
        )
        for _ in range(60):
            _round(journal, disk, [teller.part() for _ in range(random.randrange(1, 9))], acknowledged)
            if disk.off:
                break
        journal.close()
    disk.off = True
    return disk, acknowledged


def _round(journal: Journal, disk: Disk, parts: list[Part], acknowledged: list[Part]) -> None:
    """Append many events as one commit: the writer is blocked until all are queued."""
    began, go = Event(), Event()

    def hold(_: object) -> None:
        began.set()
        go.wait()

    held_up = journal.write(hold, lambda _: True)
    held_up.add_done_callback(lambda _: began.set())
    began.wait()
    tickets = [journal.append(*part) for part in parts]
    go.set()
    for part, ticket in zip(parts, tickets, strict=True):
        if ticket.result(30) is not None and not disk.off:
            acknowledged.append(part)


def survive(seed: int, tmp_path: Path, *, synchronous: str = "FULL") -> tuple[int, int]:
    """Run several power losses of one journal; return the numbers of acknowledged and of lost events."""
    random = Random(seed)
    path = tmp_path / "0" / "journal.db"
    path.parent.mkdir()
    acknowledged: dict[tuple[str, int], object] = {}
    lost, now = 0, BEGAN
    for number in range(1, LIVES + 1):
        teller = Teller(random, f"life{number}", now)
        disk, parts = live(path, random, teller, synchronous=synchronous)
        disk.after_a_cut(random, tmp_path / str(number))
        disk.unregister()
        now = teller.now
        acknowledged |= {place: teller.told[place] for part in parts for place in part.places}
        path = tmp_path / str(number) / "journal.db"
        shutil.copytree(path.parent, tmp_path / f"{number}-seen")
        found = held(tmp_path / f"{number}-seen" / "journal.db")
        lost += sum(found.get(place) != event for place, event in acknowledged.items())
    return len(acknowledged), lost


@pytest.mark.parametrize("seed", range(SEEDS))
def test_acknowledged_events_survive(seed: int, tmp_path: Path) -> None:
    """After every power loss the journal opens, is intact and consistent, and has all acknowledged events."""
    _, lost = survive(seed, tmp_path)
    assert lost == 0, f"seed {seed}: {lost} acknowledged events are lost"


def test_the_disk_can_lose(tmp_path: Path) -> None:
    """Without syncs the simulated disk loses acknowledged events, which proves that these tests can fail."""
    lost = 0
    for seed in range(8):
        (tmp_path / str(seed)).mkdir()
        with suppress(RungError, AssertionError):  # or the file is damaged
            _, missing = survive(seed, tmp_path / str(seed), synchronous="NORMAL")
            lost += missing
    assert lost > 0
