"""What a loop watch is told to look for: thresholds, window, likeness, and what to leave alone."""

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
        "repeated-block": "one to five calls, with the same outcomes, over and over",
        "stuck-call": "the same call with the same outcome, others between, and nothing between that could change it",
        "same-error": "the same error from one tool, with changing arguments",
        "same-outcome": "the same outcome from one tool, asked in other words",
        "same-words": "turns without a call and with nearly the same text",
        "chanting": "the same words over and over in one answer",
        "no-progress": "calls for a long time, and nothing outside changes",
    }
)

LoopKey = Callable[[Any], "str | None"]
_SHARE: Final = Type("more than 0, at most 1", lambda value: is_number(value) and 0 < value <= 1)
NO_KEYS: Final[Mapping[str, LoopKey]] = MappingProxyType({})


@settings
class LoopSettings:
    """Settings of a loop watch: the `[loops]` table.

    `loop_keys` maps a tool to a function from its arguments to what makes two of its calls the same; None: never a
    loop. In a table it is `loop_key`: tool = [arguments], or false.
    """

    replan: int = setting(whole(2), "Repeats at which another approach is asked for.", default=3)
    explore: int = setting(COUNT, "Repeats at which exploring is asked for.", default=5)
    force_done: int = setting(COUNT, "Repeats at which the agent must finish.", default=8)
    window: int = setting(COUNT, "How many calls back are compared.", default=50)
    stuck_window: int = setting(COUNT, "How far apart equal calls may be and still count as stuck.", default=24)
    similarity: float = setting(
        _SHARE, "Share of the words that must be equal for a call to be the same in other words.", default=0.75
    )
    extra_repeats_when_waiting: int = setting(
        WHOLE, "Extra repeats allowed to a call that waits for something.", default=5
    )
    off: bool = setting(FLAG, "Whether loops are ignored.", default=False)
    ignore_tools: frozenset[str] = setting(NAMES, "Tools whose calls are ignored.", default=frozenset())
    ignore_rules: frozenset[str] = setting(NAMES, "Rules that are ignored.", default=frozenset())
    ignored_arguments: frozenset[str] = setting(NAMES, "Arguments that do not distinguish two calls.", default=COSMETIC)
    mutating_tools: frozenset[str] = setting(
        NAMES, "Tools that change something although their name does not say so.", default=frozenset()
    )
    progress_calls: int = setting(COUNT, "Calls without a change outside, before that counts.", default=30)
    progress_seconds: float = setting(SECONDS, "Seconds without a change outside, before that counts.", default=900.0)
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
        """How far so many repeats have gone."""
        if repeats >= self.force_done:
            return LoopStage.FORCE_DONE
        if repeats >= self.explore:
            return LoopStage.EXPLORE
        return LoopStage.REPLAN if repeats >= self.replan else None


def watching_from(table: object, where: str = "loops") -> LoopSettings:
    """Settings from a table of a policy file; a tool's `loop_key` is there a list of the arguments that matter."""
    source = read_table(table, where)
    keys = source.pop("loop_key", {})
    if not isinstance(keys, Mapping):
        raise ConfigError(
            f"{where}.loop_key", keys, "a table: tool = [arguments], or false for a tool that never loops"
        )
    loop_keys = {str(tool): _key(value, f"{where}.loop_key.{tool}") for tool, value in keys.items()}
    return read_settings(LoopSettings, source, where, loop_keys=loop_keys)


def _key(value: object, where: str) -> LoopKey:
    if value is False:
        return _never
    return _Fields(tuple(sorted(NAMES.read(value, where))))


def _never(args: Any) -> None:  # the shape of every loop key
    """This tool's calls are never the same."""


@dataclass(frozen=True, slots=True)
class _Fields:
    """A loop key made of some of the arguments."""

    names: tuple[str, ...]

    def __call__(self, args: Any) -> str | None:
        return repr([args.get(name) for name in self.names]) if isinstance(args, Mapping) else repr(args)
