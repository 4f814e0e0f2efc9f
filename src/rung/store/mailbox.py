"""Mailbox: delivers operator answers, interventions and model choices to the recoveries of this process.

Operators leave messages in the journal. One thread per process polls for those that a recovery waits for, and only
while one does.
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

POLL_SECONDS: Final = 0.25  # between two polls
IDLE_SECONDS: Final = 10.0  # an incident not asked about for this long is no longer polled
_ANSWERS: Final = """
    SELECT message.body FROM ask JOIN message ON message.topic = 'answer/' || ask.incident || '/' || ask.n
     WHERE ask.incident = ? AND ask.answer = '' ORDER BY ask.n DESC LIMIT 1"""


class Mailbox:
    """Operator messages for the recoveries of this process."""

    def __init__(self, journal: Database, now: Callable[[], float] = monotonic) -> None:
        self._journal = journal
        self._now = now
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._questions: dict[DurableFuture[str | None], tuple[str, float | None]] = {}  # incident and deadline
        self._watched: dict[str, float] = {}  # polled incidents, and when a recovery last asked about them
        self._interventions: dict[str, Intervention] = {}
        self._delivered: dict[str, Intervention] = {}  # in the journal until the recovery has recorded them
        self._last: dict[DurableFuture[Intervention | None], str] = {}  # incidents that would end now
        self._wake = threading.Event()

    def intervention(self, incident: str) -> Intervention | None:
        """Return an intervention for an incident, once. Never blocks: the thread polls, and the engine asks again."""
        with self._lock:
            self._watched[incident] = self._now()
            self._ensure_thread()
            return self._deliver(incident)

    def last_intervention(self, incident: str) -> DurableFuture[Intervention | None]:
        """Return a future of the intervention for an incident that would end now; it is read from the journal at once."""
        future: DurableFuture[Intervention | None] = DurableFuture()
        with self._lock:
            self._last[future] = incident
            self._ensure_thread()
        self._wake.set()
        return future

    def _deliver(self, incident: str) -> Intervention | None:
        intervention = self._interventions.pop(incident, None)
        if intervention is not None:
            self._delivered[incident] = intervention
            self._watched[incident] = self._now()
        return intervention

    def ask(self, incident: str, seconds: float | None) -> DurableFuture[str | None]:
        """Return a future of the answer to an incident's question; None when the time is up."""
        future: DurableFuture[str | None] = DurableFuture()
        with self._lock:
            self._questions[future] = (incident, None if seconds is None else self._now() + seconds)
            self._ensure_thread()
        return future

    def model_for(self, session: str) -> str:
        """Return the model that an operator chose for a session, read now; empty when there is none."""
        return messages.session_models(self._journal, [session]).get(session, "")

    # -- in the thread --------------------------------------------------------------------------------

    def _ensure_thread(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._work, name="rung-mailbox", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        while True:
            self._wake.clear()
            with suppress(Exception):  # the store is unavailable: poll again
                self._poll()
            self._answer_last()
            with self._lock:
                since = self._now() - IDLE_SECONDS
                self._watched = {name: at for name, at in self._watched.items() if at > since}
                self._delivered = {name: it for name, it in self._delivered.items() if name in self._watched}
                if not self._watched and not self._questions and not self._last:
                    self._thread = None
                    return
            self._wake.wait(POLL_SECONDS)

    def _poll(self) -> None:
        with self._lock:
            questions, watched = list(self._questions.items()), {*self._watched, *self._last.values()}
        for future, (incident, until) in questions:
            rows = self._journal.read(_ANSWERS, (incident,))
            timed_out = until is not None and self._now() >= until
            if rows or timed_out or future.cancelled():
                with self._lock:
                    self._questions.pop(future, None)
                if not future.cancelled():
                    future.set_result(str(json.loads(rows[0][0])["option"]) if rows else None)
        if watched:
            self._read_interventions(watched)

    def _read_interventions(self, incidents: set[str]) -> None:
        """Read the orders of these incidents. Each stays in the journal until its recovery has recorded it."""
        found = messages.incidents_with_intervention(self._journal).intersection(incidents)
        for incident in found:
            message = messages.latest(self._journal, f"order/{incident}")
            try:
                intervention = Intervention.of(message) if isinstance(message, dict) else None
            except ConfigError:  # written by a newer Rung: ignored
                messages.take(self._journal, f"order/{incident}")
                continue
            with self._lock:
                if intervention is not None and intervention != self._delivered.get(incident):
                    self._interventions[incident] = intervention
        with self._lock:
            for incident in incidents - found:
                self._delivered.pop(incident, None)

    def _answer_last(self) -> None:
        """Answer the recoveries that would end now: what was read for them, or that there is nothing."""
        with self._lock:
            last, self._last = self._last, {}
            answers = [(future, self._deliver(incident)) for future, incident in last.items()]
        for future, intervention in answers:
            if not future.cancelled():
                future.set_result(intervention)


class PendingQuestion:
    """Callable for `ask=` that waits for an operator's answer in the journal.

    Operators answer in the dashboard or by `POST /api/incidents/ID/answer`. It waits `seconds`, or without them
    until there is an answer.
    """

    def __init__(self, mailbox: Mailbox, seconds: float | None = None) -> None:
        self._mailbox = mailbox
        self._seconds = seconds

    def __call__(self, question: Ask, incident: Incident) -> Any:  # noqa: ARG002  # the question is in the journal
        """Return a future of the chosen option, usable from threads and from asyncio."""
        return self._mailbox.ask(incident.id, self._seconds)
