"""A policy: a ladder with its backoff, budgets, models and everything a user may set about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.errors import ConfigError
from rung.core.domain.failures import NEVER_RETRYABLE, TRANSIENT, Kind
from rung.core.domain.ladder import HAND_OVERS, Action, Ladder, Rung, RungScope
from rung.core.domain.settings_schema import (
    ANY_TEXT,
    COUNT,
    DOLLARS,
    FLAG,
    KINDS,
    POSITIVE_SECONDS,
    SECONDS,
    TEXT,
    WHOLE,
    Type,
    list_of,
    one_of,
    optional,
    read_settings,
    setting,
    settings,
)
from rung.core.policy.backoff import Backoff
from rung.core.policy.budget import Budget
from rung.core.policy.presets import LADDERS

if TYPE_CHECKING:
    from collections.abc import Callable


class Confirm(StrEnum):
    """When a person must agree before another model takes over."""

    NEVER = "never"
    MORE_EXPENSIVE = "more_expensive"
    ALWAYS = "always"


class Sticky(StrEnum):
    """How long a session stays on the model it was handed over to."""

    CALL = "call"
    SESSION = "session"


@settings
class Model:
    """One step of the model ladder."""

    name: str = setting(TEXT, "Name of the model.")
    cost: float = setting(DOLLARS, "Expected cost of one attempt; 0: unknown.", default=0.0)
    max_tokens: int = setting(COUNT, "Largest output, in tokens.", default=64_000)
    window: int = setting(WHOLE, "Context window, in tokens; 0: unknown.", default=0)
    provider: str = setting(ANY_TEXT, "Provider of the model.", default="")


def _read_model(value: object, key: str) -> Model:
    if isinstance(value, Model):
        return value
    return read_settings(Model, {"name": value} if isinstance(value, str) else value, key)


def _part_type(part: type) -> Type:
    keys = ", ".join(f"`{each.name}`" for each in fields(part))
    return Type(f"a table: {keys}", lambda value: isinstance(value, part))


DEFAULT_RETRY: Final = TRANSIENT | {Kind.MALFORMED_OUTPUT, Kind.TOOL_ERROR}
BLOCKED_REPORT: Final = "tasks/pipeline-blocked.md"  # of the command line, where no other file is named
NO_TABLE: Final[Mapping[str, Any]] = MappingProxyType({})


@settings
class Policy:
    """Everything decide needs to know that is not in the incident."""

    ladder: Ladder
    name: str = setting(ANY_TEXT, "Name of the policy in events.", default="default")
    backoff: Backoff = setting(_part_type(Backoff), "Wait before a retry.", default_factory=Backoff)
    budget: Budget = setting(_part_type(Budget), "The three caps of one incident in one table.", default_factory=Budget)
    models: tuple[Model, ...] = setting(
        list_of(Type("a name or a table", parse=_read_model)),
        "The model ladder, cheapest first: where fallback and escalate hand over to.",
        default=(),
    )
    agents: tuple[str, ...] = setting(list_of(ANY_TEXT), "Agents to hand over to, in this order.", default=())
    retry: frozenset[Kind] = setting(
        KINDS,
        "Kinds whose request may be repeated unchanged. The failure must be retryable as well.",
        default=DEFAULT_RETRY,
    )
    retry_after_cap: float = setting(
        SECONDS, "A server's hint above this is not waited for: the ladder climbs.", default=60.0
    )
    attempt_seconds: float | None = setting(
        optional(POSITIVE_SECONDS),
        "Time limit of one attempt. Left out: only its rung's time and the cap.",
        default=None,
    )
    auto_escalate: bool = setting(FLAG, "Whether the next model up may take over unasked.", default=True)
    escalate_after: int = setting(
        WHOLE, "With fewer failures than this, the next model up takes over only if a person agrees.", default=0
    )
    confirm: Confirm = setting(
        one_of(Confirm), "When a person must agree before another model or agent takes over.", default=Confirm.NEVER
    )
    sticky: Sticky = setting(
        one_of(Sticky), "How long a session stays on the model it was handed over to.", default=Sticky.CALL
    )
    unattended: bool = setting(FLAG, "Nobody can be asked: a question ends blocked, with a report.", default=False)
    checkpoints: bool = setting(FLAG, "Save the state before a rung that changes the work.", default=True)
    report: str = setting(
        ANY_TEXT,
        "File that the report of a blocked incident is appended to. Empty: no file. "
        f"Default of the command line: `{BLOCKED_REPORT}`.",
        default="",
    )
    prompts: Mapping[str, str] = setting(
        Type("a table: prompt id = text", lambda value: isinstance(value, Mapping)),
        "Replacement texts of [recovery prompts](prompts.md).",
        default_factory=lambda: NO_TABLE,
    )
    learn: bool = setting(
        FLAG, "Enter at the rung that fixed this failure before, if a journal knows one.", default=False
    )

    def __post_init__(self) -> None:
        bad = sorted(self.retry & NEVER_RETRYABLE)
        if bad:
            raise ConfigError("retry", bad[0].value, "a kind that may be repeated unchanged; this one never helps")
        names = [model.name for model in self.models]
        for name in names:
            if names.count(name) > 1:
                raise ConfigError("models", name, "each model once")

    def model(self, name: str) -> Model | None:
        """The step of the model ladder with this name."""
        for model in self.models:
            if model.name == name:
                return model
        return None

    def rank(self, name: str) -> int:
        """The position of a model in the ladder; a model not in it stands below the first."""
        for position, model in enumerate(self.models):
            if model.name == name:
                return position
        return -1

    def costs_more(self, name: str, than: str) -> bool:
        """Does this model cost more than that one? By their costs where known, else by their order."""
        one, other = self.model(name), self.model(than)
        if one is not None and other is not None and one.cost and other.cost:
            return one.cost > other.cost
        return self.rank(name) > self.rank(than)

    def replace(self, **changes: Any) -> Policy:
        """The same policy with these fields changed."""
        return replace(self, **changes)

    def with_tries(self, action: Action, tries: int) -> Policy:
        """The same policy with another number of tries on the rungs of this action."""
        rungs = tuple(replace(rung, tries=tries) if rung.action is action else rung for rung in self.ladder.rungs)
        return self.replace(ladder=replace(self.ladder, rungs=rungs))


_BUDGETS: Final = MappingProxyType(
    {
        "task": Budget(attempts=20, seconds=3600),
        "call": Budget(attempts=12, seconds=600),
        "pipeline": Budget(attempts=20, seconds=7200),
        "model": Budget(attempts=16, seconds=3600),
        "crew": Budget(attempts=30, seconds=None),
        "helper": Budget(attempts=3, seconds=None),
    }
)


def _conservative(policy: Policy) -> Policy:
    halved = replace(policy.budget, attempts=min(policy.budget.attempts or 6, 6))
    policy = policy.replace(
        backoff=Backoff(base=2, cap=60), budget=halved, confirm=Confirm.MORE_EXPENSIVE, escalate_after=2
    )
    return policy.with_tries(Action.RETRY, 1)


def _aggressive(policy: Policy) -> Policy:
    doubled = replace(policy.budget, attempts=None if policy.budget.attempts is None else policy.budget.attempts * 2)
    policy = policy.replace(backoff=Backoff(base=0.5, cap=20), budget=doubled, retry_after_cap=180.0)
    return policy.with_tries(Action.RETRY, 6)


def _unattended(policy: Policy) -> Policy:
    """Nobody can be asked, and there is time: wait for a limit to reset rather than give up."""
    rungs = tuple(replace(rung, seconds=None) if rung.is_retry else rung for rung in policy.ladder.rungs)
    return policy.replace(
        ladder=replace(policy.ladder, rungs=rungs),
        unattended=True,
        budget=replace(policy.budget, seconds=86_400),
        retry_after_cap=21_600.0,
        backoff=Backoff(cap=300),
    )


def _helper(policy: Policy) -> Policy:
    """Whoever helps a crew's conductor: three fixes, where a worker gets five. Other ladders have no such rung."""
    return policy.with_tries(Action.FIX, 3)


def _off(policy: Policy) -> Policy:
    """No recovery at all: the first failure goes straight to the ladder's ending."""
    ending = policy.ladder.rungs[-1]
    only = replace(policy.ladder, rungs=(ending,), entry={}, default_entry=ending.name, loops=(), sizes={})
    return policy.replace(ladder=replace(only, rungs=(replace(ending, tries=0),)), retry=frozenset())


TEMPLATES: Final[Mapping[str, Callable[[Policy], Policy]]] = MappingProxyType(
    {
        "default": lambda policy: policy,
        "conservative": _conservative,
        "aggressive": _aggressive,
        "unattended": _unattended,
        "helper": _helper,
        "off": _off,
    }
)
ABOUT: Final[Mapping[str, str]] = MappingProxyType(
    {
        "default": "What the ladder says.",
        "conservative": "Few attempts, long pauses, and a person agrees before a dearer model takes over.",
        "aggressive": "Many attempts, short pauses, patient with servers that say when to come back.",
        "unattended": "Nobody can be asked: long waits are taken, and what needs a person ends blocked with a report.",
        "helper": "For the helpers of a crew's conductor: three fixes where a worker gets five; else as default.",
        "off": "No recovery: the first failure goes straight to the ladder's ending.",
    }
)


def preset(ladder: str | Ladder = "task", template: str = "default") -> Policy:
    """The policy of a ladder (by name or as a value) under one of the templates."""
    if isinstance(ladder, str):
        if ladder not in LADDERS:
            raise ConfigError("ladder", ladder, "one of " + ", ".join(LADDERS))
        chosen = LADDERS[ladder]
    else:
        chosen = ladder
    if template not in TEMPLATES:
        raise ConfigError("template", template, "one of " + ", ".join(TEMPLATES))
    base = Policy(ladder=chosen, name=template, budget=_BUDGETS.get(chosen.name, Budget()))
    return TEMPLATES[template](base)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstCase:
    """The most one incident can take under a policy; None where nothing bounds it."""

    attempts: int | None
    seconds: float | None
    dollars: float | None


def worst_case(policy: Policy) -> WorstCase:
    """What the ladder allows at the very most, its budgets applied."""
    again = sum(rung.tries for rung in policy.ladder.rungs if rung.scope is RungScope.ACTION)
    climbs = [rung for rung in policy.ladder.rungs if rung.scope is not RungScope.ACTION and rung.tries]
    tries = {rung.name: _tries(rung, policy) for rung in climbs}
    attempts = 1 + again + sum(count + again for count in tries.values() if count)
    dollars = sum(rung.cost * (tries[rung.name] + again) for rung in climbs)
    if any(rung.action in HAND_OVERS for rung in climbs):
        dollars += sum(model.cost for model in policy.models) * (1 + again)
    return WorstCase(
        attempts=attempts if policy.budget.attempts is None else min(attempts, policy.budget.attempts),
        seconds=min((s for s in (policy.budget.seconds, _seconds(policy)) if s is not None), default=None),
        dollars=dollars if policy.budget.dollars is None else min(dollars, policy.budget.dollars),
    )


def _tries(rung: Rung, policy: Policy) -> int:
    if rung.action in HAND_OVERS:
        return min(rung.tries, len(policy.models) + len(policy.agents))
    return rung.tries


def _seconds(policy: Policy) -> float | None:
    """The sum of the rungs' own limits and the first attempt's, where each has one."""
    limits = [rung.seconds for rung in policy.ladder.rungs if rung.action not in (Action.ASK, Action.SURFACE)]
    if policy.attempt_seconds is None or any(limit is None for limit in limits):
        return None
    return policy.attempt_seconds + sum(limit for limit in limits if limit is not None)
