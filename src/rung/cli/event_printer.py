"""Print a recovery's progress, one line per event, and ask questions on the terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain import events as ev
from rung.core.domain.skipped_rungs import describe_skips
from rung.core.recovery.written_answer import WORDS_OPTION, written_answer
from rung.core.text.event_text import describe_event
from rung.core.text.printable import printable
from rung.engine.local_zone import local_zone

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
        return _json_lines(policy)
    print_line = show or _print_line
    decided: ev.Decision | None = None  # the decision before this event: the incident is ahead of it

    def on_event(event: ev.Event, incident: Incident) -> None:
        nonlocal decided
        line = describe(event, incident, policy)
        if line is not None:
            mark, subject, text = line
            print_line(mark, "probe" if _is_probe(event, decided) else subject, text)
        if isinstance(event, ev.Decided):
            decided = event.decision

    return on_event


def _is_probe(event: ev.Event, decided: ev.Decision | None) -> bool:
    """Whether the event ends an attempt after a wait, which uses nothing of the budget of attempts."""
    is_attempt = isinstance(event, ev.AttemptSucceeded) or (isinstance(event, ev.AttemptFailed) and event.made)
    return is_attempt and isinstance(decided, ev.Repeat) and decided.until is not None


def describe(event: ev.Event, incident: Incident, policy: Policy) -> tuple[str, str, str] | None:
    """Return the mark, subject and text of an event; None for events that are not printed."""
    if isinstance(event, _NOT_PRINTED) or (isinstance(event, ev.Decided) and isinstance(event.decision, ev.Finish)):
        return None
    ladder = policy.ladder
    names = [rung.name for rung in ladder.rungs]
    line = describe_event(event, names, incident.attempts, local_zone())  # a listener gets one attempt at a time
    text = f"{incident.status}" if isinstance(event, ev.AttemptSucceeded) else line.text
    if isinstance(event, ev.Decided) and isinstance(event.decision, ev.Change | ev.HandOver):
        text = f"level {ladder.level(event.decision.rung)}: {text}"
    if isinstance(event, ev.Decided) and isinstance(event.decision, ev.Repeat) and event.decision.until is None:
        text = f"{text}, {_next_attempt(event.decision, incident, policy)}"
    if isinstance(event, ev.Decided):
        skips = describe_skips(event.decision.skipped, names)
        text = f"{text} ({printable(skips)})" if skips else text
    return line.mark, line.subject, f"{text} ({line.time})" if line.time else text


def _next_attempt(retry: ev.Repeat, incident: Incident, policy: Policy) -> str:
    """Return the number of the attempt that a retry leads to, and of the last one before the ladder climbs."""
    following = incident.attempts + 1
    last = following + max(0, policy.ladder.rungs[retry.rung].tries - incident.retries.get(retry.rung, 0))
    cap = policy.budget.attempts
    return f"attempt {following} of {last if cap is None else min(last, cap + incident.probes)}"


_NOT_PRINTED: Final = (
    ev.Opened,
    ev.Changed,
    ev.Hinted,
    ev.Learned,
    ev.StepCompleted,
    ev.AgentSessionOpened,
    ev.CheckpointTaken,
)


def _print_line(mark: str, subject: str, rest: str) -> None:
    from rich.text import Text

    from rung.cli.terminal import console

    sign, style = MARKS[mark]
    line = Text.assemble((f"{sign} ", style), (f"{subject:<12} ", "bold"), rest)
    console(stderr=True, max_width=None).print(line, soft_wrap=True)


def _json_lines(policy: Policy) -> Callable[[ev.Event, Incident], None]:
    """Return a listener that prints each event, and the level record that it leads to, as JSON lines."""
    from rung.core.domain.event_codec import to_json
    from rung.core.domain.level_record import LevelRecorder

    recorder = LevelRecorder(policy.ladder)

    def on_event(event: ev.Event, incident: Incident) -> None:
        print_json_line(to_json(event))
        record = recorder.add(event, incident)
        if record is not None:
            print_json_line({"name": "level", **record})

    return on_event


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
