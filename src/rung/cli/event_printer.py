"""Print a recovery's progress, one line per event, and ask questions on the terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain import events as ev
from rung.core.recovery.written_answer import WORDS_OPTION, written_answer
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
    """Return a listener that prints progress: JSON lines on stdout, or text on stderr."""
    if as_json:
        return _json_line
    print_line = show or _print_line

    def on_event(event: ev.Event, incident: Incident) -> None:
        line = describe(event, incident, policy)
        if line is not None:
            print_line(*line)

    return on_event


def describe(event: ev.Event, incident: Incident, policy: Policy) -> tuple[str, str, str] | None:
    """Return the mark, subject and text of an event; None for events that are not printed."""
    if isinstance(event, _NOT_PRINTED) or (isinstance(event, ev.Decided) and isinstance(event.decision, ev.Finish)):
        return None
    ladder = policy.ladder
    line = describe_event(event, [rung.name for rung in ladder.rungs], _attempt_number(event, incident))
    text = f"{incident.status}" if isinstance(event, ev.AttemptSucceeded) else line.text
    if isinstance(event, ev.Decided) and isinstance(event.decision, ev.Change | ev.HandOver):
        text = f"level {ladder.level(event.decision.rung)}: {text}"
    return line.mark, line.subject, f"{text} ({line.time})" if line.time else text


_NOT_PRINTED: Final = (ev.Opened, ev.Changed, ev.Hinted, ev.StepCompleted, ev.CheckpointTaken)


def _attempt_number(event: ev.Event, incident: Incident) -> int:
    """Return the number of the attempt that an event is about; the incident may be ahead of it."""
    if not isinstance(event, ev.AttemptFailed):
        return incident.attempts
    failures = list(enumerate(incident.failures, 1))  # equal failures can be one object: the last one is meant
    return next((n for n, failure in reversed(failures) if failure is event.failure), incident.attempts)


def _print_line(mark: str, subject: str, rest: str) -> None:
    from rich.text import Text

    from rung.cli.terminal import console

    sign, style = MARKS[mark]
    line = Text.assemble((f"{sign} ", style), (f"{subject:<12} ", "bold"), rest)
    console(stderr=True, max_width=None).print(line, soft_wrap=True)


def _json_line(event: ev.Event, _: Incident) -> None:
    from rung.core.domain.event_codec import to_json

    print_json_line(to_json(event))


def print_json_line(value: object) -> None:
    """Print a line of progress on standard output. Raises OutputClosed, which stops the run, if nobody reads it."""
    import json

    from rung.adapters.system.command_output import OutputClosed

    try:
        sys.stdout.write(json.dumps(value) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        raise OutputClosed from None


def terminal_asker() -> Any:
    """Return a function that asks on the terminal; end of input means no answer."""

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
                chosen = question.options[int(answer) - 1].id
                return chosen if chosen != WORDS_OPTION.id else _ask_for_words()
            sys.stderr.write(f"Please answer with a number from 1 to {len(question.options)}.\n")

    return ask


def _ask_for_words() -> str | None:
    """Return the person's text as an answer; None at the end of input."""
    while True:
        sys.stderr.write("Your answer, on one line: ")
        sys.stderr.flush()
        text = sys.stdin.readline()
        if not text:
            return None
        if text.strip():
            return written_answer(text)
