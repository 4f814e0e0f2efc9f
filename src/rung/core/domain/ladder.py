"""A ladder is data: an ordered list of rungs, and the entry rung of each kind."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from rung.core.domain.error_size import Size, size_of
from rung.core.domain.errors import ConfigError
from rung.core.domain.failures import Kind
from rung.core.domain.settings_schema import (
    ANY_TEXT,
    DOLLARS,
    FLAG,
    KINDS,
    SECONDS,
    WHOLE,
    one_of,
    optional,
    setting,
    settings,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.core.domain.failures import Failure


class Action(StrEnum):
    """What a rung does."""

    RETRY = "retry"
    RETRY_WITH_CONTEXT = "retry-with-context"
    NUDGE = "nudge"
    RAISE_LIMIT = "raise-limit"
    RESUME = "resume"
    COMPACT = "compact"
    REPAIR = "repair"
    RESPAWN = "respawn"
    REPLAN = "replan"
    RESTRUCTURE = "restructure"
    FIX = "fix"
    INVESTIGATE = "investigate"
    FALLBACK = "fallback"
    ESCALATE = "escalate"
    ASK = "ask"
    SURFACE = "surface"
    FORCE_DONE = "force-done"


DOES: Final[Mapping[Action, str]] = MappingProxyType(
    {
        Action.RETRY: "the same request again, after a pause",
        Action.RETRY_WITH_CONTEXT: "again, with the error and the failed output beside it",
        Action.NUDGE: "the same approach, adjusted to the error",
        Action.RAISE_LIMIT: "a larger output limit",
        Action.RESUME: "go on where the answer was cut",
        Action.COMPACT: "the same with a smaller context",
        Action.REPAIR: "the same with its history mended",
        Action.RESPAWN: "a fresh agent: narrower scope, more turns, simpler task",
        Action.REPLAN: "the same goal by another approach",
        Action.RESTRUCTURE: "the work cut up differently",
        Action.FIX: "a proposed correction",
        Action.INVESTIGATE: "find the cause before changing anything",
        Action.FALLBACK: "another model or agent",
        Action.ESCALATE: "the next model up",
        Action.ASK: "a person chooses; with nobody there: blocked, and a report",
        Action.SURFACE: "a person is shown the error and may override",
        Action.FORCE_DONE: "finish honestly with what there is",
    }
)

HAND_OVERS: Final = frozenset({Action.FALLBACK, Action.ESCALATE})
ENDINGS: Final = frozenset({Action.ASK, Action.SURFACE, Action.FORCE_DONE})


class RungScope(StrEnum):
    """How long a rung's spent tries are remembered."""

    ACTION = "action"  # afresh after each climb
    INCIDENT = "incident"
    SESSION = "session"


_LOOP_DETECTED: Final = Kind.LOOP_DETECTED  # reading a member of an enum class is slow in Python 3.11


@settings
class Rung:
    """One level: what it does, how often, for how long, and what one try is expected to cost."""

    action: Action = setting(one_of(Action), "What the rung does.")
    name: str = setting(ANY_TEXT, "Name of the rung. Default: its action.", default="")
    tries: int = setting(WHOLE, "How often the rung is tried.", default=1)
    seconds: float | None = setting(
        optional(SECONDS), "Time for everything on the rung, waits and attempts; then the next rung.", default=None
    )
    scope: RungScope = setting(
        one_of(RungScope),
        "How long used tries are remembered. Default for retry: `action`.",
        default=RungScope.INCIDENT,
    )
    cost: float = setting(DOLLARS, "Expected cost of one try.", default=0.0)
    applies_to: frozenset[Kind] | None = setting(
        optional(KINDS), "Kinds that the rung can do anything about. Default: all.", default=None
    )
    max_missing_sections: int | None = setting(
        optional(WHOLE), "Use the rung only while at most so many declared sections are missing.", default=None
    )
    rollback: bool = setting(FLAG, "Restore the checkpoint taken on entry when the rung fails.", default=False)
    spent_with: str = setting(ANY_TEXT, "Name of a lower rung: this rung is exhausted with that one.", default="")
    # Read on every failure; reading a member of an enum class is slow in Python 3.11.
    is_retry: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", self.action.value)
        object.__setattr__(self, "is_retry", self.scope is RungScope.ACTION)
        if self.scope is RungScope.ACTION and self.action is not Action.RETRY:
            raise ConfigError("scope", self.scope.value, "'action' for retry only: another rung would never be spent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """Rungs from the cheapest to the last, which must be an ending.

    `entry` names the rung a kind enters at, `default_entry` the one for kinds not in it; `loops` holds the
    entry of a detected loop by the number of repeats, `sizes` that of an error whose report states its
    size. A kind that enters at the highest rung of `sizes` or above enters there whatever its size.
    `first` is the number of the lowest level.
    """

    name: str
    rungs: tuple[Rung, ...]
    entry: Mapping[Kind, str]
    default_entry: str
    loops: tuple[tuple[int, str], ...] = ()
    sizes: Mapping[Size, str] = field(default_factory=dict)
    base_level: int = 1
    about: str = ""
    _enters: Mapping[Kind, int] = field(init=False, repr=False, compare=False)
    _by_size: Mapping[Size, int] = field(init=False, repr=False, compare=False)
    _size_limit: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        names = [rung.name for rung in self.rungs]
        if not self.rungs:
            raise ConfigError("rungs", [], "at least one rung")
        for name in names:
            if names.count(name) > 1:
                raise ConfigError("rungs.name", name, "a name that no other rung has")
        if self.rungs[-1].action not in ENDINGS:
            raise ConfigError("rungs", names[-1], "a last rung that ends: ask, surface or force-done")
        for rung in self.rungs[:-1]:
            if rung.action in ENDINGS:
                raise ConfigError("rungs", rung.name, "an ending (ask, surface, force-done) as the last rung only")
        for index, rung in enumerate(self.rungs):
            if rung.spent_with and rung.spent_with not in names[:index]:
                lower = ", ".join(names[:index]) or "there is none"
                raise ConfigError(f"rungs[{index}].spent_with", rung.spent_with, f"the name of a lower rung: {lower}")
        self._check_entries(names)
        object.__setattr__(self, "entry", MappingProxyType(dict(self.entry)))
        object.__setattr__(self, "loops", tuple(sorted(self.loops)))
        enters = {kind: names.index(self.entry.get(kind, self.default_entry)) for kind in Kind}
        object.__setattr__(self, "_enters", MappingProxyType(enters))
        object.__setattr__(self, "sizes", MappingProxyType(dict(self.sizes)))
        by_size = {size: names.index(name) for size, name in self.sizes.items()}
        object.__setattr__(self, "_by_size", MappingProxyType(by_size))
        object.__setattr__(self, "_size_limit", max(by_size.values(), default=0))

    def _check_entries(self, names: list[str]) -> None:
        allowed = "one of this ladder's rungs: " + ", ".join(names)
        if self.default_entry not in names:
            raise ConfigError("default_entry", self.default_entry, allowed)
        for kind, name in self.entry.items():
            if name not in names:
                raise ConfigError(f"entry.{kind}", name, allowed)
        for count, name in self.loops:
            if count < 1:
                raise ConfigError("loops", count, "a number of repeats, 1 or more")
            if name not in names:
                raise ConfigError(f"loops.{count}", name, allowed)
        for size, name in self.sizes.items():
            if name not in names:
                raise ConfigError(f"sizes.{size}", name, allowed)

    def entry_index(self, failure: Failure) -> int:
        """The index of the rung at which this failure enters."""
        index = self._enters[failure.kind]
        if failure.kind is _LOOP_DETECTED:
            for count, name in self.loops:
                if failure.evidence.repeats >= count:
                    index = self.index(name)
        if index < self._size_limit:
            size = size_of(failure)
            return index if size is None else self._by_size.get(size, index)
        return index

    def index(self, name: str) -> int:
        """The position of the rung of this name."""
        for position, rung in enumerate(self.rungs):
            if rung.name == name:
                return position
        raise ConfigError("rung", name, ", ".join(rung.name for rung in self.rungs))

    def level(self, index: int) -> int:
        """The number people know the rung by."""
        return self.base_level + index
