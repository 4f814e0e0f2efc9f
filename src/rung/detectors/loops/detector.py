"""Detect loops: repeated calls with the same outcomes.

A fold over an agent's steps: `LoopDetector.check(step)` reports at once whether the agent is looping. It compares calls
and outcomes, never the agent's own reasoning. The state is bounded for any length of session and serialises to JSON.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.errors import ConfigError, is_whole
from rung.core.domain.failures import Kind
from rung.detectors.finding import Finding, LoopStage
from rung.detectors.loop_settings import LoopSettings
from rung.detectors.loops import normalize
from rung.detectors.loops.descriptions import describe
from rung.detectors.loops.normalize import bounded_arguments
from rung.detectors.loops.observed_step import LOOKS_FAILED, ObservedStep, from_json, observe, to_json
from rung.detectors.loops.prefilter import ArgumentsDigest, arguments_checksum, outcome_checksum
from rung.detectors.loops.rules import RULES, WEAK_RULES
from rung.detectors.loops.side_effects import Effect, effect_of
from rung.detectors.loops.wasted_calls import looks_empty

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.detectors.loops.observed_step import RawStep
    from rung.detectors.loops.rules import LoopMatch, LoopRule
    from rung.detectors.step import Step

VERSION: Final = 1
_MAX_TOOLS: Final = 256
_MAX_STREAKS: Final = 32
_STAGES: Final = (None, LoopStage.REPLAN, LoopStage.EXPLORE, LoopStage.FORCE_DONE)


class LoopDetector:
    """Detects loops in the calls of one session.

    Most steps differ from all previous ones; for those only a cheap checksum of the outcome is computed. A step is
    analysed in full when the window contains as many similar steps as a rule needs.
    """

    __slots__ = (
        "_args",
        "_consecutive",
        "_counts",
        "_ignored",
        "_max_steps",
        "_reported_stages",
        "_steps",
        "_threshold",
        "_tool",
        "count",
        "settings",
    )  # fmt: skip

    def __init__(self, settings: LoopSettings | None = None) -> None:
        self.settings = settings or LoopSettings()
        self.count = 0
        self._threshold = self.settings.replan
        self._max_steps = 2 * self.settings.window
        self._steps: list[tuple[int, RawStep | ObservedStep]] = []  # with the checksum of its outcome
        self._counts: dict[int | str, int] = {}  # occurrences of each outcome checksum, and of trouble per tool
        self._tool, self._consecutive = "", 0  # the last call, and how often it was made consecutively
        self._args: Any = None
        self._ignored: dict[str, bool] = {}
        self._reported_stages: dict[str, int] = {}  # by streak: the last reported stage

    def check(self, step: Step) -> Finding | None:
        """Record a step; return a finding if it completes a loop."""
        checksum = self.record(step)
        if checksum is None:
            return None
        if self._has_enough_similar(checksum):
            return self._match_rules(RULES)
        return self._match_rules(WEAK_RULES) if self._counts.get(step.tool, 0) >= self.settings.wasted_calls else None

    def record(self, step: Step) -> int | None:
        """Record a step without matching rules; return its outcome checksum if enough similar steps may exist."""
        tool, args, result, error, _, _ = step
        index = self.count
        self.count = index + 1
        ignored = self._ignored.get(tool)
        if (
            ignored
            or (ignored is None and self._is_ignored(tool))
            or (self.settings.loop_keys and self._never_loops(tool, args))
        ):
            return None
        result_text = result if type(result) is str and len(result) <= normalize.LIMIT else normalize.clipped(result)
        if error and type(error) is str:
            result_text = normalize.clipped(f"{normalize.clipped(error)}\n{result_text}" if result_text else error)
        if type(args) is not str or len(args) > normalize.LIMIT:
            args = bounded_arguments(args)
        checksum = outcome_checksum(result_text, args)
        counts = self._counts
        times = counts[checksum] = counts.get(checksum, 0) + 1
        if error or _is_troubled(result_text):
            troubled = counts[tool] = counts.get(tool, 0) + 1
            if error or troubled >= self.settings.wasted_calls:
                times = max(times, troubled)
        self._consecutive = self._consecutive + 1 if tool == self._tool and args == self._args else 1
        self._tool, self._args = tool, args
        steps = self._steps
        steps.append((checksum, (index, tool, args, result_text, error)))
        if len(steps) >= self._max_steps:
            self._trim_window()
        return None if times < self._threshold > self._consecutive else checksum

    def reset_on_user(self) -> None:
        """Forget the history: the user sent a message, and repeating a call may now be right."""
        self._steps.clear()
        self._counts.clear()
        self._reported_stages.clear()
        self._tool, self._args, self._consecutive = "", None, 0

    def _is_ignored(self, tool: str) -> bool:
        settings = self.settings
        ignored = settings.off or tool in settings.ignore_tools or effect_of(tool, None) is Effect.NONE
        if len(self._ignored) >= _MAX_TOOLS:
            self._ignored.clear()
        self._ignored[tool] = ignored
        return ignored

    def _never_loops(self, tool: str, args: Any) -> bool:
        key = self.settings.loop_keys.get(tool)
        return key is not None and key(normalize.parsed_arguments(args)) is None

    def _trim_window(self) -> None:
        """Drop the steps before the window, and recount the rest."""
        del self._steps[: -self.settings.window]
        counts: dict[int | str, int] = {}
        for checksum, step in self._steps:
            counts[checksum] = counts.get(checksum, 0) + 1
            if isinstance(step, ObservedStep):
                tool, troubled = step.tool, bool(step.trouble)
            else:
                _, tool, _, result, error = step
                troubled = bool(error) or _is_troubled(result)
            if troubled:
                counts[tool] = counts.get(tool, 0) + 1
        self._counts = counts

    def _observed(self, at: int) -> ObservedStep:
        checksum, step = self._steps[at]
        if not isinstance(step, ObservedStep):
            step = observe(step, self.settings)
            self._steps[at] = (checksum, step)
        return step

    def _has_enough_similar(self, checksum: int) -> bool:
        """Return whether the window contains as many steps like the last one as a rule needs."""
        enough = self.settings.replan
        if self._consecutive >= enough:
            return True
        steps = self._steps
        last = self._observed(len(steps) - 1)
        alike = errors = 1
        for at in range(len(steps) - 2, max(-1, len(steps) - 1 - self.settings.window), -1):
            checksum_at, step = steps[at]
            if checksum_at == checksum:
                alike += self._observed(at).outcome == last.outcome
            if last.reported_error and last.fault and _failed_in(step, last.tool):
                errors += self._observed(at).fault == last.fault
            if max(alike, errors) >= enough:
                return True
        self._reported_stages.pop(normalize.digest(last.tool + last.outcome), None)
        return False

    def _window(self) -> list[ObservedStep]:
        """Return the steps of the window in analysed form."""
        end = len(self._steps)
        return [self._observed(at) for at in range(max(0, end - self.settings.window), end)]

    def _match_rules(self, rules: Mapping[str, LoopRule]) -> Finding | None:
        window = self._window()
        last = window[-1]
        best: LoopMatch | None = None
        for name, rule in rules.items():
            if name in self.settings.ignore_rules:
                continue
            match = rule(window, self.settings)
            if match is not None and (best is None or match.repeats > best.repeats):
                best = match
        streak = normalize.digest(last.tool + last.outcome)
        stage = None if best is None else self.settings.stage(best.repeats)
        if best is None or stage is None:
            self._reported_stages.pop(streak, None)
            return None
        return self._build_finding(best, stage, streak, last)

    def _build_finding(self, match: LoopMatch, stage: LoopStage, streak: str, last: ObservedStep) -> Finding:
        level = _STAGES.index(stage)
        is_new = level > self._reported_stages.get(streak, 0)
        if is_new:
            self._reported_stages.pop(streak, None)
            while len(self._reported_stages) >= _MAX_STREAKS:
                del self._reported_stages[next(iter(self._reported_stages))]
            self._reported_stages[streak] = level
        return Finding(
            rule=match.rule,
            kind=Kind.LOOP_DETECTED,
            text=describe(match, last),
            count=match.count,
            repeats=match.repeats,
            at=last.index,
            tool=last.tool,
            stage=stage,
            is_new_stage=is_new,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the state as JSON, without any text of the session."""
        window = self._window()
        # Only the last outcomes are compared by their words after a restart.
        start = len(window) - max(2, min(self._consecutive, self.settings.force_done))
        return {
            "v": VERSION,
            "count": self.count,
            "consecutive": self._consecutive,
            "tool": self._tool,
            "args_checksum": arguments_checksum(self._args),
            "reported_stages": dict(self._reported_stages),
            "steps": [
                {"checksum": checksum, **to_json(step, words=at >= start)}
                for at, ((checksum, _), step) in enumerate(zip(self._steps[-len(window) :], window, strict=True))
            ]
            if window
            else [],
        }

    @classmethod
    def from_json(cls, table: Mapping[str, Any], settings: LoopSettings | None = None) -> LoopDetector:
        """Restore a detector from its state."""
        if table.get("v") != VERSION:
            raise ConfigError("loops.v", table.get("v"), str(VERSION))
        detector = cls(settings)
        for name in ("count", "consecutive"):
            if not is_whole(table.get(name)):
                raise ConfigError(f"loops.{name}", table.get(name), "a whole number, 0 or more")
        detector.count, detector._consecutive = table["count"], table["consecutive"]
        detector._reported_stages = {str(streak): int(level) for streak, level in table["reported_stages"].items()}
        detector._steps = [(int(step["checksum"]), from_json(step)) for step in table["steps"]]
        detector._trim_window()
        detector._tool, detector._args = str(table["tool"]), ArgumentsDigest(int(table["args_checksum"]))
        return detector


def _is_troubled(result: str) -> bool:
    """Return whether an outcome that is not reported as an error shows one, or says that there is nothing."""
    if result.startswith(_ERROR_STARTS):  # first: the pattern is slow
        return LOOKS_FAILED(result[:200]) is not None
    return looks_empty(result)


_ERROR_STARTS: Final = (
    "<returncode>",
    "<error>",
    "Error",
    "ERROR",
    "error",
    "Traceback",
    "Failed",
    "Invalid",
    "fatal:",
)


def _failed_in(step: RawStep | ObservedStep, tool: str) -> bool:
    """Return whether this step is a failure that the given tool reported."""
    if isinstance(step, ObservedStep):
        return step.reported_error and step.tool == tool
    return bool(step[4]) and step[1] == tool
