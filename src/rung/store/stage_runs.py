"""Names of the runs of one piece of work, such as the stage of a pipeline: a run that has failed is followed by another one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.core.domain.events import Cancelled
from rung.core.domain.outcome import SUCCESS_STATUSES

if TYPE_CHECKING:
    from rung.store.journal.journal import Journal

NUMBER_MARK: Final = "~"  # between the name of the work and the number of its run, from the second one on


def next_run_id(journal: Journal, name: str) -> str:
    """Return the id of the run that does this work: a passed or interrupted one, or a new one after a failed run."""
    number, run = 1, name
    while _has_failed(journal, run):
        number += 1
        run = f"{name}{NUMBER_MARK}{number}"
    return run


def _has_failed(journal: Journal, run: str) -> bool:
    """Return whether a run ended without success. One that was stopped, or whose process died, is still open.

    An older version closed a run when it was stopped.
    """
    ended = journal.runs.result_of(run)
    if ended is not None:
        return ended.get("status") not in SUCCESS_STATUSES
    return any(isinstance(event, Cancelled) for event in journal.events(run))
