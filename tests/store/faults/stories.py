"""Random recoveries by seed, and the events that a journal must contain afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rung.core.domain import events as ev
from rung.core.domain.failures import Evidence, Failure, Kind
from rung.core.domain.ladder import Action
from rung.core.domain.request import Request
from rung.store.backends.sqlite import SqliteBackend
from rung.store.journal.journal import Journal
from rung.store.read_models.batch import READ_MODELS

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from rung.store.backends.port import Row

BEGAN = 1_700_000_000.0
KINDS = (Kind.RATE_LIMIT, Kind.SERVER_ERROR, Kind.TIMEOUT, Kind.LOW_QUALITY)


class Part(NamedTuple):
    """Events that are appended together."""

    incident: str
    first: int
    events: tuple[ev.Event, ...]

    @property
    def places(self) -> list[tuple[str, int]]:
        """Return the key of each event."""
        return [(self.incident, n) for n in range(self.first, self.first + len(self.events))]


class Teller:
    """Generates interleaved recoveries in parts. Amounts are multiples of 0.25, so that sums are exact in any order."""

    def __init__(self, random: Random, name: str = "i", began: float = BEGAN) -> None:
        self.random = random
        self.name = name
        self.now = began
        self.count = 0
        self.open: dict[str, int] = {}  # incident to its number of events so far
        self.told: dict[tuple[str, int], ev.Event] = {}

    def part(self) -> Part:
        """Return the next part of an open recovery, or the first part of a new one."""
        if not self.open or self.random.random() < 0.3:
            self.count += 1
            incident = f"{self.name}-{self.count}"
            self.open[incident] = 0
            opened = self._opened(incident)
            return self._tell(incident, [opened, *self._failed()] if self.random.random() < 0.7 else [opened])
        incident = self.random.choice(list(self.open))
        chance = self.random.random()
        if chance < 0.5:
            return self._tell(incident, self._failed())
        if chance < 0.6:
            return self._tell(incident, [ev.StepCompleted(self._later(), "step " + "x" * self.random.randrange(9000))])
        return self._tell(incident, [self._ended()])

    def _tell(self, incident: str, events: list[ev.Event]) -> Part:
        part = Part(incident, self.open[incident], tuple(events))
        self.told.update(zip(part.places, events, strict=True))
        self.open[incident] += len(events)
        if isinstance(events[-1], ev.AttemptSucceeded | ev.Closed):
            del self.open[incident]
        return part

    def _opened(self, incident: str) -> ev.Event:
        terms = ev.IncidentContext(
            "task", "task", rungs=("repeat", "change", "stop"), session=f"s{self.random.randrange(3)}"
        )
        prompt = f"write {self.random.randrange(5)} " + "y" * self.random.randrange(600)
        return ev.Opened(self._later(), incident, terms, Request(prompt=prompt, model=f"m{self.random.randrange(3)}"))

    def _failed(self) -> list[ev.Event]:
        kind = self.random.choice(KINDS)
        text = f"no luck, number {self.random.randrange(4)}"
        failure = Failure(kind, True, "rule", text, None, Evidence(text=text))
        failed = ev.AttemptFailed(self._later(), failure, self._quarters(), self._quarters(), may_retry=True)
        decision: ev.Decision = ev.Repeat(0, 0.5, "again")
        if self.random.random() < 0.3:
            decision = ev.Change(1, Action.NUDGE, 0.0, "another way")
        return [failed, ev.Decided(self._later(), decision)]

    def _ended(self) -> ev.Event:
        if self.random.random() < 0.7:
            return ev.AttemptSucceeded(self._later(), self._quarters(), self._quarters())
        return ev.Closed(self._later(), ev.Status.FAILED, "out of rungs")

    def _later(self) -> float:
        self.now += 0.25
        return self.now

    def _quarters(self) -> float:
        return self.random.randrange(1, 40) / 4


def tables(journal: Journal) -> dict[str, list[Row]]:
    """Return all read models."""
    return {table: sorted(journal.read(f"SELECT * FROM {table}"), key=repr) for table in READ_MODELS}


def held(path: Path) -> dict[tuple[str, int], ev.Event]:
    """Open a journal, assert that it is intact and consistent, and return its events."""
    with Journal(SqliteBackend(path)) as journal:
        assert journal.read("PRAGMA integrity_check") == [("ok",)]
        places: list[tuple[str, int]] = list(journal.read("SELECT incident, n FROM event"))
        assert len(places) == len(set(places)), "an event is there twice"
        before = tables(journal)
        journal.rebuild()
        after = tables(journal)
        for table in READ_MODELS:
            assert before[table] == after[table], f"{table} is not what its events amount to"
        return {
            (incident, n): event
            for incident in {incident for incident, _ in places}
            for n, event in zip(
                sorted(n for one, n in places if one == incident), journal.events(incident), strict=True
            )
        }
