"""Ladder: an ordered list of rungs, and the rung at which each kind of failure enters. Data only."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from rung.core.domain.error_size import Size, size_of
from rung.core.domain.errors import ConfigError
from rung.core.domain.failures import Kind
from rung.core.domain.frozen_dict import FrozenDict
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
    """Action of a rung."""

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
    PARK = "park"
    WAIT = "wait"
    ASK = "ask"
    SURFACE = "surface"
    FORCE_DONE = "force-done"


ACTION_DESCRIPTIONS: Final[Mapping[Action, str]] = MappingProxyType(
    {
        Action.RETRY: "send the unchanged request again after a backoff",
        Action.RETRY_WITH_CONTEXT: "try again with the error and the failed output in the prompt",
        Action.NUDGE: "keep the approach and adjust it to the error",
        Action.RAISE_LIMIT: "raise the output limit",
        Action.RESUME: "continue the truncated answer",
        Action.COMPACT: "send the request with a compacted context",
        Action.REPAIR: "send the request with a repaired message history",
        Action.RESPAWN: "start a new agent: narrower scope, more turns, simpler task",
        Action.REPLAN: "pursue the same goal with another approach",
        Action.RESTRUCTURE: "split the work differently",
        Action.FIX: "propose a correction",
        Action.INVESTIGATE: "find the cause before changing anything",
        Action.FALLBACK: "hand over to another model or agent",
        Action.ESCALATE: "hand over to the next model up",
        Action.PARK: "wait until a limit reopens at a known time, then send the unchanged request again",
        Action.WAIT: "wait until a failing service is back, then send the unchanged request again",
        Action.ASK: "ask a person; unattended: end blocked, with a report",
        Action.SURFACE: "show the error to a person, who may override it",
        Action.FORCE_DONE: "finish with the results so far and an honest report",
    }
)

# Actions that change the form of a request, not its instructions.
MECHANICAL_ACTIONS: Final = frozenset({Action.RAISE_LIMIT, Action.RESUME, Action.COMPACT, Action.REPAIR})
# Actions that change the instructions, for the same model or agent.
INSTRUCTING_ACTIONS: Final = frozenset(
    {
        Action.RETRY_WITH_CONTEXT,
        Action.NUDGE,
        Action.REPLAN,
        Action.RESTRUCTURE,
        Action.FIX,
        Action.INVESTIGATE,
        Action.FORCE_DONE,
    }
)
HANDOVER_ACTIONS: Final = frozenset({Action.FALLBACK, Action.ESCALATE})
ENDING_ACTIONS: Final = frozenset({Action.ASK, Action.SURFACE, Action.FORCE_DONE})
WAITING_ACTIONS: Final = (Action.PARK, Action.WAIT)  # in this order, just below the end
MAX_PARKS: Final = 20  # per incident: a limit that never reopens ends it


class RungScope(StrEnum):
    """How long a rung's used tries are counted."""

    ACTION = "action"  # reset after each climb
    INCIDENT = "incident"
    SESSION = "session"


_LOOP_DETECTED: Final = Kind.LOOP_DETECTED  # reading a member of an enum class is slow in Python 3.11


@settings
class Rung:
    """One rung: its action, number of tries, time limit and expected cost of one try."""

    action: Action = setting(one_of(Action), "What the rung does.")
    name: str = setting(ANY_TEXT, "Name of the rung. Default: its action.", default="")
    tries: int = setting(WHOLE, "How often the rung is tried.", default=1)
    seconds: float | None = setting(
        optional(SECONDS),
        "Time limit of the rung; then the next one. For retry: the seconds of backoff, without the attempts and without "
        "the waits that a server asks for. For the others: everything on the rung, waits and attempts.",
        default=None,
    )
    scope: RungScope = setting(
        one_of(RungScope),
        "How long used tries are counted. Default for retry: `action`.",
        default=RungScope.INCIDENT,
    )
    cost: float = setting(DOLLARS, "Expected cost of one try.", default=0.0)
    applies_to: frozenset[Kind] | None = setting(
        optional(KINDS), "Kinds that the rung can fix. Default: all.", default=None
    )
    max_missing_sections: int | None = setting(
        optional(WHOLE), "Use the rung only if at most this many declared sections are missing.", default=None
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
            raise ConfigError(
                "scope", self.scope.value, "'action' for retry only: another rung would never be exhausted"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """Rungs from the cheapest to the last, which must end the incident.

    Attributes:
        name: Name of the ladder.
        rungs: The rungs, lowest first.
        entry: Name of the rung at which a kind enters.
        default_entry: Name of the rung at which all other kinds enter.
        loops: Entry of a detected loop: pairs of a number of repeats and the name of a rung. Default: none.
        sizes: Entry of an error whose report states its size. A kind that enters at or above the highest rung of `sizes`
            ignores its size. Default: none.
        base_level: Level number of the lowest rung. Default: 1.
        about: Description. Default: empty.

    Raises:
        ConfigError: A rung is unknown or named twice, or the last one does not end the incident.
    """

    name: str
    rungs: tuple[Rung, ...]
    entry: Mapping[Kind, str]
    default_entry: str
    loops: tuple[tuple[int, str], ...] = ()
    sizes: Mapping[Size, str] = field(default_factory=dict)
    base_level: int = 1
    about: str = ""
    _entry_by_kind: Mapping[Kind, int] = field(init=False, repr=False, compare=False)
    _entry_by_size: Mapping[Size, int] = field(init=False, repr=False, compare=False)
    _size_limit: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        names = [rung.name for rung in self.rungs]
        if not self.rungs:
            raise ConfigError("rungs", [], "at least one rung")
        for name in names:
            if names.count(name) > 1:
                raise ConfigError("rungs.name", name, "a name that no other rung has")
        if self.rungs[-1].action not in ENDING_ACTIONS:
            raise ConfigError("rungs", names[-1], "a last rung that ends: ask, surface or force-done")
        for rung in self.rungs[:-1]:
            if rung.action in ENDING_ACTIONS:
                raise ConfigError("rungs", rung.name, "an ending (ask, surface, force-done) as the last rung only")
        self._check_waiting_rungs()
        for index, rung in enumerate(self.rungs):
            if rung.spent_with and rung.spent_with not in names[:index]:
                lower = ", ".join(names[:index]) or "there is none"
                raise ConfigError(f"rungs[{index}].spent_with", rung.spent_with, f"the name of a lower rung: {lower}")
        self._check_entries(names)
        object.__setattr__(self, "entry", FrozenDict(self.entry))
        object.__setattr__(self, "loops", tuple(sorted(self.loops)))
        entry_by_kind = {kind: names.index(self.entry.get(kind, self.default_entry)) for kind in Kind}
        object.__setattr__(self, "_entry_by_kind", FrozenDict(entry_by_kind))
        object.__setattr__(self, "sizes", FrozenDict(self.sizes))
        by_size = {size: names.index(name) for size, name in self.sizes.items()}
        object.__setattr__(self, "_entry_by_size", FrozenDict(by_size))
        object.__setattr__(self, "_size_limit", max(by_size.values(), default=0))

    def _check_waiting_rungs(self) -> None:
        waiting = [rung for rung in self.rungs if rung.action in WAITING_ACTIONS]
        actions = [rung.action for rung in waiting]
        below_end = self.rungs[len(self.rungs) - 1 - len(waiting) : -1]
        if list(below_end) != waiting or actions != [each for each in WAITING_ACTIONS if each in actions]:
            raise ConfigError(
                "rungs", waiting[0].name, "park and wait just below the end only; `park` and `patience` add them"
            )

    def _check_entries(self, rungs: list[str]) -> None:
        names = [name for name, rung in zip(rungs, self.rungs, strict=True) if rung.action not in WAITING_ACTIONS]
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
        """Return the index of the rung at which this failure enters.

        Args:
            failure: The failure.
        """
        index = self._entry_by_kind[failure.kind]
        if failure.kind is _LOOP_DETECTED:
            for count, name in self.loops:
                if failure.evidence.repeats >= count:
                    index = self.index(name)
        if index < self._size_limit:
            size = size_of(failure)
            return index if size is None else self._entry_by_size.get(size, index)
        return index

    def index(self, name: str) -> int:
        """Return the index of the rung with this name.

        Args:
            name: Name of the rung.
        """
        for position, rung in enumerate(self.rungs):
            if rung.name == name:
                return position
        raise ConfigError("rung", name, ", ".join(rung.name for rung in self.rungs))

    def level(self, index: int) -> int:
        """Return the level number of a rung, as people see it. A park or wait rung has the level of the rung below it.

        Args:
            index: Index of the rung.
        """
        waits = sum(rung.action in WAITING_ACTIONS for rung in self.rungs[: index + 1])
        return self.base_level + index - waits

    def not_past_waiting(self, index: int) -> int:
        """Return the index of a rung; instead of the end that of the first rung below it that parks or waits, if any.

        Args:
            index: Index of a rung.
        """
        if index < len(self.rungs) - 1:
            return index
        return next((n for n, rung in enumerate(self.rungs) if rung.action in WAITING_ACTIONS), index)

    def with_waiting(self, *, park: float, patience: float) -> Ladder:
        """Return the ladder with rungs just below its end that wait: for a limit to reopen, for a failing service.

        Args:
            park: Longest wait for a limit to reopen, in seconds; 0: without this rung.
            patience: Longest wait for a failing service, in seconds; 0: without this rung.
        """
        rungs = tuple(rung for rung in self.rungs if rung.action not in WAITING_ACTIONS)
        waiting: list[Rung] = []
        if park:
            waiting.append(Rung(action=Action.PARK, tries=MAX_PARKS, seconds=park))
        if patience:
            waiting.append(Rung(action=Action.WAIT, seconds=patience))
        if len(rungs) > 1:
            rungs = (*rungs[:-1], *waiting, rungs[-1])
        return self if rungs == self.rungs else replace(self, rungs=rungs)
