"""The seam for detectors: what passes by is shown to them, and what they find is a failure like any other.

A detector is any object with `asked` and `answered`. `asked` sees each request of a model before it is sent,
`answered` what came back, streamed or not, before the client has the end of it. Each answers None, or a `Notice`:
a `warning` goes to the client in the header x-rung-warning, a `nudge` to the model as a further turn of the user's
at the end of the request, and `evidence` up the ladder of the project's policy, which decides as about every other
failure (on the `call` ladder a loop surfaces: nothing more is sent). They run on the event loop and must not wait;
one that breaks is told of and passed over. `Served(settings, journal, detectors=[…])` takes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rung.core.domain.failures import Evidence
    from rung.core.policy.policy import Policy


class RequestView(NamedTuple):
    """A request as detectors see it: whose it is, over which wire, and its body, which is not to be changed."""

    session: str  # its own name for it, else a digest of how the conversation began
    project: str
    wire: str  # messages, chat, responses
    model: str
    body: dict[str, Any]
    policy: Policy


class ResponseView(NamedTuple):
    """What a model answered: its words, and the tools it calls with what."""

    text: str
    calls: Sequence[tuple[str, object]]


class DetectorResult(NamedTuple):
    """What a detector has found, and what is to come of it. More than one of them may be."""

    evidence: Evidence | None = None
    warning: str = ""
    nudge: str = ""  # only of a request: an answer cannot be told anything any more


class GatewayDetector(Protocol):
    """Is shown what passes by."""

    def asked(self, passing: RequestView) -> DetectorResult | None:
        """Look at a request before it is sent."""
        ...

    def answered(self, passing: RequestView, answer: ResponseView) -> DetectorResult | None:
        """Look at an answer before the client has all of it."""
        ...


def look(
    detectors: Sequence[GatewayDetector],
    passing: RequestView,
    answer: ResponseView | None,
    tell: Callable[[str], object],
) -> DetectorResult | None:
    """What all of them find, as one notice; one that breaks is told of and passed over."""
    found = []
    for detector in detectors:
        try:
            notice = detector.asked(passing) if answer is None else detector.answered(passing, answer)
        except Exception as error:  # noqa: BLE001  # extensions fail open
            tell(f"rung gateway: a detector broke and was ignored: {type(error).__name__}: {error}")
            continue
        if notice is not None:
            found.append(notice)
    if len(found) <= 1:
        return found[0] if found else None
    return DetectorResult(
        next((notice.evidence for notice in found if notice.evidence is not None), None),
        "; ".join(notice.warning for notice in found if notice.warning),
        "\n\n".join(notice.nudge for notice in found if notice.nudge),
    )
