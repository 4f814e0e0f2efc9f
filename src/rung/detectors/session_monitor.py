"""One session's watch over everything an agent does: its calls, its turns without one, its stream, its progress."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.errors import ConfigError
from rung.detectors.loop_settings import LoopSettings
from rung.detectors.loops.detector import LoopDetector
from rung.detectors.loops.idle_turns import IdleTurnDetector
from rung.detectors.loops.normalize import clipped
from rung.detectors.loops.progress import ProgressDetector
from rung.detectors.loops.side_effects import Effect, effect_of
from rung.detectors.loops.text_repetition import RepetitionDetector

if TYPE_CHECKING:
    from rung.detectors.finding import Finding
    from rung.detectors.step import Step

VERSION: Final = 1
_TOOLS: Final = 256  # whose names are remembered


class SessionMonitor:
    """Told of a session as it happens; says at once what it has noticed."""

    __slots__ = ("_probed", "_spoke", "_thoughts", "chanting", "loops", "progress", "turns", "watching")

    def __init__(self, watching: LoopSettings | None = None) -> None:
        self.watching = watching or LoopSettings()
        self.loops = LoopDetector(self.watching)
        self.turns = IdleTurnDetector(self.watching)
        self.progress = ProgressDetector(self.watching)
        self.chanting = RepetitionDetector(off=self._chanting_off)
        self._thoughts: dict[str, bool] = {"": True}
        self._spoke = self._probed = False  # since the last call; ever

    @property
    def _chanting_off(self) -> bool:
        return self.watching.off or "chanting" in self.watching.ignore_rules

    def check(self, step: Step) -> Finding | None:
        """Take in a call and its outcome. A step without a tool is a turn; so is a tool that only holds a thought."""
        thought = self._thoughts.get(step.tool)
        if thought or (thought is None and self._is_thought(step.tool)):
            self.loops.count += 1
            return self.idle_turn(clipped(step.args) or clipped(step.result))
        if self._spoke:
            self._spoke = False
            self.turns.acted()
            self.chanting.restart()
        found = self.loops.see(step)
        if step.progress is None and not self._probed:
            return found
        self._probed = True
        return self.progress.see(step.progress, step.at) or found

    def record(self, step: Step) -> None:
        """Take in a step of the past, which nobody needs to be told about any more."""
        thought = self._thoughts.get(step.tool)
        if thought or (thought is None and self._is_thought(step.tool)):
            self.check(step)
        else:
            if self._spoke:
                self._spoke = False
                self.turns.acted()
            self.loops.take(step)

    def _is_thought(self, tool: str) -> bool:
        if len(self._thoughts) >= _TOOLS:
            self._thoughts = {"": True}
        self._thoughts[tool] = thought = effect_of(tool, None) is Effect.NONE
        return thought

    def idle_turn(self, text: str) -> Finding | None:
        """Take in a turn without a call."""
        self._spoke = True
        return self.turns.say(text)

    def stream(self, chunk: str) -> Finding | None:
        """Take in a piece of an answer as it arrives."""
        self._spoke = True
        return self.chanting.stream(chunk)

    def reset_on_user(self) -> None:
        """A person said something: every streak ends."""
        self.loops.user_spoke()
        self.turns.acted()
        self.chanting.restart()

    def to_json(self) -> dict[str, Any]:
        """All that is remembered, for the next process."""
        return {
            "v": VERSION,
            "loops": self.loops.to_json(),
            "turns": self.turns.to_json(),
            "progress": self.progress.to_json(),
            "chanting": self.chanting.to_json(),
        }

    @classmethod
    def from_json(cls, table: Any, watching: LoopSettings | None = None) -> SessionMonitor:
        """The watch as it was; the settings are given anew."""
        if not isinstance(table, Mapping) or table.get("v") != VERSION:
            raise ConfigError("watch.v", table.get("v") if isinstance(table, Mapping) else table, str(VERSION))
        watch = cls(watching)
        watch._spoke = watch._probed = True  # to ask once more does no harm
        watch.loops = LoopDetector.from_json(table["loops"], watch.watching)
        watch.turns = IdleTurnDetector.from_json(table["turns"], watch.watching)
        watch.progress = ProgressDetector.from_json(table["progress"], watch.watching)
        watch.chanting = RepetitionDetector.from_json(table["chanting"], off=watch._chanting_off)
        return watch
