"""Extension port for detectors, which inspect requests and responses and can report a failure.

A detector is any object with `on_request` and `on_response`. `on_request` sees each model request before it is sent.
`on_response` sees each response, streamed or not, before the client receives its end. Both return None or a
`DetectorResult`: `warning` is sent to the client in the header x-rung-warning, `nudge` is added to the request as a
user turn, and `evidence` is handled like any other failure, by the ladder of the project's policy (the `call` ladder
surfaces a loop: nothing more is sent). Detectors run on the event loop and must not block. A detector that raises is
logged and ignored. Pass detectors as `RunningGateway(settings, journal, detectors=[…])`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rung.core.domain.failures import Evidence
    from rung.core.policy.policy import Policy


class RequestView(NamedTuple):
    """A request as detectors see it. The body must not be modified."""

    session: str  # id from the request, else a fingerprint of the conversation
    project: str
    wire: str  # messages, chat, responses, gemini
    model: str
    body: dict[str, Any]
    policy: Policy


class ResponseView(NamedTuple):
    """A response as detectors see it: its text, and its tool calls as names with arguments."""

    text: str
    calls: Sequence[tuple[str, object]]


class DetectorResult(NamedTuple):
    """Result of a detector: any combination of a failure, a warning and a nudge."""

    evidence: Evidence | None = None
    warning: str = ""
    nudge: str = ""  # only used by `on_request`


class GatewayDetector(Protocol):
    """Inspects requests and responses of the gateway."""

    def on_request(self, request: RequestView) -> DetectorResult | None:
        """Inspect a request before it is sent."""
        ...

    def on_response(self, request: RequestView, response: ResponseView) -> DetectorResult | None:
        """Inspect a response before the client receives its end."""
        ...


def run_detectors(
    detectors: Sequence[GatewayDetector],
    request: RequestView,
    response: ResponseView | None,
    log: Callable[[str], object],
) -> DetectorResult | None:
    """Run all detectors and merge their results; log and ignore a detector that raises."""
    results = []
    for detector in detectors:
        try:
            result = detector.on_request(request) if response is None else detector.on_response(request, response)
        except Exception as error:  # noqa: BLE001  # extensions fail open
            log(f"rung gateway: detector failed and was ignored: {type(error).__name__}: {error}")
            continue
        if result is not None:
            results.append(result)
    if len(results) <= 1:
        return results[0] if results else None
    return DetectorResult(
        next((result.evidence for result in results if result.evidence is not None), None),
        "; ".join(result.warning for result in results if result.warning),
        "\n\n".join(result.nudge for result in results if result.nudge),
    )
