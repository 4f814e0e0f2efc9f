"""The journal: appends events, keeps what is read off them, and answers questions about them."""

from __future__ import annotations

import warnings
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.errors import JournalReadOnly
from rung.core.domain.event_codec import from_json
from rung.core.domain.events import Opened
from rung.store.journal.event_encoding import kept
from rung.store.journal.writer import NOTES, SPOOL, WriteItem, Writer
from rung.store.queries.incidents import event_bodies
from rung.store.read_models.writer import Fresh, ReadModelWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from rung.core.domain.events import Event
    from rung.core.domain.failures import Failure
    from rung.core.recovery.interventions import Intervention
    from rung.store.backends.port import BackendConnection, DurableFuture, Row, StoreBackend
    from rung.store.durable_runs import DurableRunStore
    from rung.store.mailbox import Mailbox, PendingQuestion

    T = TypeVar("T")


class AppendItem:
    """Events of an incident, of which the first has this place in it: something to write."""

    __slots__ = ("events", "first", "incident", "journal")

    def __init__(self, journal: Journal, incident: str, first: int, events: tuple[Event, ...]) -> None:
        self.journal = journal
        self.incident = incident
        self.first = first
        self.events = events

    def __call__(self, connection: BackendConnection) -> Fresh | None:
        """Insert what is not there yet; that is what is read off afterwards."""
        return self.journal.insert(connection, [self])[0]

    def present(self, connection: BackendConnection) -> bool:
        """Is it there?"""
        return bool(connection.execute(_HAS, (self.incident, self.first + len(self.events) - 1)))


class Journal:
    """One journal, open. Threads may share it; after a fork the child writes through a thread of its own.

    It is the engine's port: give it to `recover`, `guarded` or a session as `journal=`.
    """

    def __init__(
        self,
        backend: StoreBackend,
        *,
        project: str = "",
        tell: Callable[[str], object] | None = None,
        room: int = NOTES,
        spool: int = SPOOL,
    ) -> None:
        self.backend = backend
        self.project = project
        self.read_models = ReadModelWriter()
        models = self.read_models
        self._writer = Writer(
            backend, tell or _warn, self._do, models.update, models.forget, self._unfold, room=room, spool=spool
        )
        try:
            backend.connect(write=True).close()  # what is wrong with it is said now, not at the first failure
        except JournalReadOnly:  # it can be looked at; whoever writes is told
            backend.connect(write=False).close()

    # -- the engine's port ----------------------------------------------------------------------------

    def append(self, incident: str, first: int, events: Sequence[Event]) -> DurableFuture[None]:
        """Keep these events, of which the first has this place in the incident."""
        append = AppendItem(self, incident, first, tuple(events))
        return self._writer.enqueue_buffered(append, append.present)

    def append_if(
        self, incident: str, first: int, events: Sequence[Event], hold: Callable[[BackendConnection], object]
    ) -> DurableFuture[None]:
        """The same, in one transaction with what makes sure that we may."""
        append = AppendItem(self, incident, first, tuple(events))

        def work(connection: BackendConnection) -> Fresh | None:
            hold(connection)
            return append(connection)

        return self._writer.enqueue_buffered(work, append.present)

    @property
    def runs(self) -> DurableRunStore:
        """Its durable runs."""
        from rung.store.durable_runs import DurableRunStore

        return DurableRunStore(self)

    @cached_property
    def mailbox(self) -> Mailbox:
        """Words from outside for the recoveries of this process."""
        from rung.store.mailbox import Mailbox

        return Mailbox(self)

    def intervention(self, incident: str) -> Intervention | None:
        """What a person wants of this incident, unasked; the engine looks while it waits."""
        return self.mailbox.intervention(incident)

    def model_for(self, session: str) -> str:
        """The model a person has put this session on; empty when nobody did."""
        return self.mailbox.model(session)

    def operator_prompt(self, seconds: float | None = None) -> PendingQuestion:
        """Puts questions to whoever looks at this journal, and waits for the answer: give it as `ask=`."""
        from rung.store.mailbox import PendingQuestion

        return PendingQuestion(self.mailbox, seconds)

    def suggest_rung(self, project: str, failure: Failure) -> str | None:
        """The rung that helped with this failure before; the engine asks where the policy learns."""
        from rung.store.queries.remedies import hint

        return hint(self, project, failure)

    def append_final(self, incident: str, first: int, events: Sequence[Event]) -> None:
        """Append the last events of an incident, which is over; nobody waits. They may come after what others hand over later."""
        self._writer.enqueue_lazy(AppendItem(self, incident, first, tuple(events)), always=True)

    def append_lazy(self, make: Callable[..., Sequence[Event]], *values: Any) -> None:
        """Events of a call that went well, from its first to its last: made of these values when they are written."""
        self._writer.enqueue_lazy((make, values))

    # -- writing and reading --------------------------------------------------------------------------

    def write(
        self, work: Callable[[BackendConnection], T], present: Callable[[BackendConnection], bool]
    ) -> DurableFuture[T]:
        """Run this in a transaction; `present` tells whether it was done, when a commit's outcome is unknown."""
        return self._writer.put(work, present)

    def read(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """The rows of one query, on a connection that cannot write."""
        connection = self.backend.connect(write=False)
        try:
            return connection.execute(sql, values)
        finally:
            connection.close()

    def events(self, incident: str) -> list[Event]:
        """All events of an incident, in their order."""
        return [from_json(body) for body in event_bodies(self, incident)]

    def flush(self, seconds: float = 10.0) -> bool:
        """Wait until everything handed over is durable; False when it is not."""
        return self._writer.flush(seconds)

    def close(self) -> None:
        """Write what is left."""
        self._writer.close()

    @property
    def last_error(self) -> str:
        """Why it cannot be written just now; empty when it can."""
        return self._writer.trouble

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- in the writer's thread -----------------------------------------------------------------------

    def _unfold(self, note: AppendItem | tuple[Callable[..., Sequence[Event]], tuple[Any, ...]]) -> WriteItem:
        if isinstance(note, AppendItem):
            return WriteItem(note, note.present, None, patient=True)
        make, values = note
        events = tuple(make(*values))
        opened = events[0]
        assert isinstance(opened, Opened)  # noqa: S101  # every story begins so
        append = AppendItem(self, opened.id, 0, events)
        return WriteItem(append, append.present, None, patient=True)

    def _do(self, connection: BackendConnection, items: list[WriteItem]) -> list[Any]:
        """What comes of these, in their order; appends that follow one another are made together."""
        results: list[Any] = []
        for appends, group in groupby(items, lambda item: type(item.work) is AppendItem):
            if appends:
                results += self.insert(connection, [item.work for item in group])  # type: ignore[misc]  # they are
            else:
                results += [item.work(connection) for item in group]
        return results

    def insert(self, connection: BackendConnection, appends: list[AppendItem]) -> list[Fresh | None]:
        """Insert what is not there yet; that is what is read off afterwards."""
        there = _there(connection, {append.incident for append in appends})
        rows: list[Row] = []
        results: list[Fresh | None] = []
        for append in appends:
            incident, first, events = append.incident, append.first, append.events
            count, last = there.get(incident, (0, -1))
            known: set[int] = set()
            if last >= first:  # an event that is there already was told before: only the new ones count
                _insert(connection, rows)
                known = {n for (n,) in connection.execute(_KNOWN, (incident, first))}
            fresh = [(n, kept(event)) for n, event in enumerate(events, start=first) if n not in known]
            rows += [(incident, n, event.at, name, body) for n, (event, name, body) in fresh]
            there[incident] = (count + len(fresh), max(last, first + len(events) - 1))
            results.append(Fresh(incident, count, [(n, each.event) for n, each in fresh]) if fresh else None)
        _insert(connection, rows)
        return results

    # -- maintenance ----------------------------------------------------------------------------------

    def rebuild(self) -> int:
        """Make everything that is read off the events again; how many events there are."""
        return int(self.write(self.read_models.rebuild, lambda _: False).result())


_HAS: Final = "SELECT 1 FROM event WHERE incident = ? AND n = ?"
_KNOWN: Final = "SELECT n FROM event WHERE incident = ? AND n >= ?"
_WIDTHS: Final = (1, 8, 64, 512)  # of a question about many: few statements, which the store keeps ready


def _there(connection: BackendConnection, incidents: set[str]) -> dict[str, tuple[int, int]]:
    """How many events there are of each, and the last one's place; of most there are none."""
    width = next(width for width in _WIDTHS if width >= len(incidents))
    names = [*incidents, *[""] * (width - len(incidents))]
    marks = ", ".join("?" * width)
    asked = f"SELECT incident, count(*), MAX(n) FROM event WHERE incident IN ({marks}) GROUP BY incident"  # noqa: S608  # marks
    return {name: (count, last) for name, count, last in connection.execute(asked, names)}


def _insert(connection: BackendConnection, rows: list[Row]) -> None:
    """Insert these events, and forget them."""
    if rows:
        connection.many("INSERT INTO event (incident, n, at, name, body) VALUES (?, ?, ?, ?, ?)", rows.copy())
        rows.clear()


def _warn(message: str) -> None:
    warnings.warn(f"rung: {message}", RuntimeWarning, stacklevel=2)
