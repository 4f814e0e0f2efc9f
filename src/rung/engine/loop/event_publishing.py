"""Publication of a run's events: they are appended to the journal, then the listeners are notified."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

from rung.engine.loop.moves import call_port

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Future

    from rung.core.domain import events as ev
    from rung.engine.loop.moves import Steps
    from rung.engine.loop.run import RecoveryRun
    from rung.engine.ports.journal import EventLog


def publish(run: RecoveryRun) -> Steps:
    """Persist what is recorded so far, and notify the listeners; nothing if all of it is published."""
    if run.has_observers and run.published < len(run.log):
        yield from persist_and_notify(run)


def persist_and_notify(run: RecoveryRun, *, final: bool = False) -> Steps:
    """Append new events to the journal, then notify the listeners. Done before every act.

    No caller waits for the final events, so a journal may defer them.
    """
    first = run.published
    new_events = run.drain()
    if not new_events:
        return
    if final and run.lazy_log is not None:
        yield from call_port(run, "journal", run.lazy_log.append_final, run.incident.id, first, new_events)
    elif run.journal is not None:
        appended, _ = yield from call_port(run, "journal", _append, run.journal, run.incident.id, first, new_events)
        if isinstance(appended, _PendingAppend):
            run.pending_append = appended
            if final and run.back_pressure is not None and run.back_pressure.is_behind:
                yield from call_port(run, "journal", _identity, appended.future)
    run.notify(new_events)


class _PendingAppend(NamedTuple):
    """Append that is still being written."""

    future: Future[Any]


def _append(journal: EventLog, incident: str, first: int, events: Sequence[ev.Event]) -> Any:
    appended = journal.append(incident, first, events)
    return _PendingAppend(cast("Future[Any]", appended)) if hasattr(appended, "add_done_callback") else appended


def await_persisted(run: RecoveryRun) -> Steps:
    """Wait until the decision is durable before acting on it. The write overlaps with the backoff before the attempt.

    A first attempt follows no decision and does not wait.
    """
    pending, run.pending_append = run.pending_append, None
    if pending is not None and run.incident.decision is not None and not _is_persisted(pending.future):
        yield from call_port(run, "journal", _identity, pending.future)


def _is_persisted(future: Future[Any]) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None


def _identity(future: Future[Any]) -> Future[Any]:
    return future  # both drivers wait for a future that a port returns
