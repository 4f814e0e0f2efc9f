"""A ladder walked in somebody else's loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rung
from rung.core import events as ev
from rung.engine.walk import Walk
from rung.store import open_journal
from rung.testing import HttpError

if TYPE_CHECKING:
    from pathlib import Path

OVERLOADED = HttpError(529, "overloaded")


def test_it_says_what_the_ladder_says() -> None:
    """Told of overloads it repeats as often as the ladder does, then ends; what goes well in the end is recovered."""
    walk = Walk(rung.policy("call"), now=lambda: 0.0, jitter=lambda: 0.5)
    assert [type(walk.failed(OVERLOADED)) for _ in range(4)] == [ev.Repeat, ev.Repeat, ev.Repeat, ev.Finish]
    assert walk.incident.status == "failed"
    walk = Walk("call")
    walk.failed(OVERLOADED)
    walk.succeeded()
    assert walk.incident.status == "recovered"


def test_its_limits_are_the_policys() -> None:
    """Past the policy's seconds nothing is repeated."""
    times = iter([0.0, 11.0])
    walk = Walk(rung.policy("call", seconds=10), now=lambda: next(times))
    assert isinstance(walk.failed(OVERLOADED), ev.Finish)


def test_it_is_written_down(tmp_path: Path) -> None:
    """What it is told and what it says is in the journal, in that order."""
    with open_journal(str(tmp_path / "journal.db")) as journal:
        walk = Walk("call", journal=journal)
        walk.failed(HttpError(401, "no"))
        told = [type(event).__name__ for event in journal.events(walk.incident.id)]
    assert told == ["Opened", "AttemptFailed", "Decided", "Closed"]
