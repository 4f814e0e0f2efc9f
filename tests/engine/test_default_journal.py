"""RUNG_JOURNAL in the library: recoveries without a journal of their own are recorded in the one it names."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import rung
from rung.store import open_journal
from rung.testing import FakeClock, Script

if TYPE_CHECKING:
    from pathlib import Path

    from rung.core.domain.events import Event

FAST = rung.policy("call", backoff={"base": 0.001, "cap": 0.001})


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that RUNG_JOURNAL names."""
    file = tmp_path / "journal.db"
    monkeypatch.setenv("RUNG_JOURNAL", str(file))
    return file


def recorded(place: Path) -> list[list[Event]]:
    """The events of each incident in the journal."""
    from rung.engine.default_journal import default_journal
    from rung.store.journal.journal import Journal

    journal = default_journal()
    assert isinstance(journal, Journal)
    assert journal.flush()
    with open_journal(place) as reader:
        ids = [row[0] for row in reader.read("SELECT DISTINCT incident FROM event ORDER BY incident")]
        return [reader.events(incident) for incident in ids]


def test_recover(place: Path) -> None:
    """A recovery is recorded, also one that succeeds at once."""
    rung.recover_sync(lambda request: 1, "go")
    asyncio.run(rung.recover(Script(TimeoutError("late"), "done"), "go", policy=FAST, clock=FakeClock()))
    assert len(recorded(place)) == 2


@pytest.mark.parametrize("is_async", [False, True])
def test_guarded_calls_that_fail(place: Path, is_async: bool) -> None:
    """A guarded call is recorded from its first failure on; one that succeeds opens no journal."""
    left = [ConnectionResetError("reset")]

    def work(*, fails: bool) -> str:
        if fails and left:
            raise left.pop()
        return "done"

    async def awork(*, fails: bool) -> str:
        return work(fails=fails)

    guarded, aguarded = rung.guarded(FAST)(work), rung.guarded(FAST)(awork)
    for fails in (False, True):
        assert (asyncio.run(aguarded(fails=fails)) if is_async else guarded(fails=fails)) == "done"
        assert place.exists() is fails
    ((opened, *_, succeeded),) = recorded(place)
    assert [type(opened).__name__, type(succeeded).__name__] == ["Opened", "AttemptSucceeded"]


def test_a_journal_of_its_own(place: Path, tmp_path: Path) -> None:
    """`journal=None` records nothing, and a journal that is given is used instead."""
    rung.recover_sync(lambda request: 1, "go", journal=None)
    with rung.journal(tmp_path / "own.db") as own:
        rung.recover_sync(lambda request: 1, "go", journal=own)
    assert not place.exists()


def test_off_by_default(tmp_path: Path) -> None:
    """Without the variable no journal is opened and its driver is not imported."""
    code = "import sys, rung; rung.recover_sync(lambda request: 1, 'go'); print('apsw' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == "False\n"


@pytest.mark.parametrize("location", ["/proc/none/journal.db", "postgresql://me:hunter22@127.0.0.1:1/none"])
def test_one_that_cannot_be_opened(
    location: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A journal that cannot be opened is one warning, without a password, and the recoveries go on without it."""
    monkeypatch.setenv("RUNG_JOURNAL", location)
    for _ in range(2):
        assert rung.recover_sync(lambda request: 1, "go").ok
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert record.getMessage().startswith(
        "RUNG_JOURNAL: the journal cannot be opened, so recoveries are not recorded: "
    )
    assert "hunter22" not in record.getMessage()


def test_gathered_jobs(place: Path) -> None:
    """Each job of a fan-out is recorded."""
    rung.gather_sync(*[rung.GatherJob(lambda request: 1, f"job {n}") for n in range(3)])
    assert len(recorded(place)) == 3
