"""Settings of loop detection: thresholds, window, similarity, and what to ignore."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from rung.core.domain.errors import ConfigError, is_number
from rung.core.domain.settings_schema import (
    COUNT,
    FLAG,
    NAMES,
    SECONDS,
    WHOLE,
    Type,
    read_settings,
    read_table,
    setting,
    settings,
    whole,
)
from rung.detectors.finding import LoopStage
from rung.detectors.loops.prefilter import COSMETIC

RULES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "repeated-block": "a block of one to five calls repeated with the same outcomes",
        "stuck-call": "the same call with the same outcome, with no call in between that could change it",
        "same-error": "the same error from one tool, with changing arguments",
        "same-outcome": "the same outcome from one tool for a reworded request",
        "wasted-calls": "nearly the same call with trouble of the same class, many times without progress",
        "same-words": "turns without a call and with nearly the same text",
        "chanting": "the same text repeated within one answer",
        "no-progress": "many calls over a long time without an external change",
    }
)

LoopKey = Callable[[Any], "str | None"]
_FRACTION: Final = Type("more than 0, at most 1", lambda value: is_number(value) and 0 < value <= 1)
NO_KEYS: Final[Mapping[str, LoopKey]] = MappingProxyType({})


@settings
class LoopSettings:
    """Settings of loop detection: the `[loops]` table.

    Attributes:
        loop_keys: Maps a tool to a function that returns a key for the call's arguments: two calls with equal keys are the
            same call, and None means that the call is never part of a loop. In a policy file this is `loop_key`: tool =
            [arguments], or false.
    """

    replan: int = setting(whole(2), "Repeats at which the agent is told to make a new plan.", default=3)
    explore: int = setting(COUNT, "Repeats at which the agent is told to use a different method.", default=5)
    force_done: int = setting(COUNT, "Repeats at which the agent must finish.", default=8)
    window: int = setting(COUNT, "Number of previous calls that are compared.", default=50)
    stuck_window: int = setting(
        COUNT, "Maximum distance between equal calls, in calls, for the rule `stuck-call`.", default=24
    )
    similarity: float = setting(
        _FRACTION, "Share of equal words at which two requests count as the same request reworded.", default=0.75
    )
    extra_repeats_when_waiting: int = setting(
        WHOLE, "Extra repeats allowed for a call that waits for something.", default=5
    )
    wasted_calls: int = setting(
        whole(2),
        "Calls with nearly the same words and trouble of the same class before `wasted-calls` is reported.",
        default=5,
    )
    off: bool = setting(FLAG, "Whether loops are ignored.", default=False)
    ignore_tools: frozenset[str] = setting(NAMES, "Tools whose calls are ignored.", default=frozenset())
    ignore_rules: frozenset[str] = setting(NAMES, "Rules that are ignored.", default=frozenset())
    ignored_arguments: frozenset[str] = setting(NAMES, "Arguments that do not distinguish two calls.", default=COSMETIC)
    mutating_tools: frozenset[str] = setting(
        NAMES, "Tools that change something although their name does not say so.", default=frozenset()
    )
    progress_calls: int = setting(
        COUNT, "Calls without an external change before `no-progress` is reported.", default=30
    )
    progress_seconds: float = setting(
        SECONDS, "Seconds without an external change before `no-progress` is reported.", default=900.0
    )
    loop_keys: Mapping[str, LoopKey] = field(default_factory=lambda: NO_KEYS)

    def __post_init__(self) -> None:
        rising = (("explore", self.replan), ("force_done", self.explore), ("window", self.replan))
        for name, least in (*rising, ("stuck_window", self.replan)):
            if getattr(self, name) < least:
                raise ConfigError(name, getattr(self, name), whole(least).allowed)
        for name in sorted(self.ignore_rules):
            if name not in RULES:
                raise ConfigError("ignore_rules", name, "any of " + ", ".join(RULES))

    def stage(self, repeats: int) -> LoopStage | None:
        """Return the escalation stage for this many repeats; None below the first threshold.

        Args:
            repeats: Number of repeats.
        """
        if repeats >= self.force_done:
            return LoopStage.FORCE_DONE
        if repeats >= self.explore:
            return LoopStage.EXPLORE
        return LoopStage.REPLAN if repeats >= self.replan else None


def loop_settings_from(table: object, where: str = "loops") -> LoopSettings:
    """Parse the settings from a table of a policy file, where a `loop_key` is a list of argument names or false."""
    source = read_table(table, where)
    keys = source.pop("loop_key", {})
    if not isinstance(keys, Mapping):
        raise ConfigError(
            f"{where}.loop_key", keys, "a table: tool = [arguments], or false for a tool that never loops"
        )
    loop_keys = {str(tool): _parse_loop_key(value, f"{where}.loop_key.{tool}") for tool, value in keys.items()}
    return read_settings(LoopSettings, source, where, loop_keys=loop_keys)


def _parse_loop_key(value: object, where: str) -> LoopKey:
    if value is False:
        return _never_loops
    return _ArgumentsKey(tuple(sorted(NAMES.read(value, where))))


def _never_loops(args: Any) -> None:  # the signature of `LoopKey`
    """Return None: calls of this tool are never part of a loop."""


@dataclass(frozen=True, slots=True)
class _ArgumentsKey:
    """Loop key that consists of selected arguments."""

    names: tuple[str, ...]

    def __call__(self, args: Any) -> str | None:
        return repr([args.get(name) for name in self.names]) if isinstance(args, Mapping) else repr(args)
