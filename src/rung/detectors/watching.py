"""What a loop watch is told to look for: thresholds, window, likeness, and what to leave alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from rung.core.errors import ConfigError, is_number, is_whole
from rung.detectors.finding import Stage
from rung.detectors.glance import COSMETIC

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
NO_KEYS: Final[Mapping[str, LoopKey]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Watching:
    """Settings of a loop watch.

    replan, explore, force_done   repeats at which each stage is reached
    window                        how many calls back are looked at
    stuck_window                  how far apart the same call may be and still count as stuck
    similarity                    how much of the words must be the same for a call to be the same in other words
    patience                      repeats more, before looking again after a pause counts
    loop_keys                     by tool: arguments to what makes its calls the same; None: never a loop
    off_tools, off_rules          tools and rules that are left alone
    cosmetic                      arguments that do not matter
    changing                      tools that change something, where their name does not say so
    progress_calls, progress_seconds   without a change outside, for both of these
    """

    replan: int = 3
    explore: int = 5
    force_done: int = 8
    window: int = 50
    stuck_window: int = 24
    similarity: float = 0.75
    patience: int = 5
    loop_keys: Mapping[str, LoopKey] = field(default_factory=lambda: NO_KEYS)
    off: bool = False
    off_tools: frozenset[str] = frozenset()
    off_rules: frozenset[str] = frozenset()
    cosmetic: frozenset[str] = COSMETIC
    changing: frozenset[str] = frozenset()
    progress_calls: int = 30
    progress_seconds: float = 900.0

    def __post_init__(self) -> None:
        least = (("replan", 2), ("explore", self.replan), ("force_done", self.explore), ("window", self.replan))
        for name, limit in (*least, ("stuck_window", self.replan), ("patience", 0), ("progress_calls", 1)):
            if not is_whole(getattr(self, name), limit):
                raise ConfigError(name, getattr(self, name), f"a whole number, {limit} or more")
        if not is_number(self.similarity) or not 0 < self.similarity <= 1:
            raise ConfigError("similarity", self.similarity, "more than 0, at most 1")
        if not is_number(self.progress_seconds):
            raise ConfigError("progress_seconds", self.progress_seconds, "seconds, 0 or more")
        for name in sorted(self.off_rules):
            if name not in RULES:
                raise ConfigError("off_rules", name, "any of " + ", ".join(RULES))

    def stage(self, repeats: int) -> Stage | None:
        """How far so many repeats have gone."""
        if repeats >= self.force_done:
            return Stage.FORCE_DONE
        if repeats >= self.explore:
            return Stage.EXPLORE
        return Stage.REPLAN if repeats >= self.replan else None


def watching_from(table: object, where: str = "loops") -> Watching:
    """Settings from a table of a policy file; a tool's `loop_key` is there a list of the arguments that matter."""
    if not isinstance(table, Mapping):
        raise ConfigError(where, table, "a table")
    known = dict(table)
    keys = known.pop("loop_key", {})
    if not isinstance(keys, Mapping):
        raise ConfigError(
            f"{where}.loop_key", keys, "a table: tool = [arguments], or false for a tool that never loops"
        )
    made: dict[str, Any] = {
        "loop_keys": {str(tool): _key(value, f"{where}.loop_key.{tool}") for tool, value in keys.items()}
    }
    for name, value in known.items():
        if name not in _TABLE_KEYS:
            raise ConfigError(f"{where}.{name}", value, "one of " + ", ".join((*_TABLE_KEYS, "loop_key")))
        made[name] = _names(value, f"{where}.{name}") if name in _SETS else value
    try:
        return Watching(**made)
    except ConfigError as error:
        raise error.under(where) from None


_SETS: Final = ("off_tools", "off_rules", "cosmetic", "changing")
_TABLE_KEYS: Final = (
    "replan", "explore", "force_done", "window", "stuck_window", "similarity", "patience", "off", *_SETS,
    "progress_calls", "progress_seconds",
)  # fmt: skip


def _names(value: object, where: str) -> frozenset[str]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise ConfigError(where, value, "a list of names")
    return frozenset(value)


def _key(value: object, where: str) -> LoopKey:
    if value is False:
        return _never
    return _Fields(tuple(sorted(_names(value, where))))


def _never(args: Any) -> None:  # the shape of every loop key
    """This tool's calls are never the same."""


@dataclass(frozen=True, slots=True)
class _Fields:
    """A loop key made of some of the arguments."""

    names: tuple[str, ...]

    def __call__(self, args: Any) -> str | None:
        return repr([args.get(name) for name in self.names]) if isinstance(args, Mapping) else repr(args)
