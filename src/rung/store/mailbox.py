"""Words from outside for recoveries that wait: answers to their questions, orders, another model for a session.

Whoever says something leaves a message in the journal; one thread of each process looks for what somebody in
it waits for. It looks only while somebody does.
"""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.errors import ConfigError
from rung.core.recovery.interventions import Intervention
from rung.store import messages
from rung.store.backends.port import DurableFuture

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.core.domain.events import Ask
    from rung.core.domain.incident import Incident
    from rung.store.backends.port import Database

PAUSE: Final = 0.25  # between looks
IDLE: Final = 10.0  # an order nobody has looked for in so long is not waited for any more
FRESH: Final = 1.0  # seconds for which a session's model is known without looking again
_ANSWERS: Final = """
    SELECT message.body FROM ask JOIN message ON message.topic = 'answer/' || ask.incident || '/' || ask.n
     WHERE ask.incident = ? AND ask.answer = '' ORDER BY ask.n DESC LIMIT 1"""


class Mailbox:
    """What was said to the recoveries of this process."""

    def __init__(self, journal: Database, now: Callable[[], float] = monotonic) -> None:
        self._journal = journal
        self._now = now
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._asked: dict[DurableFuture[str | None], tuple[str, float | None]] = {}  # the incident, and until when
        self._looked: dict[str, float] = {}  # incidents whose orders are looked for, and when that was last wanted
        self._orders: dict[str, Intervention] = {}
        self._models: dict[str, tuple[float, str]] = {}

    def intervention(self, incident: str) -> Intervention | None:
        """An order for this incident, given once. Never waits: the thread looks, and this is asked again."""
        with self._lock:
            self._looked[incident] = self._now()
            order = self._orders.pop(incident, None)
            self._begin()
        return order

    def ask(self, incident: str, seconds: float | None) -> DurableFuture[str | None]:
        """The answer to the question that an incident asks, once somebody gives it; None when nobody does in time."""
        ticket: DurableFuture[str | None] = DurableFuture()
        with self._lock:
            self._asked[ticket] = (incident, None if seconds is None else self._now() + seconds)
            self._begin()
        return ticket

    def model(self, session: str) -> str:
        """The model a person has put a session on; empty when nobody did."""
        known = self._models.get(session)
        if known is not None and self._now() - known[0] < FRESH:
            return known[1]
        told = messages.received(self._journal, f"model/{session}")
        name = str(told.get("model", "")) if isinstance(told, dict) else ""
        if len(self._models) > 1_000:  # noqa: PLR2004  # a bound, whatever it is
            self._models.clear()
        self._models[session] = (self._now(), name)
        return name

    # -- in the thread --------------------------------------------------------------------------------

    def _begin(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._work, name="rung-mailbox", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        rest = threading.Event()
        while True:
            with suppress(Exception):  # a store in trouble: it is looked again
                self._look()
            with self._lock:
                since = self._now() - IDLE
                self._looked = {name: at for name, at in self._looked.items() if at > since}
                if not self._looked and not self._asked:
                    self._thread = None
                    return
            rest.wait(PAUSE)

    def _look(self) -> None:
        with self._lock:
            asked, looked = list(self._asked.items()), list(self._looked)
        for ticket, (incident, until) in asked:
            rows = self._journal.read(_ANSWERS, (incident,))
            late = until is not None and self._now() >= until
            if rows or late or ticket.cancelled():
                with self._lock:
                    self._asked.pop(ticket, None)
                if not ticket.cancelled():
                    ticket.set_result(str(json.loads(rows[0][0])["option"]) if rows else None)
        if looked:
            self._take_orders(looked)

    def _take_orders(self, incidents: list[str]) -> None:
        for incident in messages.ordered_incidents(self._journal).intersection(incidents):
            told = messages.take(self._journal, f"order/{incident}")
            try:
                order = Intervention.of(told) if isinstance(told, dict) else None
            except ConfigError:  # of a newer Rung: not for us
                continue
            if order is not None:
                with self._lock:
                    self._orders[incident] = order


class PendingQuestion:
    """Puts questions to whoever looks at the journal: the dashboard, or `POST /api/incidents/ID/answer`.

    Pass it as `ask=`.

    It waits `seconds` for an answer; without them, until there is one.
    """

    def __init__(self, mailbox: Mailbox, seconds: float | None = None) -> None:
        self._mailbox = mailbox
        self._seconds = seconds

    def __call__(self, question: Ask, incident: Incident) -> Any:  # noqa: ARG002  # the question is in the journal
        """The chosen option, as a future that both loops wait for."""
        return self._mailbox.ask(incident.id, self._seconds)
