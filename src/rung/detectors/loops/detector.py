"""Loops: the same calls with the same outcomes, noticed as they happen.

A fold over an agent's steps: `watch.see(step)` says at once whether the agent is going in circles. It compares
calls and outcomes, never what an agent says it thinks. What is remembered is bounded whatever the length of the
session, and goes into JSON and back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rung.core.classify.evidence import clip
from rung.core.domain.errors import ConfigError, is_whole
from rung.core.domain.failures import Kind
from rung.detectors.finding import Finding, LoopStage
from rung.detectors.loop_settings import LoopSettings
from rung.detectors.loops import normalize
from rung.detectors.loops.normalize import held
from rung.detectors.loops.observed_step import ObservedStep, from_json, seen, to_json
from rung.detectors.loops.prefilter import ArgumentsDigest, given_number, number_of
from rung.detectors.loops.rules import RULES
from rung.detectors.loops.side_effects import Effect, effect_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.detectors.loops.observed_step import Raw
    from rung.detectors.loops.rules import LoopMatch
    from rung.detectors.step import Step

VERSION: Final = 1
_TOOLS: Final = 256
_TOLD: Final = 32
_QUOTED: Final = 300
_STAGES: Final = (None, LoopStage.REPLAN, LoopStage.EXPLORE, LoopStage.FORCE_DONE)


class LoopDetector:
    """Watches one session's calls.

    Nearly all steps are like none before them: for those an outcome's shape is all that is made. A step is
    looked at closely when as many like it are in the window as a rule needs.
    """

    __slots__ = (
        "_args", "_enough", "_ignored", "_numbers", "_room", "_run", "_steps", "_told", "_tool", "count", "watching",
    )  # fmt: skip

    def __init__(self, watching: LoopSettings | None = None) -> None:
        self.watching = watching or LoopSettings()
        self.count = 0
        self._enough = self.watching.replan
        self._room = 2 * self.watching.window
        self._steps: list[tuple[int, Raw | ObservedStep]] = []  # with the number of its outcome's shape
        self._numbers: dict[int | str, int] = {}  # how often: a shape, and a tool's errors
        self._tool, self._run = "", 0  # the last call, and how often it was made in a row
        self._args: Any = None
        self._ignored: dict[str, bool] = {}
        self._told: dict[str, int] = {}  # by streak: the stage it was told at

    def see(self, step: Step) -> Finding | None:
        """Take in a step; a finding when it is one too many."""
        number = self.take(step)
        return None if number is None or not self._suspicious(number) else self._look()

    def take(self, step: Step) -> int | None:
        """Take in a step, and do not look; the number of its outcome's shape when it is worth a look."""
        tool, args, result, error, _, _ = step
        index = self.count
        self.count = index + 1
        ignored = self._ignored.get(tool)
        if (
            ignored
            or (ignored is None and self._ignores(tool))
            or (self.watching.loop_keys and self._never(tool, args))
        ):
            return None
        said = result if type(result) is str and len(result) <= normalize.LIMIT else normalize.clipped(result)
        if error and type(error) is str:
            said = normalize.clipped(f"{normalize.clipped(error)}\n{said}" if said else error)
        if type(args) is not str or len(args) > normalize.LIMIT:
            args = held(args)
        number = number_of(said, args)
        numbers = self._numbers
        times = numbers[number] = numbers.get(number, 0) + 1
        if error:
            errors = numbers[tool] = numbers.get(tool, 0) + 1
            times = max(times, errors)
        self._run = self._run + 1 if tool == self._tool and args == self._args else 1
        self._tool, self._args = tool, args
        steps = self._steps
        steps.append((number, (index, tool, args, said, error)))
        if len(steps) >= self._room:
            self._forget()
        return None if times < self._enough > self._run else number

    def user_spoke(self) -> None:
        """A person said something: what was a loop may be what is wanted now."""
        self._steps.clear()
        self._numbers.clear()
        self._told.clear()
        self._tool, self._args, self._run = "", None, 0

    def _ignores(self, tool: str) -> bool:
        watching = self.watching
        ignored = watching.off or tool in watching.ignore_tools or effect_of(tool, None) is Effect.NONE
        if len(self._ignored) >= _TOOLS:
            self._ignored.clear()
        self._ignored[tool] = ignored
        return ignored

    def _never(self, tool: str, args: Any) -> bool:
        key = self.watching.loop_keys.get(tool)
        return key is not None and key(normalize.arguments(args)) is None

    def _forget(self) -> None:
        """Keep the window, and count anew what is in it."""
        del self._steps[: -self.watching.window]
        numbers: dict[int | str, int] = {}
        for number, one in self._steps:
            numbers[number] = numbers.get(number, 0) + 1
            tool, flagged = (one.tool, one.flagged) if isinstance(one, ObservedStep) else (one[1], one[4])
            if flagged:
                numbers[tool] = numbers.get(tool, 0) + 1
        self._numbers = numbers

    def _seen(self, at: int) -> ObservedStep:
        number, one = self._steps[at]
        if not isinstance(one, ObservedStep):
            one = seen(one, self.watching)
            self._steps[at] = (number, one)
        return one

    def _suspicious(self, number: int) -> bool:
        """Are there as many like the last step as a rule needs, whatever stands between?"""
        enough = self.watching.replan
        if self._run >= enough:
            return True
        steps = self._steps
        last = self._seen(len(steps) - 1)
        alike = errors = 1
        for at in range(len(steps) - 2, max(-1, len(steps) - 1 - self.watching.window), -1):
            mark, one = steps[at]
            if mark == number:
                alike += self._seen(at).outcome == last.outcome
            if last.flagged and last.fault and _failed_in(one, last.tool):
                errors += self._seen(at).fault == last.fault
            if max(alike, errors) >= enough:
                return True
        self._told.pop(normalize.digest(last.tool + last.outcome), None)
        return False

    def _window(self) -> list[ObservedStep]:
        """The last steps, looked at closely; once is enough for each."""
        end = len(self._steps)
        return [self._seen(at) for at in range(max(0, end - self.watching.window), end)]

    def _look(self) -> Finding | None:
        window = self._window()
        last = window[-1]
        best: LoopMatch | None = None
        for name, rule in RULES.items():
            if name in self.watching.ignore_rules:
                continue
            hit = rule(window, self.watching)
            if hit is not None and (best is None or hit.repeats > best.repeats):
                best = hit
        streak = normalize.digest(last.tool + last.outcome)
        stage = None if best is None else self.watching.stage(best.repeats)
        if best is None or stage is None:
            self._told.pop(streak, None)
            return None
        return self._found(best, stage, streak, last)

    def _found(self, hit: LoopMatch, stage: LoopStage, streak: str, last: ObservedStep) -> Finding:
        level = _STAGES.index(stage)
        news = level > self._told.get(streak, 0)
        if news:
            self._told.pop(streak, None)
            while len(self._told) >= _TOLD:
                del self._told[next(iter(self._told))]
            self._told[streak] = level
        return Finding(
            rule=hit.rule,
            kind=Kind.LOOP_DETECTED,
            text=_words(hit, last),
            count=hit.count,
            repeats=hit.repeats,
            at=last.index,
            tool=last.tool,
            stage=stage,
            is_new_stage=news,
        )

    def to_json(self) -> dict[str, Any]:
        """All that is remembered, without a word of what was said."""
        window = self._window()
        # Outcomes of a call made in a row may be compared word by word after a restart.
        start = len(window) - max(2, min(self._run, self.watching.force_done))
        return {
            "v": VERSION,
            "count": self.count,
            "run": self._run,
            "tool": self._tool,
            "given": given_number(self._args),
            "told": dict(self._told),
            "steps": [
                {"number": number, **to_json(one, words=at >= start)}
                for at, ((number, _), one) in enumerate(zip(self._steps[-len(window) :], window, strict=True))
            ]
            if window
            else [],
        }

    @classmethod
    def from_json(cls, table: Mapping[str, Any], watching: LoopSettings | None = None) -> LoopDetector:
        """The watch as it was."""
        if table.get("v") != VERSION:
            raise ConfigError("loops.v", table.get("v"), str(VERSION))
        watch = cls(watching)
        for name in ("count", "run"):
            if not is_whole(table.get(name)):
                raise ConfigError(f"loops.{name}", table.get(name), "a whole number, 0 or more")
        watch.count, watch._run = table["count"], table["run"]
        watch._told = {str(streak): int(level) for streak, level in table["told"].items()}
        watch._steps = [(int(one["number"]), from_json(one)) for one in table["steps"]]
        watch._forget()
        watch._tool, watch._args = str(table["tool"]), ArgumentsDigest(int(table["given"]))
        return watch


def _failed_in(one: Raw | ObservedStep, tool: str) -> bool:
    """Did this step fail, by its tool's own word, in that tool?"""
    if isinstance(one, ObservedStep):
        return one.flagged and one.tool == tool
    return bool(one[4]) and one[1] == tool


def _words(hit: LoopMatch, last: ObservedStep) -> str:
    """What is told of it: the fact, the count, and what came of it each time."""
    what = {
        "repeated-block": f"{last.action} was called {hit.count} times with the same outcome"
        if hit.size == 1
        else f"the same {hit.size} calls, ending with {last.action}, were made {hit.count} times with the same outcomes",
        "stuck-call": f"{last.action} was called {hit.count} times with the same outcome, "
        "and nothing between could change it",
        "same-error": f"{last.action} failed {hit.count} times with the same error, whatever it was given",
        "same-outcome": f"{last.tool} was asked {hit.count} times in other words, with the same outcome",
    }[hit.rule]
    told = clip(" ".join(last.said.split()), _QUOTED)
    return f"{what}: {told}" if told else what
