"""A recovery as people watch it: a line for each thing that happens, and questions on the terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain import events as ev
from rung.core.text.event_text import describe_event

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.core.domain.incident import Incident
    from rung.core.policy.policy import Policy

MARKS = {
    "bad": ("✗", "red"),
    "good": ("✓", "green"),
    "next": ("↻", "yellow"),
    "climb": ("↑", "cyan"),
    "note": ("·", "dim"),
    "end": ("■", "magenta"),
}


def listener(policy: Policy, *, as_json: bool, show: Callable[[str, str, str], object] | None = None) -> Any:
    """A listener that shows progress: as JSON lines on stdout, or as words on stderr."""
    if as_json:
        return _json_line
    put = show or _put

    def tell(event: ev.Event, incident: Incident) -> None:
        line = words(event, incident, policy)
        if line is not None:
            put(*line)

    return tell


def words(event: ev.Event, incident: Incident, policy: Policy) -> tuple[str, str, str] | None:
    """What to print about an event: a mark, a subject and the rest; None for what is only of use in the journal."""
    if isinstance(event, _SILENT) or (isinstance(event, ev.Decided) and isinstance(event.decision, ev.Finish)):
        return None
    ladder = policy.ladder
    line = describe_event(event, [rung.name for rung in ladder.rungs], _number(event, incident))
    text = f"{incident.status}" if isinstance(event, ev.AttemptSucceeded) else line.text
    if isinstance(event, ev.Decided) and isinstance(event.decision, ev.Change | ev.HandOver):
        text = f"level {ladder.level(event.decision.rung)}: {text}"
    return line.mark, line.subject, f"{text} ({line.time})" if line.time else text


_SILENT: Final = (ev.Opened, ev.Changed, ev.Hinted, ev.StepCompleted, ev.CheckpointTaken)


def _number(event: ev.Event, incident: Incident) -> int:
    """Which attempt an event was about; by the time it is printed the incident may have moved on."""
    if not isinstance(event, ev.AttemptFailed):
        return incident.attempts
    return next((n for n, failure in enumerate(incident.failures, 1) if failure is event.failure), incident.attempts)


def _put(mark: str, subject: str, rest: str) -> None:
    from rich.console import Console
    from rich.text import Text

    sign, style = MARKS[mark]
    line = Text.assemble((f"{sign} ", style), (f"{subject:<12} ", "bold"), rest)
    Console(stderr=True, highlight=False).print(line, soft_wrap=True)


def _json_line(event: ev.Event, _: Incident) -> None:
    import json

    from rung.core.domain.event_codec import to_json

    sys.stdout.write(json.dumps(to_json(event)) + "\n")
    sys.stdout.flush()


def asker() -> Any:
    """Asks on the terminal; end of input means nobody answers."""

    def ask(question: ev.Ask, _: Incident) -> str | None:
        for number, option in enumerate(question.options, 1):
            sys.stderr.write(f"  {number}. {option.label}\n")
        while True:
            sys.stderr.write("? ")
            sys.stderr.flush()
            answer = sys.stdin.readline()
            if not answer:
                return None
            if answer.strip().isdigit() and 1 <= int(answer) <= len(question.options):
                return question.options[int(answer) - 1].id
            sys.stderr.write(f"Please answer with a number from 1 to {len(question.options)}.\n")

    return ask
