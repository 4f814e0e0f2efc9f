"""What the journal remembers of a failure: what was tried right after it, what worked, and how often."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from rung.core.domain.failures import Failure
    from rung.store.backends.port import Readable

LEAST: Final = 2  # successes before a rung is worth a hint: once may have been luck


class Remedy(NamedTuple):
    """One way out that was tried right after a failure: the rung, its prompt and the model it was given to.

    It worked where the very next attempt was good and the incident recovered. A forced last turn is no cure,
    and a rung after which something else failed has not worked either.
    """

    rung: str
    prompt: str  # empty: none
    model: str
    tried: int
    worked: int
    tried_at: float  # the last time, UTC seconds
    worked_at: float | None  # the last time; None: never


_TRIED: Final = """
    SELECT rung, prompt, model, tried, worked, tried_at, worked_at FROM remedy WHERE project = ? AND fingerprint = ?"""


def what_worked(journal: Readable, project: str, fingerprint: str) -> list[Remedy]:
    """What was tried about this failure in this project: what worked most often first, then what was tried least."""
    found = [Remedy(*row)._replace(worked_at=row[6] or None) for row in journal.read(_TRIED, (project, fingerprint))]
    return sorted(found, key=lambda one: (-one.worked, one.tried, one.rung, one.prompt, one.model))


def hint(journal: Readable, project: str, failure: Failure) -> str | None:
    """The rung that worked the last time, if it did so at least twice and more often than not."""
    tried = what_worked(journal, project, failure.fingerprint)
    last = max((one for one in tried if one.worked_at is not None), key=lambda one: one.worked_at or 0.0, default=None)
    if last is None:
        return None
    on_rung = [one for one in tried if one.rung == last.rung]
    worked, all_tries = sum(one.worked for one in on_rung), sum(one.tried for one in on_rung)
    return last.rung if worked >= LEAST and 2 * worked > all_tries else None
