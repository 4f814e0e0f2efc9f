"""`print_events`: a listener that prints each recovery while it runs, one line per event."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

from rung.core.text.progress_line import MARKS, LadderInfo, ProgressLines
from rung.engine.local_zone import local_zone

if TYPE_CHECKING:
    from typing import TextIO

    from rung.core.domain import events as ev
    from rung.core.domain.incident import Incident

_STYLES: Final = {"red": "31", "green": "32", "yellow": "33", "cyan": "36", "dim": "2", "magenta": "35"}  # ANSI codes
_SUBJECT_WIDTH: Final = 12


class EventPrinter:
    """Listener that prints. A recovery with it is not logged, so that nothing is shown twice."""

    replaces_log: Final = True

    def __init__(self, file: TextIO | None, *, color: bool | None) -> None:
        self._file = file
        self._color = color
        self._lines: dict[str, ProgressLines] = {}  # by incident: recoveries may run at the same time

    def __call__(self, event: ev.Event, incident: Incident, /) -> None:
        """Print the line of an event, if it has one."""
        lines = self._lines.setdefault(incident.id, ProgressLines())
        line = lines.add(event, incident, LadderInfo.of_incident(incident), local_zone())
        if incident.status is not None:
            self._lines.pop(incident.id, None)
        if line is None:
            return
        file = self._file if self._file is not None else sys.stderr  # looked up now: it may have been replaced
        sign, style = MARKS[line.mark]
        subject = f"{line.subject:<{_SUBJECT_WIDTH}}"
        if self._is_colored(file):
            sign, subject = f"\x1b[{_STYLES[style]}m{sign}\x1b[0m", f"\x1b[1m{subject}\x1b[0m"
        file.write(f"{sign} {subject} {line.text}\n")
        file.flush()

    def _is_colored(self, file: TextIO) -> bool:
        return file.isatty() and "NO_COLOR" not in os.environ if self._color is None else self._color


def print_events(file: TextIO | None = None, *, color: bool | None = None) -> EventPrinter:
    """Return a listener that prints each recovery while it runs, one line per event, as `rung run` does.

    A recovery with this listener is not logged, so that nothing is shown twice.

    Args:
        file: Text file to print to. Default: standard error.
        color: Whether lines are coloured. Default: if the file is a terminal and `NO_COLOR` is not set.

    Returns:
        A listener, for the argument `listeners` of `recover`, `recover_sync`, `guarded` and `gather`.

    Example:
        >>> import rung, sys
        >>> results = iter([TimeoutError("read timed out"), "done"])
        >>> def attempt(request: rung.Request) -> str:
        ...     result = next(results)
        ...     if isinstance(result, Exception):
        ...         raise result
        ...     return result
        >>> outcome = rung.recover_sync(attempt, "go", listeners=[rung.print_events(sys.stdout)])  # doctest: +ELLIPSIS
        ✗ attempt 1    timeout: read timed out (...)
        ↻ retry        again in ..., attempt 2 of 4
        ✓ attempt 2    recovered (...)
    """
    return EventPrinter(file, color=color)
