"""Journal of the recoveries that were given none: the one that the environment variable `RUNG_JOURNAL` names, if it is set.

It is opened once, by the first recovery or the first failure of a guarded call. One that cannot be opened is logged as a
warning, and the recoveries are not recorded.
"""

from __future__ import annotations

import os
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from rung.engine.journal_opener import open_journal

if TYPE_CHECKING:
    from rung.engine.ports.journal import EventLog

JOURNAL_VARIABLE: Final = "RUNG_JOURNAL"
_lock: Final = Lock()
_opened: Final[dict[str, EventLog | None]] = {}  # by location; None: it could not be opened


def has_default_journal() -> bool:
    """Whether the environment names a journal, which may not be open yet."""
    return bool(os.environ.get(JOURNAL_VARIABLE))


def default_journal() -> EventLog | None:
    """Return the journal that the environment names; None without one, or if it cannot be opened."""
    location = os.environ.get(JOURNAL_VARIABLE)
    if not location:
        return None
    with _lock:
        if location not in _opened:
            _opened[location] = _open(location)
        return _opened[location]


def with_default_journal(ports: Any) -> Any:
    """Return the ports of a recovery with the default journal, unless they name one. `journal=None` names none."""
    if "journal" in ports or not has_default_journal():
        return ports
    journal = default_journal()
    return ports if journal is None else {**ports, "journal": journal}


def _open(location: str) -> EventLog | None:
    try:
        return open_journal(location)
    except Exception as error:  # the work goes on without a journal
        from rung.core.classify.evidence import describe_error
        from rung.engine.loop.recovery_log import LOGGER

        text = "%s: the journal cannot be opened, so recoveries are not recorded: %s"
        LOGGER.warning(text, JOURNAL_VARIABLE, describe_error(error))
        return None
