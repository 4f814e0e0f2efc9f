"""The loop guard: the detectors of loops on what passes by.

Each request carries the conversation, so nothing is remembered here: its last steps are folded anew, a few microseconds each. What
the last of them brings is answered as `[gateway] loop_guard` says: `warn` by a header, `nudge` also by a message to the model at
three and five repetitions, `stop` also by a failure at eight, which the project's ladder surfaces.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.detectors.finding import LoopStage
from rung.detectors.loop_messages import loop_message
from rung.detectors.loops.text_repetition import RepetitionDetector
from rung.detectors.session_monitor import SessionMonitor
from rung.detectors.step import Step
from rung.gateway.conversation_steps import steps
from rung.gateway.detector_port import DetectorResult

if TYPE_CHECKING:
    from rung.detectors.finding import Finding
    from rung.detectors.loop_settings import LoopSettings
    from rung.gateway.detector_port import RequestView, ResponseView

WARN, STOP = "warn", "stop"
_LONG: Final = 600  # characters: a shorter answer cannot chant
_WARNING: Final = 300


class LoopGuard:
    """A detector of loops, by one mode and one set of thresholds."""

    def __init__(self, mode: str, watching: LoopSettings) -> None:
        self._mode = mode
        self._watching = watching

    def asked(self, passing: RequestView) -> DetectorResult | None:
        """Is the last step of this conversation one too many?"""
        found_steps, new = steps(passing.wire, passing.body)
        done = [Step(*step) for step in found_steps]
        if len(done) < self._watching.replan:
            return None
        watch = SessionMonitor(self._watching)
        for step in done[: -new - 1]:
            watch.record(step)
        for step in done[-new - 1 : -new]:
            watch.check(step)  # as it was looked at before: what was told then is no news
        for step in done[-new:-1]:
            watch.record(step)
        found = watch.check(done[-1])
        return None if found is None else self._notice(found)

    def answered(self, passing: RequestView, answer: ResponseView) -> DetectorResult | None:  # noqa: ARG002  # the seam's signature
        """Does the answer say the same over and over?"""
        if len(answer.text) < _LONG or "chanting" in self._watching.ignore_rules or self._watching.off:
            return None
        found = RepetitionDetector().stream(answer.text)
        return None if found is None else DetectorResult(warning=_line(found))

    def _notice(self, found: Finding) -> DetectorResult:
        warning = _line(found)
        if self._mode == STOP and found.stage is LoopStage.FORCE_DONE:
            return DetectorResult(evidence=found.evidence, warning=warning)
        tell = self._mode != WARN and found.is_new_stage
        return DetectorResult(warning=warning, nudge=loop_message(str(found.stage), found) if tell else "")


def _line(found: Finding) -> str:
    """A finding as a header has it."""
    text = " ".join(f"{found.rule}: {found.text}".split())
    return text.encode("ascii", "replace").decode()[:_WARNING]
