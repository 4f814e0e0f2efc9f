"""Lines that show a recovery while it runs: on the terminal of the command line, by `rung.print_events`, and in the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from rung.core.domain import events as ev
from rung.core.domain.skipped_rungs import describe_skips
from rung.core.text.event_text import describe_event
from rung.core.text.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import tzinfo

    from rung.core.domain.incident import Incident

MARKS: Final = {
    "bad": ("✗", "red"),
    "good": ("✓", "green"),
    "next": ("↻", "yellow"),
    "climb": ("↑", "cyan"),
    "note": ("·", "dim"),
    "end": ("■", "magenta"),
}
_NOT_SHOWN: Final = (
    ev.Opened,
    ev.Changed,
    ev.Hinted,
    ev.Learned,
    ev.StepCompleted,
    ev.AgentSessionOpened,
    ev.CheckpointTaken,
)


class ProgressLine(NamedTuple):
    """One line: `mark` is a key of `MARKS`."""

    mark: str
    subject: str
    text: str


class LadderInfo(NamedTuple):
    """Ladder of a progress line: the names and tries of its rungs and, if known, levels and the cap of attempts."""

    names: Sequence[str]
    tries: Sequence[int]
    level: Callable[[int], int] | None = None
    max_attempts: int | None = None

    @classmethod
    def of_incident(cls, incident: Incident) -> LadderInfo:
        """Return what the events of an incident know about its ladder."""
        return cls(incident.terms.rungs, incident.terms.tries)


class ProgressLines:
    """Lines of one recovery after another. Remembers the last decision, because the incident is ahead of the event."""

    def __init__(self) -> None:
        self._decided: ev.Decision | None = None

    def add(self, event: ev.Event, incident: Incident, ladder: LadderInfo, zone: tzinfo | None) -> ProgressLine | None:
        """Return the line of the next event; None for events that are not shown."""
        line = progress_line(event, incident, ladder, zone)
        if line is not None and _is_probe(event, self._decided):
            line = line._replace(subject="probe")
        if isinstance(event, ev.Opened):
            self._decided = None
        elif isinstance(event, ev.Decided):
            self._decided = event.decision
        return line


def progress_line(
    event: ev.Event, incident: Incident, ladder: LadderInfo, zone: tzinfo | None = None
) -> ProgressLine | None:
    """Return the line of one event; None for events that are not shown. Times are those of `zone`, or UTC."""
    if isinstance(event, _NOT_SHOWN) or (isinstance(event, ev.Decided) and isinstance(event.decision, ev.Finish)):
        return None
    line = describe_event(event, ladder.names, incident.attempts, zone)  # a listener gets one attempt at a time
    text = f"{incident.status}" if isinstance(event, ev.AttemptSucceeded) else line.text
    if isinstance(event, ev.Decided):
        text = _decision_text(event.decision, text, incident, ladder)
    return ProgressLine(line.mark, line.subject, f"{text} ({line.time})" if line.time else text)


def _decision_text(decision: ev.Decision, text: str, incident: Incident, ladder: LadderInfo) -> str:
    if isinstance(decision, ev.Change | ev.HandOver) and ladder.level is not None:
        text = f"level {ladder.level(decision.rung)}: {text}"
    if isinstance(decision, ev.Repeat) and decision.until is None:
        text = f"{text}, {_next_attempt(decision, incident, ladder)}"
    skips = describe_skips(decision.skipped, ladder.names)
    return f"{text} ({printable(skips)})" if skips else text


def _next_attempt(retry: ev.Repeat, incident: Incident, ladder: LadderInfo) -> str:
    """Return the number of the attempt that a retry leads to, and of the last one before the ladder climbs."""
    following = incident.attempts + 1
    tries = ladder.tries[retry.rung] if retry.rung < len(ladder.tries) else 0
    last = following + max(0, tries - incident.retries.get(retry.rung, 0))
    cap = ladder.max_attempts
    return f"attempt {following} of {last if cap is None else min(last, cap + incident.probes)}"


def _is_probe(event: ev.Event, decided: ev.Decision | None) -> bool:
    """Whether the event ends an attempt after a wait, which uses nothing of the budget of attempts."""
    is_attempt = isinstance(event, ev.AttemptSucceeded) or (isinstance(event, ev.AttemptFailed) and event.made)
    return is_attempt and isinstance(decided, ev.Repeat) and decided.until is not None
