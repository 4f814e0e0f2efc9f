"""Read models: tables derived from the events, updated with every batch and rebuilt from the events on demand."""

from __future__ import annotations

import json
from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.core.classify.evidence import clip
from rung.core.classify.redaction import redacted
from rung.core.domain.event_codec import from_json
from rung.core.domain.events import Ordered
from rung.store.orders import settle_orders
from rung.store.read_models.batch import READ_MODELS, ReadModelBatch
from rung.store.read_models.clamp import clamp
from rung.store.read_models.event_body import event_table
from rung.store.read_models.projector import IncidentProjector, SequencedEvent, rebuild_projector, replay

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rung.core.domain.events import Event
    from rung.core.domain.request import Request
    from rung.store.backends.port import BackendConnection

MAX_REQUEST_CHARS: Final = 32 * 1024  # of a stored request
MAX_CACHED_PROJECTORS: Final = 10_000  # projectors of open incidents kept between batches
_dump: Final = json.JSONEncoder(default=repr).encode


class NewEvents(NamedTuple):
    """Newly inserted events of an incident with their positions, and the number of events before them."""

    incident: str
    before: int
    events: list[tuple[int, Event]]

    def __str__(self) -> str:
        return f"incident {self.incident}, event {self.events[0][0]}"


class ReadModelWriter:
    """Derives the read models from appended events; caches the projectors of open incidents between batches."""

    def __init__(self) -> None:
        self._projectors: OrderedDict[str, IncidentProjector] = OrderedDict()

    def clear_cache(self) -> None:
        """Drop all cached projectors: a transaction was rolled back, or another process wrote."""
        self._projectors.clear()

    def update(self, connection: BackendConnection, results: list[Any]) -> None:
        """Derive the changes of all items of a batch and write them once."""
        changes = ReadModelBatch()
        batch = deque(result for result in results if type(result) is NewEvents)
        taken: list[tuple[str, Ordered]] = []
        ended: list[tuple[str, float]] = []
        while batch:
            new = batch.popleft()
            ended_at = self._project(connection, new, changes, batch)
            if new.before:  # nobody can order anything from an incident that is written at its end
                taken += [(new.incident, event) for _, event in new.events if isinstance(event, Ordered)]
                ended += [] if ended_at is None else [(new.incident, ended_at)]
        changes.write(connection)
        settle_orders(connection, taken, ended)

    def _project(
        self, connection: BackendConnection, new: NewEvents, changes: ReadModelBatch, later: Iterable[NewEvents]
    ) -> float | None:
        """Derive the changes of one incident's events; return when the incident ended, if it has."""
        projector = self._projector(connection, new.incident, new.before)
        for n, event in new.events:
            ended = projector.apply(
                n, clamp(event), changes, lambda request, digest, at: _store_request(request, digest, at, changes)
            )
            if ended and (parent := projector.incident.parent):
                self._add_nested_cost(connection, parent, projector, later)
        projector.put_row(changes)
        if projector.ended_at is not None:
            self._projectors.pop(new.incident, None)
        return projector.ended_at

    def _add_nested_cost(
        self, connection: BackendConnection, parent: str, projector: IncidentProjector, later: Iterable[NewEvents]
    ) -> None:
        """Add the cost of an ended nested incident to its parent: the parent's attempt cost includes it."""
        outer = self._projectors.get(parent)
        if outer is None:
            # Events of the parent later in this batch are inserted, but not projected yet.
            counts = [new.before for new in later if new.incident == parent]
            if not counts:
                counts = [n for (n,) in connection.execute("SELECT count(*) FROM event WHERE incident = ?", (parent,))]
            outer = self._projector(connection, parent, counts[0])
        outer.nested_dollars += projector.incident.dollars

    def _projector(self, connection: BackendConnection, incident: str, count: int) -> IncidentProjector:
        """Return the projector of an incident after `count` events; reload it when another process appended events."""
        projector = self._projectors.get(incident)
        if projector is None or projector.event_count != count:
            projector = self._projectors[incident] = (
                _load_projector(connection, incident, count) if count else IncidentProjector(incident)
            )
            while len(self._projectors) > MAX_CACHED_PROJECTORS:
                self._projectors.popitem(last=False)
        return projector

    def rebuild(self, connection: BackendConnection) -> int:
        """Delete the read models and derive them from all events; return the number of events."""
        for table in READ_MODELS:
            connection.execute(f"DELETE FROM {table}")  # noqa: S608  # our own names
        count = [0]
        replay(
            _all_events(connection, count), _store_request, lambda incident, n: _first_events(connection, incident, n)
        ).write(connection)
        return count[0]


def _all_events(connection: BackendConnection, count: list[int]) -> Iterator[SequencedEvent]:
    last = 0
    while rows := connection.execute(
        "SELECT seq, incident, n, body FROM event WHERE seq > ? ORDER BY seq LIMIT 5000", (last,)
    ):
        for seq, incident, n, body in rows:
            last = seq
            count[0] += 1
            yield SequencedEvent(incident, n, clamp(from_json(event_table(body))))


def _first_events(connection: BackendConnection, incident: str, count: int) -> Iterator[SequencedEvent]:
    """Return the first `count` events of an incident, in the order they were appended."""
    rows = connection.execute("SELECT n, body FROM event WHERE incident = ? ORDER BY seq LIMIT ?", (incident, count))
    return (SequencedEvent(incident, n, clamp(from_json(event_table(body)))) for n, body in rows)


def _load_projector(connection: BackendConnection, incident: str, count: int) -> IncidentProjector:
    """Load a projector from its events, and its own and nested cost from the rows."""
    rows = connection.execute("SELECT own_dollars FROM incident WHERE id = ?", (incident,))
    projector = rebuild_projector(incident, _first_events(connection, incident, count), rows[0][0] if rows else 0.0)
    ((inner,),) = connection.execute(
        "SELECT SUM(dollars) FROM incident WHERE parent = ? AND parent <> '' AND ended_at > ?",
        (incident, projector.last_attempt_at),
    )
    projector.nested_dollars = inner or 0.0
    return projector


def _store_request(request: Request, digest: str, at: float, changes: ReadModelBatch) -> None:
    body = _dump({"prompt": request.prompt, "messages": request.messages, "model": request.model})
    changes.put("request", digest, clip(redacted(clip(body, 2 * MAX_REQUEST_CHARS)), MAX_REQUEST_CHARS), len(body), at)
