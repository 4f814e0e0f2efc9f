"""Read models: tables derived from the events, updated with every batch and rebuilt from the events on demand."""

from __future__ import annotations

import json
from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.core.classify.evidence import clip
from rung.core.classify.redaction import redacted
from rung.core.domain.event_codec import from_json
from rung.store.read_models.batch import READ_MODELS, ReadModelBatch
from rung.store.read_models.clamp import fitted
from rung.store.read_models.projector import IncidentProjector, SequencedEvent, again, replay

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rung.core.domain.events import Event
    from rung.core.domain.request import Request
    from rung.store.backends.port import BackendConnection

REQUEST: Final = 32 * 1024  # of a request, where it is kept to be looked at
STORIES: Final = 10_000  # incidents whose story is remembered while they are open
_plainly: Final = json.JSONEncoder(default=repr).encode


class Fresh(NamedTuple):
    """Events of an incident that were not there before, each with its place; and how many there were before them."""

    incident: str
    before: int
    events: list[tuple[int, Event]]

    def __str__(self) -> str:
        return f"incident {self.incident}, event {self.events[0][0]}"


class ReadModelWriter:
    """Derives the read models from appended events; remembers the state of open incidents between batches."""

    def __init__(self) -> None:
        self._stories: OrderedDict[str, IncidentProjector] = OrderedDict()

    def forget(self) -> None:
        """Drop what is remembered: a transaction was rolled back, or another process wrote."""
        self._stories.clear()

    def update(self, connection: BackendConnection, results: list[Any]) -> None:
        """What all the items of a batch change, written once."""
        changes = ReadModelBatch()
        batch = deque(result for result in results if type(result) is Fresh)
        while batch:
            self._read_off(connection, batch.popleft(), changes, batch)
        changes.write(connection)

    def _read_off(
        self, connection: BackendConnection, fresh: Fresh, changes: ReadModelBatch, later: Iterable[Fresh]
    ) -> None:
        story = self._story(connection, fresh.incident, fresh.before)
        for n, event in fresh.events:
            ended = story.take(
                n, fitted(event), changes, lambda request, digest, at: _keep(request, digest, at, changes)
            )
            if ended and (parent := story.incident.parent):
                self._settle(connection, parent, story, later)
        story.put_row(changes)
        if story.ended_at is not None:
            self._stories.pop(fresh.incident, None)

    def _settle(
        self, connection: BackendConnection, parent: str, story: IncidentProjector, later: Iterable[Fresh]
    ) -> None:
        """One that ended within an attempt of another: what it spent is in that attempt's costs as well."""
        outer = self._stories.get(parent)
        if outer is None:
            counts = [
                fresh.before for fresh in later if fresh.incident == parent
            ]  # what is in the batch was not read off
            if not counts:
                counts = [n for (n,) in connection.execute("SELECT count(*) FROM event WHERE incident = ?", (parent,))]
            outer = self._story(connection, parent, counts[0])
        outer.inner += story.incident.dollars

    def _story(self, connection: BackendConnection, incident: str, count: int) -> IncidentProjector:
        """The incident after so many events; one of which another process told more is read again."""
        story = self._stories.get(incident)
        if story is None or story.told != count:
            story = self._stories[incident] = (
                _read_again(connection, incident, count) if count else IncidentProjector(incident)
            )
            while len(self._stories) > STORIES:
                self._stories.popitem(last=False)
        return story

    def rebuild(self, connection: BackendConnection) -> int:
        """Delete the read models and derive them from all events; the number of events."""
        for table in READ_MODELS:
            connection.execute(f"DELETE FROM {table}")  # noqa: S608  # our own names
        count = [0]
        replay(_told(connection, count), _keep, lambda incident, n: _first(connection, incident, n)).write(connection)
        return count[0]


def _told(connection: BackendConnection, count: list[int]) -> Iterator[SequencedEvent]:
    last = 0
    while rows := connection.execute(
        "SELECT seq, incident, n, body FROM event WHERE seq > ? ORDER BY seq LIMIT 5000", (last,)
    ):
        for seq, incident, n, body in rows:
            last = seq
            count[0] += 1
            yield SequencedEvent(incident, n, fitted(from_json(json.loads(body))))


def _first(connection: BackendConnection, incident: str, count: int) -> Iterator[SequencedEvent]:
    """The first so many events of an incident, in the order they were told in."""
    rows = connection.execute("SELECT n, body FROM event WHERE incident = ? ORDER BY seq LIMIT ?", (incident, count))
    return (SequencedEvent(incident, n, fitted(from_json(json.loads(body)))) for n, body in rows)


def _read_again(connection: BackendConnection, incident: str, count: int) -> IncidentProjector:
    """A story from its events; what it and recoveries within it spent, from the rows."""
    rows = connection.execute("SELECT own_dollars FROM incident WHERE id = ?", (incident,))
    story = again(incident, _first(connection, incident, count), rows[0][0] if rows else 0.0)
    ((inner,),) = connection.execute(
        "SELECT SUM(dollars) FROM incident WHERE parent = ? AND parent <> '' AND ended_at > ?",
        (incident, story.tried_at),
    )
    story.inner = inner or 0.0
    return story


def _keep(request: Request, digest: str, at: float, changes: ReadModelBatch) -> None:
    body = _plainly({"prompt": request.prompt, "messages": request.messages, "model": request.model})
    changes.put("request", digest, clip(redacted(clip(body, 2 * REQUEST)), REQUEST), len(body), at)
