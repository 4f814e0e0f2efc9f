"""A recovery as people watch it: a line for each thing that happens, and questions on the terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from rung.core import events as ev
from rung.core.failures import first_line
from rung.core.ladder import DOES

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.core.incident import Incident
    from rung.core.policy import Policy

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
    """What to say about an event: a mark, a subject and the rest; None for nothing."""
    match event:
        case ev.AttemptFailed(failure=failure, seconds=seconds):
            first = first_line(failure.message, 90)
            return "bad", f"attempt {_number(event, incident)}", f"{failure.kind}: {first} ({seconds:.1f} s)"
        case ev.AttemptSucceeded(seconds=seconds):
            return "good", f"attempt {incident.attempts}", f"{incident.status} ({seconds:.1f} s)"
        case ev.Decided(decision=decision):
            return _decided(decision, policy)
        case ev.Skipped(reason=reason):
            return "note", "skipped", reason
        case ev.Answered(option=option):
            return "note", "answer", option
        case ev.Ordered(action=action, by=by):
            return "note", "ordered", f"{action}, by {by or 'a person'}"
        case ev.RolledBack(reference=reference):
            return "note", "rolled back", reference
        case ev.ModelRestored(model=model, agent=agent):
            return "note", "back to", model or agent or "the first command"
        case ev.Crashed(what=what, error=error):
            return "bad", what, f"broke and was ignored: {error}"
        case ev.Cancelled(reason=reason):
            return "end", "stopped", reason
        case ev.Closed(status=status, reason=reason):
            return "end", status.value, reason
    return None


def _number(event: ev.AttemptFailed, incident: Incident) -> int:
    """Which attempt an event was about; by the time it is told the incident may have moved on."""
    return next((n for n, failure in enumerate(incident.failures, 1) if failure is event.failure), incident.attempts)


def _decided(decision: ev.Decision, policy: Policy) -> tuple[str, str, str] | None:
    ladder = policy.ladder
    level = f"level {ladder.level(decision.rung)}"
    match decision:
        case ev.Repeat(wait=wait):
            return "next", ladder.rungs[decision.rung].name, f"again in {wait:.1f} s" if wait else "again now"
        case ev.Change(action=action):
            return "climb", action.value, f"{level}: {DOES[action]}"
        case ev.HandOver(model=model, agent=agent, estimate=estimate):
            cost = "" if estimate is None else f", about ${estimate:.2f}"
            return "climb", ladder.rungs[decision.rung].name, f"{level}: hand over to {agent or model}{cost}"
        case ev.Ask(question=question):
            return "climb", "ask", question
        case ev.Finish():
            return None


def _put(mark: str, subject: str, rest: str) -> None:
    from rich.console import Console
    from rich.text import Text

    sign, style = MARKS[mark]
    line = Text.assemble((f"{sign} ", style), (f"{subject:<12} ", "bold"), rest)
    Console(stderr=True, highlight=False).print(line, soft_wrap=True)


def _json_line(event: ev.Event, _: Incident) -> None:
    import json

    from rung.core.codec import to_json

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
