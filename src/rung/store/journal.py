"""The journal: appends events, keeps what is read off them, and answers questions about them."""

from __future__ import annotations

import json
import warnings
from collections import OrderedDict, deque
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.core.codec import from_json
from rung.core.events import Opened
from rung.core.evidence import clip
from rung.core.redact import redacted
from rung.store.bodies import kept
from rung.store.fitting import fitted
from rung.store.port import ReadOnly
from rung.store.projection import READ_MODELS, Changes
from rung.store.story import Story, Told, again, replay
from rung.store.writer import NOTES, SPOOL, Item, Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import TypeVar

    from rung.core.events import Event
    from rung.core.failures import Failure
    from rung.core.orders import Order
    from rung.core.request import Request
    from rung.store.mailbox import Asking, Mailbox
    from rung.store.port import Backend, Connection, Row, Ticket
    from rung.store.runs import Runs

    T = TypeVar("T")

REQUEST: Final = 32 * 1024  # of a request, where it is kept to be looked at
_plainly: Final = json.JSONEncoder(default=repr).encode
STORIES: Final = 10_000  # incidents whose story is remembered while they are open


class Append:
    """Events of an incident, of which the first has this place in it: something to write."""

    __slots__ = ("events", "first", "incident", "journal")

    def __init__(self, journal: Journal, incident: str, first: int, events: tuple[Event, ...]) -> None:
        self.journal = journal
        self.incident = incident
        self.first = first
        self.events = events

    def __call__(self, connection: Connection) -> Fresh | None:
        """Insert what is not there yet; that is what is read off afterwards."""
        return self.journal.insert(connection, [self])[0]

    def present(self, connection: Connection) -> bool:
        """Is it there?"""
        return bool(connection.execute(_HAS, (self.incident, self.first + len(self.events) - 1)))


class Fresh(NamedTuple):
    """Events of an incident that were not there before, each with its place; and how many there were before them."""

    incident: str
    before: int
    events: list[tuple[int, Event]]

    def __str__(self) -> str:
        return f"incident {self.incident}, event {self.events[0][0]}"


class Journal:
    """One journal, open. Threads may share it; after a fork the child writes through a thread of its own.

    It is the engine's port: give it to `recover`, `guarded` or a session as `journal=`.
    """

    def __init__(
        self,
        backend: Backend,
        *,
        project: str = "",
        tell: Callable[[str], object] | None = None,
        room: int = NOTES,
        spool: int = SPOOL,
    ) -> None:
        self.backend = backend
        self.project = project
        self._stories: OrderedDict[str, Story] = OrderedDict()
        self._writer = Writer(
            backend, tell or _warn, self._do, self._finish, self.clear_cache, self._unfold, room=room, spool=spool
        )
        try:
            backend.connect(write=True).close()  # what is wrong with it is said now, not at the first failure
        except ReadOnly:  # it can be looked at; whoever writes is told
            backend.connect(write=False).close()

    def clear_cache(self) -> None:
        """Forget the open incidents held in memory; each is read from the store again when it is needed."""
        self._stories.clear()

    # -- the engine's port ----------------------------------------------------------------------------

    def append(self, incident: str, first: int, events: Sequence[Event]) -> Ticket[None]:
        """Keep these events, of which the first has this place in the incident."""
        append = Append(self, incident, first, tuple(events))
        ticket = self._writer.put_patiently(append, append.present, awaited=True)
        assert ticket is not None  # noqa: S101  # asked for
        return ticket

    def append_if(
        self, incident: str, first: int, events: Sequence[Event], hold: Callable[[Connection], object]
    ) -> Ticket[None]:
        """The same, in one transaction with what makes sure that we may."""
        append = Append(self, incident, first, tuple(events))

        def work(connection: Connection) -> Fresh | None:
            hold(connection)
            return append(connection)

        ticket = self._writer.put_patiently(work, append.present, awaited=True)
        assert ticket is not None  # noqa: S101  # asked for
        return ticket

    @property
    def runs(self) -> Runs:
        """Its durable runs."""
        from rung.store.runs import Runs

        return Runs(self)

    @cached_property
    def mailbox(self) -> Mailbox:
        """Words from outside for the recoveries of this process."""
        from rung.store.mailbox import Mailbox

        return Mailbox(self)

    def order(self, incident: str) -> Order | None:
        """What a person wants of this incident, unasked; the engine looks while it waits."""
        return self.mailbox.order(incident)

    def model_for(self, session: str) -> str:
        """The model a person has put this session on; empty when nobody did."""
        return self.mailbox.model(session)

    def asker(self, seconds: float | None = None) -> Asking:
        """Puts questions to whoever looks at this journal, and waits for the answer: give it as `ask=`."""
        from rung.store.mailbox import Asking

        return Asking(self.mailbox, seconds)

    def hint(self, project: str, failure: Failure) -> str | None:
        """The rung that helped with this failure before; the engine asks where the policy learns."""
        from rung.store.memory import hint

        return hint(self, project, failure)

    def append_quietly(self, incident: str, first: int, events: Sequence[Event]) -> None:
        """The same for events nobody waits for: of a call that went well."""
        append = Append(self, incident, first, tuple(events))
        self._writer.put_patiently(append, append.present, awaited=False)

    def append_last(self, incident: str, first: int, events: Sequence[Event]) -> None:
        """The same for the last ones of an incident, which is over: they may come after what others hand over later."""
        self._writer.note(Append(self, incident, first, tuple(events)), always=True)

    def append_later(self, make: Callable[..., Sequence[Event]], *values: Any) -> None:
        """Events of a call that went well, from its first to its last: made of these values when they are written."""
        self._writer.note((make, values))

    # -- writing and reading --------------------------------------------------------------------------

    def write(self, work: Callable[[Connection], T], present: Callable[[Connection], bool]) -> Ticket[T]:
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
        rows = self.read("SELECT body FROM event WHERE incident = ? ORDER BY n", (incident,))
        return [from_json(json.loads(body)) for (body,) in rows]

    def flush(self, seconds: float = 10.0) -> bool:
        """Wait until everything handed over is durable; False when it is not."""
        return self._writer.flush(seconds)

    def close(self) -> None:
        """Write what is left."""
        self._writer.close()

    @property
    def trouble(self) -> str:
        """Why it cannot be written just now; empty when it can."""
        return self._writer.trouble

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- in the writer's thread -----------------------------------------------------------------------

    def _unfold(self, note: Append | tuple[Callable[..., Sequence[Event]], tuple[Any, ...]]) -> Item:
        if isinstance(note, Append):
            return Item(note, note.present, None, patient=True)
        make, values = note
        events = tuple(make(*values))
        opened = events[0]
        assert isinstance(opened, Opened)  # noqa: S101  # every story begins so
        append = Append(self, opened.id, 0, events)
        return Item(append, append.present, None, patient=True)

    def _do(self, connection: Connection, items: list[Item]) -> list[Any]:
        """What comes of these, in their order; appends that follow one another are made together."""
        results: list[Any] = []
        for appends, group in groupby(items, lambda item: type(item.work) is Append):
            if appends:
                results += self.insert(connection, [item.work for item in group])  # type: ignore[misc]  # they are
            else:
                results += [item.work(connection) for item in group]
        return results

    def insert(self, connection: Connection, appends: list[Append]) -> list[Fresh | None]:
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

    def _finish(self, connection: Connection, results: list[Any]) -> None:
        """What all the items of a batch change, written once."""
        changes = Changes()
        batch = deque(result for result in results if type(result) is Fresh)
        while batch:
            self._read_off(connection, batch.popleft(), changes, batch)
        changes.write(connection)

    def _read_off(self, connection: Connection, fresh: Fresh, changes: Changes, later: Iterable[Fresh]) -> None:
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

    def _settle(self, connection: Connection, parent: str, story: Story, later: Iterable[Fresh]) -> None:
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

    def _story(self, connection: Connection, incident: str, count: int) -> Story:
        """The incident after so many events; one of which another process told more is read again."""
        story = self._stories.get(incident)
        if story is None or story.told != count:
            story = self._stories[incident] = _read_again(connection, incident, count) if count else Story(incident)
            while len(self._stories) > STORIES:
                self._stories.popitem(last=False)
        return story

    # -- maintenance ----------------------------------------------------------------------------------

    def rebuild(self) -> int:
        """Make everything that is read off the events again; how many events there are."""
        return int(self.write(self._rebuild, lambda _: False).result())

    def _rebuild(self, connection: Connection) -> int:
        for table in READ_MODELS:
            connection.execute(f"DELETE FROM {table}")  # noqa: S608  # our own names
        count = [0]
        replay(_told(connection, count), _keep, lambda incident, n: _first(connection, incident, n)).write(connection)
        return count[0]


def _told(connection: Connection, count: list[int]) -> Iterator[Told]:
    last = 0
    while rows := connection.execute(
        "SELECT seq, incident, n, body FROM event WHERE seq > ? ORDER BY seq LIMIT 5000", (last,)
    ):
        for seq, incident, n, body in rows:
            last = seq
            count[0] += 1
            yield Told(incident, n, fitted(from_json(json.loads(body))))


def _first(connection: Connection, incident: str, count: int) -> Iterator[Told]:
    """The first so many events of an incident, in the order they were told in."""
    rows = connection.execute("SELECT n, body FROM event WHERE incident = ? ORDER BY seq LIMIT ?", (incident, count))
    return (Told(incident, n, fitted(from_json(json.loads(body)))) for n, body in rows)


def _read_again(connection: Connection, incident: str, count: int) -> Story:
    """A story from its events; what it and recoveries within it spent, from the rows."""
    rows = connection.execute("SELECT own_dollars FROM incident WHERE id = ?", (incident,))
    story = again(incident, _first(connection, incident, count), rows[0][0] if rows else 0.0)
    ((inner,),) = connection.execute(
        "SELECT SUM(dollars) FROM incident WHERE parent = ? AND parent <> '' AND ended_at > ?",
        (incident, story.tried_at),
    )
    story.inner = inner or 0.0
    return story


_HAS: Final = "SELECT 1 FROM event WHERE incident = ? AND n = ?"
_KNOWN: Final = "SELECT n FROM event WHERE incident = ? AND n >= ?"
_WIDTHS: Final = (1, 8, 64, 512)  # of a question about many: few statements, which the store keeps ready


def _there(connection: Connection, incidents: set[str]) -> dict[str, tuple[int, int]]:
    """How many events there are of each, and the last one's place; of most there are none."""
    width = next(width for width in _WIDTHS if width >= len(incidents))
    names = [*incidents, *[""] * (width - len(incidents))]
    marks = ", ".join("?" * width)
    asked = f"SELECT incident, count(*), MAX(n) FROM event WHERE incident IN ({marks}) GROUP BY incident"  # noqa: S608  # marks
    return {name: (count, last) for name, count, last in connection.execute(asked, names)}


def _insert(connection: Connection, rows: list[Row]) -> None:
    """Insert these events, and forget them."""
    if rows:
        connection.many("INSERT INTO event (incident, n, at, name, body) VALUES (?, ?, ?, ?, ?)", rows.copy())
        rows.clear()


def _keep(request: Request, digest: str, at: float, changes: Changes) -> None:
    body = _plainly({"prompt": request.prompt, "messages": request.messages, "model": request.model})
    changes.put("request", digest, clip(redacted(clip(body, 2 * REQUEST)), REQUEST), len(body), at)


def _warn(message: str) -> None:
    warnings.warn(f"rung: {message}", RuntimeWarning, stacklevel=2)
