"""Loop guard: runs the loop detectors on the conversation in each request.

Each request carries the whole conversation, so the guard keeps no state: it replays the last steps, a few microseconds
each. `[gateway] loop_guard` selects the reaction: `warn` sets a header, `nudge` also sends a message to the model at
three and five repetitions, `stop` also raises a failure at eight, which the project's ladder surfaces.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.core.text.quoted_data import on_one_line
from rung.detectors.finding import LoopStage
from rung.detectors.loop_messages import loop_message
from rung.detectors.loops.text_repetition import RepetitionDetector
from rung.detectors.session_monitor import SessionMonitor
from rung.detectors.step import Step
from rung.gateway.conversation_steps import recent_steps
from rung.gateway.detector_port import DetectorResult

if TYPE_CHECKING:
    from rung.detectors.finding import Finding
    from rung.detectors.loop_settings import LoopSettings
    from rung.gateway.detector_port import RequestView, ResponseView

WARN, STOP = "warn", "stop"
_MIN_REPETITION_CHARACTERS: Final = 600  # a shorter response is not checked for repetition
_MAX_WARNING_CHARACTERS: Final = 300


class LoopGuard:
    """Gateway detector for loops, with one mode and one set of thresholds."""

    def __init__(self, mode: str, settings: LoopSettings) -> None:
        self._mode = mode
        self._settings = settings

    def on_request(self, request: RequestView) -> DetectorResult | None:
        """Check whether the last step of the conversation repeats earlier ones."""
        conversation, new_count = recent_steps(request.wire, request.body)
        steps = [Step(*step) for step in conversation]
        if len(steps) < self._settings.replan:
            return None
        monitor = SessionMonitor(self._settings)
        for step in steps[: -new_count - 1]:
            monitor.record(step)
        for step in steps[-new_count - 1 : -new_count]:
            monitor.check(step)  # checked again so that a stage reported then is not new now
        for step in steps[-new_count:-1]:
            monitor.record(step)
        finding = monitor.check(steps[-1])
        return None if finding is None else self._result_for(finding)

    def on_response(self, request: RequestView, response: ResponseView) -> DetectorResult | None:  # noqa: ARG002  # the port's signature
        """Check whether the response repeats the same text."""
        if (
            len(response.text) < _MIN_REPETITION_CHARACTERS
            or "chanting" in self._settings.ignore_rules
            or self._settings.off
        ):
            return None
        finding = RepetitionDetector().stream(response.text)
        return None if finding is None else DetectorResult(warning=_header_text(finding))

    def _result_for(self, finding: Finding) -> DetectorResult:
        warning = _header_text(finding)
        if self._mode == STOP and finding.stage is LoopStage.FORCE_DONE:
            return DetectorResult(evidence=finding.evidence, warning=warning)
        has_nudge = self._mode != WARN and finding.is_new_stage
        return DetectorResult(warning=warning, nudge=loop_message(str(finding.stage), finding) if has_nudge else "")


def _header_text(finding: Finding) -> str:
    """Format a finding as a header value."""
    text = on_one_line(f"{finding.rule}: {finding.text}")
    return text.encode("ascii", "replace").decode()[:_MAX_WARNING_CHARACTERS]
