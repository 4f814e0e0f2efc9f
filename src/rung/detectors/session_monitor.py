"""Run all loop detectors over one agent session: calls, turns without a call, streamed text, progress."""

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
_MAX_TOOLS: Final = 256  # bound of the cache of tool names


class SessionMonitor:
    """Receives the steps of one session and returns a finding as soon as the agent loops or makes no progress.

    Args:
        settings: Settings of loop detection. Default: `rung.detect.LoopSettings()`.

    Example:
        >>> import rung
        >>> monitor = rung.detect.SessionMonitor()
        >>> step = rung.detect.Step("bash", {"command": "make build"}, "no rule to make target", error=True)
        >>> [monitor.check(step) is None for _ in range(3)]
        [True, True, False]
    """

    __slots__ = (
        "_has_idle_turn",
        "_has_probe",
        "_is_thought_tool",
        "loops",
        "progress",
        "repetition",
        "settings",
        "turns",
    )

    def __init__(self, settings: LoopSettings | None = None) -> None:
        self.settings = settings or LoopSettings()
        self.loops = LoopDetector(self.settings)
        self.turns = IdleTurnDetector(self.settings)
        self.progress = ProgressDetector(self.settings)
        self.repetition = RepetitionDetector(off=self._repetition_off)
        self._is_thought_tool: dict[str, bool] = {"": True}
        self._has_idle_turn = self._has_probe = False  # since the last call; since the start

    @property
    def _repetition_off(self) -> bool:
        return self.settings.off or "chanting" in self.settings.ignore_rules

    def check(self, step: Step) -> Finding | None:
        """Record a call and its outcome. A step without a tool, or with a thinking tool, counts as an idle turn.

        Args:
            step: The call and its outcome.
        """
        thought = self._is_thought_tool.get(step.tool)
        if thought or (thought is None and self._is_thought(step.tool)):
            self.loops.count += 1
            return self.idle_turn(clipped(step.args) or clipped(step.result))
        if self._has_idle_turn:
            self._has_idle_turn = False
            self.turns.reset()
            self.repetition.restart()
        finding = self.loops.check(step)
        if step.progress is None and not self._has_probe:
            return finding
        self._has_probe = True
        return self.progress.check(step.progress, step.at) or finding

    def record(self, step: Step) -> None:
        """Record a past step without reporting a loop.

        Args:
            step: The call and its outcome.
        """
        thought = self._is_thought_tool.get(step.tool)
        if thought or (thought is None and self._is_thought(step.tool)):
            self.check(step)
        else:
            if self._has_idle_turn:
                self._has_idle_turn = False
                self.turns.reset()
            self.loops.record(step)

    def _is_thought(self, tool: str) -> bool:
        if len(self._is_thought_tool) >= _MAX_TOOLS:
            self._is_thought_tool = {"": True}
        self._is_thought_tool[tool] = thought = effect_of(tool, None) is Effect.NONE
        return thought

    def idle_turn(self, text: str) -> Finding | None:
        """Record a turn without a call.

        Args:
            text: Text of the turn.
        """
        self._has_idle_turn = True
        return self.turns.check(text)

    def stream(self, chunk: str) -> Finding | None:
        """Record a chunk of a streamed answer.

        Args:
            chunk: Text of the chunk.
        """
        self._has_idle_turn = True
        return self.repetition.stream(chunk)

    def reset_on_user(self) -> None:
        """End all streaks: the user sent a message."""
        self.loops.reset_on_user()
        self.turns.reset()
        self.repetition.restart()

    def to_json(self) -> dict[str, Any]:
        """Return the state as JSON, for the next process."""
        return {
            "v": VERSION,
            "loops": self.loops.to_json(),
            "turns": self.turns.to_json(),
            "progress": self.progress.to_json(),
            "chanting": self.repetition.to_json(),
        }

    @classmethod
    def from_json(cls, table: Any, settings: LoopSettings | None = None) -> SessionMonitor:
        """Restore a monitor from its state; the settings are not part of it.

        Args:
            table: State from `to_json`.
            settings: Settings of loop detection. Default: `rung.detect.LoopSettings()`.
        """
        if not isinstance(table, Mapping) or table.get("v") != VERSION:
            raise ConfigError("watch.v", table.get("v") if isinstance(table, Mapping) else table, str(VERSION))
        monitor = cls(settings)
        monitor._has_idle_turn = monitor._has_probe = True  # not stored; true is the safe assumption
        monitor.loops = LoopDetector.from_json(table["loops"], monitor.settings)
        monitor.turns = IdleTurnDetector.from_json(table["turns"], monitor.settings)
        monitor.progress = ProgressDetector.from_json(table["progress"], monitor.settings)
        monitor.repetition = RepetitionDetector.from_json(table["chanting"], off=monitor._repetition_off)
        return monitor
