"""Whether a request may be sent again: not if its output or side effects were seen. Pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.core.domain.failures import is_resumable

if TYPE_CHECKING:
    from rung.core.domain.failures import Failure
    from rung.core.domain.incident import Incident

UNSAFE_REPLAY: Final = "a replay is not safe: output or side effects were already seen"


def has_visible_effects(incident: Incident, failure: Failure) -> bool:
    """Whether repeating the request would repeat visible output or side effects."""
    evidence = failure.evidence
    return (evidence.output_started or evidence.side_effects) and not incident.terms.idempotent


def repeats_resumption(incident: Incident, failure: Failure) -> bool:
    """Whether repeating the request resumes a streamed answer where it stands: the last resumption added nothing to it."""
    return incident.resuming and is_resumable(failure) and failure.evidence.progress is False
