"""Print a recovery's progress, one line per event, and ask questions on the terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from rung.core.recovery.written_answer import WORDS_OPTION, written_answer
from rung.core.text.progress_line import MARKS, LadderInfo, ProgressLines
from rung.engine.local_zone import local_zone

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.core.domain import events as ev
    from rung.core.domain.incident import Incident
    from rung.core.policy.policy import Policy


def listener(policy: Policy, *, as_json: bool, show: Callable[[str, str, str], object] | None = None) -> Any:
    """Return a listener that prints progress: JSON lines on stdout, or text on stderr."""
    return JsonLines(policy) if as_json else ProgressPrinter(policy, show or _print_line)


class ProgressPrinter:
    """Listener that shows a line of text for each event."""

    replaces_log: Final = True

    def __init__(self, policy: Policy, show: Callable[[str, str, str], object]) -> None:
        self._ladder = ladder_info(policy)
        self._show = show
        self._lines = ProgressLines()

    def __call__(self, event: ev.Event, incident: Incident, /) -> None:
        """Show the line of an event, if it has one."""
        line = self._lines.add(event, incident, self._ladder, local_zone())
        if line is not None:
            self._show(*line)


def ladder_info(policy: Policy) -> LadderInfo:
    """Return what lines say about the policy's ladder."""
    rungs = policy.ladder.rungs
    return LadderInfo(
        [rung.name for rung in rungs], [rung.tries for rung in rungs], policy.ladder.level, policy.budget.attempts
    )


def _print_line(mark: str, subject: str, rest: str) -> None:
    from rich.text import Text

    from rung.cli.terminal import console

    sign, style = MARKS[mark]
    line = Text.assemble((f"{sign} ", style), (f"{subject:<12} ", "bold"), rest)
    console(stderr=True, max_width=None).print(line, soft_wrap=True)


class JsonLines:
    """Listener that prints each event, and the level record that it leads to, as JSON lines."""

    replaces_log: Final = True

    def __init__(self, policy: Policy) -> None:
        from rung.core.domain.level_record import LevelRecorder

        self._recorder = LevelRecorder(policy.ladder)

    def __call__(self, event: ev.Event, incident: Incident, /) -> None:
        """Print an event."""
        from rung.core.domain.event_codec import to_json

        print_json_line(to_json(event))
        record = self._recorder.add(event, incident)
        if record is not None:
            print_json_line({"name": "level", **record})


def print_json_line(value: object) -> None:
    """Print a line of progress on standard output. Raises OutputClosed, which stops the run, if nobody reads it."""
    from rung.adapters.system.command_output import OutputClosed
    from rung.cli.output import json_text

    try:
        sys.stdout.write(json_text(value) + "\n")
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
