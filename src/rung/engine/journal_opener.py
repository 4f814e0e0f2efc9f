"""Port to the function that opens a journal by its location. Journals are in a layer above, so the root package registers it.

`import rung` loads this module, so it imports nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from rung.engine.ports.journal import EventLog

    JournalOpener: TypeAlias = Callable[[str], EventLog]

_OPENERS: list[JournalOpener] = []  # the last one is used


def register_journal_opener(opener: JournalOpener) -> None:
    """Open journals with this function from now on. It is called with a path or URL, and may raise."""
    _OPENERS.append(opener)


def open_journal(location: str) -> EventLog:
    """Open the journal at a path or URL."""
    return _OPENERS[-1](location)
