"""Journal: appends events, keeps the read models up to date, and runs queries."""

from __future__ import annotations

import warnings
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.errors import JournalReadOnly, StoreError
from rung.core.domain.event_codec import from_json
from rung.core.domain.events import Opened
from rung.core.policy.stalls import MAX_SIMILAR
from rung.store.journal.batch_commit import WriteItem
from rung.store.journal.event_encoding import encode
from rung.store.journal.lost_writes import record_lost
from rung.store.journal.writer import MAX_LAZY_ITEMS, MAX_PENDING_ITEMS, MAX_SPOOLED_ITEMS, Writer
from rung.store.queries.incidents import event_bodies, similar_durations
from rung.store.read_models.writer import NewEvents, ReadModelWriter
from rung.store.sealing import JournalKey

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from rung.core.domain.events import Event
    from rung.core.domain.failures import Failure
    from rung.core.policy.policy import Policy
    from rung.core.recovery.interventions import Intervention
    from rung.core.recovery.learned_skips import RungCount
    from rung.store.backends.port import BackendConnection, DurableFuture, Row, StoreBackend
    from rung.store.durable_runs import DurableRunStore
    from rung.store.mailbox import Mailbox, PendingQuestion
    from rung.store.queries.rung_counts import RungCountCache

    T = TypeVar("T")


class AppendItem:
    """Write of consecutive events of an incident; `first` is the position of the first of them."""

    __slots__ = ("events", "first", "incident", "journal")

    def __init__(self, journal: Journal, incident: str, first: int, events: tuple[Event, ...]) -> None:
        self.journal = journal
        self.incident = incident
        self.first = first
        self.events = events

    def __call__(self, connection: BackendConnection) -> NewEvents | None:
        """Insert the events that are not stored yet and return them; None when all are."""
        return self.journal.insert(connection, [self])[0]

    def present(self, connection: BackendConnection) -> bool:
        """Return whether the last of the events is stored."""
        return bool(connection.execute(_HAS, (self.incident, self.first + len(self.events) - 1)))


class Journal:
    """Open journal. Threads may share it; a forked child writes through its own thread.

    It implements the engine's event log: pass it to `recover`, `guarded` or a session as `journal=`.
    `on_warning` receives messages about an unavailable store; by default they are `RuntimeWarning`s.
    """

    def __init__(
        self,
        backend: StoreBackend,
        *,
        project: str = "",
        on_warning: Callable[[str], object] | None = None,
        max_lazy_items: int = MAX_LAZY_ITEMS,
        max_spooled_items: int = MAX_SPOOLED_ITEMS,
        max_pending_items: int = MAX_PENDING_ITEMS,
    ) -> None:
        self.backend = backend
        self.project = project
        # Set by whoever opens the journal for a project's policy; takes the ladder that holds if no settings name one.
        self.policy_source: Callable[[str], Policy] | None = None
        self.key = JournalKey()
        self.read_models = ReadModelWriter()
        models = self.read_models
        self._writer = Writer(
            backend,
            on_warning or _warn,
            self._execute,
            models.update,
            models.clear_cache,
            self._to_item,
            record_lost,
            max_lazy_items=max_lazy_items,
            max_spooled_items=max_spooled_items,
            max_pending_items=max_pending_items,
        )
        try:
            backend.connect(write=True).close()  # report an unusable store now, not at the first failure
        except JournalReadOnly:  # queries still work; writes raise
            backend.connect(write=False).close()

    # -- the engine's event log -----------------------------------------------------------------------

    def stored_policy(self, default_ladder: str = "") -> Policy | None:
        """Return the policy of the journal's project, as set in the service and in rung.toml; None if nobody looks it up.

        A store in trouble does not prevent a call: then there is none.
        """
        try:
            return None if self.policy_source is None else self.policy_source(default_ladder)
        except StoreError:
            return None

    def append(self, incident: str, first: int, events: Sequence[Event]) -> DurableFuture[None]:
        """Append events to an incident, starting at position `first`."""
        append = AppendItem(self, incident, first, tuple(events))
        return self._writer.enqueue_buffered(append, append.present)

    def append_if(
        self, incident: str, first: int, events: Sequence[Event], precondition: Callable[[BackendConnection], object]
    ) -> DurableFuture[None]:
        """Append events in one transaction with a precondition, which raises when they may not be appended."""
        append = AppendItem(self, incident, first, tuple(events))

        def work(connection: BackendConnection) -> NewEvents | None:
            precondition(connection)
            return append(connection)

        return self._writer.enqueue_buffered(work, append.present)

    @property
    def runs(self) -> DurableRunStore:
        """Durable runs in this journal; `runs.lease` sets for how long this process claims them."""
        return self._runs

    @cached_property
    def _runs(self) -> DurableRunStore:
        from rung.store.durable_runs import DurableRunStore

        return DurableRunStore(self)

    @cached_property
    def mailbox(self) -> Mailbox:
        """Operator messages for the recoveries of this process."""
        from rung.store.mailbox import Mailbox

        return Mailbox(self)

    def intervention(self, incident: str) -> Intervention | None:
        """Return a pending operator intervention for an incident; the engine polls this while it waits."""
        return self.mailbox.intervention(incident)

    def last_intervention(self, incident: str) -> DurableFuture[Intervention | None]:
        """Return an operator intervention for an incident that would end now; the engine asks before it gives up."""
        return self.mailbox.last_intervention(incident)

    def model_for(self, session: str) -> str:
        """Return the model that an operator chose for a session; empty when there is none."""
        return self.mailbox.model_for(session)

    def operator_prompt(self, seconds: float | None = None) -> PendingQuestion:
        """Return a callable that waits for an operator to answer a question in this journal; pass it as `ask=`."""
        from rung.store.mailbox import PendingQuestion

        return PendingQuestion(self.mailbox, seconds)

    def suggest_rung(self, project: str, failure: Failure) -> str | None:
        """Return the rung that resolved this failure before; the engine asks when the policy learns."""
        from rung.store.queries import remedies

        return remedies.suggest_rung(self, project, failure)

    @cached_property
    def _rung_counts(self) -> RungCountCache:
        from rung.store.queries.rung_counts import RungCountCache

        return RungCountCache(self)

    def rung_counts(self, project: str, ladder: str, window: float, now: float) -> Sequence[RungCount]:
        """Return how often the ladder's rungs helped; the engine asks after a failure when the policy learns."""
        return self._rung_counts.counts(project, ladder, window, now)

    def similar_durations(self, incident: str, model: str, agent: str) -> list[float]:
        """Return the durations of successful attempts at tasks of this incident's kind; the engine asks about a silent one."""
        self.flush()  # the incident itself tells the kind
        return similar_durations(self, incident, model, agent, MAX_SIMILAR)

    def append_final(self, incident: str, first: int, events: Sequence[Event]) -> DurableFuture[None] | None:
        """Append the last events of an incident; events queued later may be written first.

        It returns a future only when the writer is behind: a caller that waits for it makes no further failures.
        """
        return self._writer.enqueue_final(AppendItem(self, incident, first, tuple(events)))

    @property
    def pending(self) -> int:
        """Number of writes that are queued."""
        return self._writer.pending

    @property
    def is_behind(self) -> bool:
        """Whether callers should wait for their appends, because too much is waiting to be written."""
        return self._writer.is_behind

    def append_lazy(self, make: Callable[..., Sequence[Event]], *values: Any) -> None:
        """Append all events of a successful call; the writer thread makes them by calling `make(*values)`."""
        self._writer.enqueue_lazy((make, values))

    # -- writing and reading --------------------------------------------------------------------------

    def write(
        self, work: Callable[[BackendConnection], T], present: Callable[[BackendConnection], bool]
    ) -> DurableFuture[T]:
        """Run `work` in a transaction; `present` tells whether it was committed when the outcome is unknown."""
        return self._writer.enqueue(work, present)

    def read(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run one query on a read-only connection and return its rows."""
        connection = self.backend.connect(write=False)
        try:
            return connection.execute(sql, values)
        finally:
            connection.close()

    def events(self, incident: str) -> list[Event]:
        """Return all events of an incident, in order."""
        return [from_json(body) for body in event_bodies(self, incident)]

    def flush(self, seconds: float = 10.0) -> bool:
        """Wait until everything queued is durable; return False when that takes longer."""
        return self._writer.flush(seconds)

    def close(self, seconds: float = 10.0) -> None:
        """Write everything queued and end the writer thread; give up when the store has not answered for `seconds`."""
        self._writer.close(seconds)

    @property
    def last_error(self) -> str:
        """Reason why the journal cannot be written now; empty when it can."""
        return self._writer.last_error

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- in the writer's thread -----------------------------------------------------------------------

    def _to_item(self, lazy: AppendItem | tuple[Callable[..., Sequence[Event]], tuple[Any, ...]]) -> WriteItem:
        if isinstance(lazy, AppendItem):
            return WriteItem(lazy, lazy.present, None, buffered=True)
        make, values = lazy
        events = tuple(make(*values))
        opened = events[0]
        assert isinstance(opened, Opened)  # noqa: S101  # the first event of every incident
        append = AppendItem(self, opened.id, 0, events)
        return WriteItem(append, append.present, None, buffered=True)

    def _execute(self, connection: BackendConnection, items: list[WriteItem]) -> list[Any]:
        """Execute write items in order and return their results; consecutive appends share one insert."""
        results: list[Any] = []
        for are_appends, group in groupby(items, lambda item: type(item.work) is AppendItem):
            if are_appends:
                results += self.insert(connection, [item.work for item in group])  # type: ignore[misc]  # they are
            else:
                results += [item.work(connection) for item in group]
        return results

    def insert(self, connection: BackendConnection, appends: list[AppendItem]) -> list[NewEvents | None]:
        """Insert the events that are not stored yet; return the new events of each append."""
        stored = _stored_counts(connection, {append.incident for append in appends})
        rows: list[Row] = []
        results: list[NewEvents | None] = []
        for append in appends:
            incident, first, events = append.incident, append.first, append.events
            count, last = stored.get(incident, (0, -1))
            present: set[int] = set()
            if last >= first:  # some were appended before: insert only the new ones
                _insert(connection, rows)
                present = {n for (n,) in connection.execute(_POSITIONS, (incident, first))}
            new = [(n, encode(event)) for n, event in enumerate(events, start=first) if n not in present]
            rows += [(incident, n, event.at, name, body) for n, (event, name, body) in new]
            stored[incident] = (count + len(new), max(last, first + len(events) - 1))
            results.append(NewEvents(incident, count, [(n, each.event) for n, each in new]) if new else None)
        _insert(connection, rows)
        return results

    # -- maintenance ----------------------------------------------------------------------------------

    def rebuild(self) -> int:
        """Derive all read models again from the events; return the number of events."""
        return int(self.write(self.read_models.rebuild, lambda _: False).result())


_HAS: Final = "SELECT 1 FROM event WHERE incident = ? AND n = ?"
_POSITIONS: Final = "SELECT n FROM event WHERE incident = ? AND n >= ?"
_WIDTHS: Final = (1, 8, 64, 512)  # placeholders per query: few distinct statements, which the store caches


def _stored_counts(connection: BackendConnection, incidents: set[str]) -> dict[str, tuple[int, int]]:
    """Return the number of stored events and the last position of each incident that has any."""
    width = next(width for width in _WIDTHS if width >= len(incidents))
    names = [*incidents, *[""] * (width - len(incidents))]
    marks = ", ".join("?" * width)
    query = f"SELECT incident, count(*), MAX(n) FROM event WHERE incident IN ({marks}) GROUP BY incident"  # noqa: S608  # marks
    return {name: (count, last) for name, count, last in connection.execute(query, names)}


def _insert(connection: BackendConnection, rows: list[Row]) -> None:
    """Insert these event rows and empty the list."""
    if rows:
        connection.executemany("INSERT INTO event (incident, n, at, name, body) VALUES (?, ?, ?, ?, ?)", rows.copy())
        rows.clear()


def _warn(message: str) -> None:
    warnings.warn(f"rung: {message}", RuntimeWarning, stacklevel=2)
