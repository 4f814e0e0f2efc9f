"""Project notes in a recovery: the first request and those of new plans get what is known; errors of notes are ignored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.core.domain import events as ev
from rung.core.domain.ladder import HANDOVER_ACTIONS, Action
from rung.engine.loop.moves import call_port

if TYPE_CHECKING:
    from collections.abc import Generator

    from rung.core.domain.failures import Failure
    from rung.core.domain.request import Request
    from rung.engine.loop.moves import Move, Reply, Steps
    from rung.engine.loop.run import RecoveryRun
    from rung.engine.ports.recovery import Notes

_NOTED_ACTIONS: Final = frozenset({Action.INVESTIGATE, Action.REPLAN, *HANDOVER_ACTIONS})


def note_first_request(run: RecoveryRun, notes: Notes) -> Steps:
    """Add the notes to the first request, as a change of its own: a resumed run gets the same request."""
    from rung.core.recovery.noted_request import NOTES_PROMPT, with_notes

    before = run.incident.request
    if before is None or len(run.log) > 1:  # resumed: the first request has its notes
        return
    after = with_notes(before, (yield from _read(run, notes, None)))
    if after is not before:
        run.append(ev.Changed(run.clock.now(), after, after.digest(), before.changed(after), NOTES_PROMPT))


def noted(
    run: RecoveryRun, action: Action, request: Request, failure: Failure, prompt: str
) -> Generator[Move, Reply, Request]:
    """Return the request of a new plan or a handover with the notes about its failure; any other unchanged."""
    from rung.core.recovery.noted_request import with_notes

    if run.notes is None or action not in _NOTED_ACTIONS or not prompt:
        return request
    return with_notes(request, (yield from _read(run, run.notes, failure)))


def _read(run: RecoveryRun, notes: Notes, failure: Failure | None) -> Generator[Move, Reply, str]:
    text, _ = yield from call_port(run, "notes", notes.read, failure)
    return str(text or "")
