"""Remedies: what was tried directly after a failure, what worked, and how often."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from rung.core.domain.failures import Failure
    from rung.store.backends.port import Readable

MIN_SUCCESSES: Final = 2  # of a rung before it is suggested: one may be chance


class Remedy(NamedTuple):
    """Rung, prompt and model that were tried directly after a failure.

    It worked when the next attempt succeeded and the incident recovered. A forced last turn that no check accepted does
    not count, nor does a rung after which a different failure occurred.
    """

    rung: str
    prompt: str  # empty when there was none
    model: str
    tried: int
    worked: int
    tried_at: float  # last time, UTC seconds
    worked_at: float | None  # last time; None when it never worked


_REMEDIES: Final = """
    SELECT rung, prompt, model, tried, worked, tried_at, worked_at FROM remedy WHERE project = ? AND fingerprint = ?"""


def what_worked(journal: Readable, project: str, fingerprint: str) -> list[Remedy]:
    """Return the remedies tried for a failure in a project: most successes first, then fewest tries."""
    remedies = [
        Remedy(*row)._replace(worked_at=row[6] or None) for row in journal.read(_REMEDIES, (project, fingerprint))
    ]
    return sorted(remedies, key=lambda one: (-one.worked, one.tried, one.rung, one.prompt, one.model))


def suggest_rung(journal: Readable, project: str, failure: Failure) -> str | None:
    """Return the rung that worked last, if it worked at least twice and in most of its tries."""
    tried = what_worked(journal, project, failure.fingerprint)
    last = max((one for one in tried if one.worked_at is not None), key=lambda one: one.worked_at or 0.0, default=None)
    if last is None:
        return None
    on_rung = [one for one in tried if one.rung == last.rung]
    worked, all_tries = sum(one.worked for one in on_rung), sum(one.tried for one in on_rung)
    return last.rung if worked >= MIN_SUCCESSES and 2 * worked > all_tries else None
