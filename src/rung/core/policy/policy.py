"""Policy: a ladder with its backoff, budgets, models and settings; presets, templates and the worst case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.errors import ConfigError
from rung.core.domain.failures import NEVER_RETRYABLE, TRANSIENT, Kind
from rung.core.domain.frozen_dict import FrozenDict
from rung.core.domain.ladder import HANDOVER_ACTIONS, WAITING_ACTIONS, Action, Ladder, Rung, RungScope
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
from rung.core.policy.learn_settings import LearnSettings
from rung.core.policy.presets import LADDERS
from rung.core.policy.stalls import StallLimits
from rung.core.policy.tool_settings import NO_TOOLS, ToolSettings

if TYPE_CHECKING:
    from collections.abc import Callable


class Confirm(StrEnum):
    """When a person must approve a handover."""

    NEVER = "never"
    MORE_EXPENSIVE = "more_expensive"
    ALWAYS = "always"


class Sticky(StrEnum):
    """How long a session stays on the model that it was handed over to."""

    CALL = "call"
    SESSION = "session"


@settings
class Model:
    """One model of the model ladder."""

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


def _is_learn(value: object) -> bool:
    return isinstance(value, bool | LearnSettings)


DEFAULT_RETRY: Final = TRANSIENT | {Kind.MALFORMED_OUTPUT, Kind.TOOL_ERROR}
BLOCKED_REPORT: Final = "tasks/pipeline-blocked.md"  # default of the command line
PATIENCE_SECONDS: Final = 300.0  # a person who waits for the result bears as much
LONG_PATIENCE_SECONDS: Final = 600.0
UNATTENDED_PATIENCE_SECONDS: Final = 21_600.0  # of providers' published incidents 44 % end in an hour, 91 % in six
EMPTY_TABLE: Final[Mapping[str, Any]] = FrozenDict()


@settings
class Policy:
    """Settings of a recovery: everything `decide` needs besides the incident."""

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
    same_account: tuple[str, ...] | None = setting(
        optional(list_of(ANY_TEXT)),
        "Agents known to draw on the first agent's account: an exhausted quota is not handed over to them. The others have "
        "accounts of their own, and are tried before another model. Left out: all agents share it if the request names a "
        "model, which they would use, too; otherwise it is not known. In the gateway: upstreams with the same key.",
        default=None,
    )
    retry: frozenset[Kind] = setting(
        KINDS,
        "Kinds whose request may be repeated unchanged. The failure must be retryable as well. `server_error` covers the "
        "transient failures that count as one, too: `overloaded` (503), 504, `network` and `stream_interrupted`.",
        default=DEFAULT_RETRY,
    )
    retry_after_cap: float = setting(
        SECONDS, "Longest retry-after hint that is waited for; above it, the ladder climbs.", default=60.0
    )
    patience: float = setting(
        SECONDS,
        "Longest wait for a failing service to come back, in seconds, when no other rung can help; 0: none. A wait is not "
        "an attempt. The template `aggressive` sets 600, `unattended` 21600, `off` 0; the ladder `crew` has 0.",
        default=PATIENCE_SECONDS,
    )
    park: float = setting(
        SECONDS,
        "Longest time until a limit reopens that a run is parked for, in seconds, when no other rung can help; 0: none. "
        "Time parked counts against no time limit, and the attempt after it is not counted.",
        default=0.0,
    )
    attempt_seconds: float | None = setting(
        optional(POSITIVE_SECONDS),
        "Time limit of one attempt. Left out: only the limits of its rung and of the incident apply.",
        default=None,
    )
    stalls: StallLimits = setting(
        _part_type(StallLimits),
        "When an attempt without progress is ended as `stalled`, by the journal's history of similar attempts.",
        default_factory=StallLimits,
    )
    retry_budget: bool = setting(
        FLAG, "Whether the retry budget that all calls of a process share limits the retries.", default=True
    )
    breaker: bool = setting(
        FLAG, "Whether the circuit breaker of a model, a function or an upstream rejects attempts.", default=True
    )
    auto_escalate: bool = setting(
        FLAG,
        "Whether another model may take over without a person's approval, on every ladder. Another agent, or another "
        "upstream of the gateway, with the same model needs none.",
        default=True,
    )
    escalate_after: int | None = setting(
        optional(WHOLE),
        "Number of retries, of any kind, after which another model takes over from one that fails: not later, and with "
        "fewer only if a person approves. 0: at the first failure. Left out: when the rungs below are used up.",
        default=None,
    )
    confirm: Confirm = setting(
        one_of(Confirm), "When a person must approve a handover to another model or agent.", default=Confirm.NEVER
    )
    sticky: Sticky = setting(
        one_of(Sticky), "How long a session stays on the model that it was handed over to.", default=Sticky.CALL
    )
    unattended: bool = setting(
        FLAG, "Whether the run is unattended: a question ends it as blocked, with a report.", default=False
    )
    checkpoints: bool = setting(FLAG, "Take a checkpoint before a rung that changes the work.", default=True)
    report: str = setting(
        ANY_TEXT,
        "File that the report of a blocked incident is appended to. Empty: no file. "
        f"Default of the command line: `{BLOCKED_REPORT}`.",
        default="",
    )
    prompts: Mapping[str, str] = setting(
        Type("a table: prompt id = text", lambda value: isinstance(value, Mapping)),
        "Replacement texts of [recovery prompts](prompts.md).",
        default_factory=lambda: EMPTY_TABLE,
    )
    resume_sessions: bool = setting(
        FLAG,
        "Whether a command-line agent that failed continues its own session, where Rung knows how.",
        default=True,
    )
    elide_text: bool = setting(
        FLAG,
        "Whether compaction may cut the middle of a long text that nothing else makes small enough. Otherwise the context "
        "limit is reported.",
        default=False,
    )
    learn: LearnSettings = setting(
        Type("true or false, or a table: `enabled`, `min_attempts`, `explore`, `window`", _is_learn),
        "Whether recoveries follow what helped before, by the journal: they enter at the rung that fixed this failure, and "
        "leave out rungs that surely succeed less often than the next one.",
        default_factory=LearnSettings,
    )
    tools: ToolSettings = NO_TOOLS

    def __post_init__(self) -> None:
        learn: object = self.learn
        if isinstance(learn, bool):
            object.__setattr__(self, "learn", LearnSettings(enabled=learn))
        bad = sorted(self.retry & NEVER_RETRYABLE)
        if bad:
            raise ConfigError(
                "retry", bad[0].value, "a kind whose request may succeed unchanged; this kind is never retried"
            )
        object.__setattr__(self, "ladder", self.ladder.with_waiting(park=self.park, patience=self.patience))
        names = [model.name for model in self.models]
        for name in names:
            if names.count(name) > 1:
                raise ConfigError("models", name, "each model once")

    @property
    def retries(self) -> int:
        """Return how often a request may be repeated unchanged before the ladder climbs."""
        return sum(rung.tries for rung in self.ladder.rungs if rung.is_retry)

    @property
    def is_off(self) -> bool:
        """Whether retrying is disabled: no kind is retried, or no retry is left of the ladder's."""
        return not self.retry or (not self.retries and any(rung.is_retry for rung in self.ladder.rungs))

    def model(self, name: str) -> Model | None:
        """Return the model of the ladder with this name."""
        for model in self.models:
            if model.name == name:
                return model
        return None

    def rank(self, name: str) -> int:
        """Return the position of a model in the ladder; -1 if it is not in it."""
        for position, model in enumerate(self.models):
            if model.name == name:
                return position
        return -1

    def costs_more(self, name: str, than: str) -> bool:
        """Whether one model costs more than another: by cost if both are known, else by position."""
        model, other = self.model(name), self.model(than)
        if model is not None and other is not None and model.cost and other.cost:
            return model.cost > other.cost
        return self.rank(name) > self.rank(than)

    def replace(self, **changes: Any) -> Policy:
        """Return a copy with these fields changed."""
        return replace(self, **changes)

    def with_patience_at_most(self, seconds: float | None) -> Policy:
        """Return a policy that waits no longer for a failing service than the caller for its answer; None: any time."""
        return self if seconds is None or seconds >= self.patience else self.replace(patience=max(0.0, seconds))

    def with_tries(self, action: Action, tries: int) -> Policy:
        """Return a copy with another number of tries on the rungs of this action."""
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

PARK_SECONDS: Final = 6 * 3_600.0  # a window of five hours, and slack
UNATTENDED_PARK_SECONDS: Final = 8 * 86_400.0  # a week's window, and slack
_PARKING: Final = frozenset({"task", "pipeline", "model"})  # a call has a caller that waits; a crew parks its pool
_NEVER_WAITING: Final = frozenset({"crew", "helper"})  # ladders of a loop that schedules its own waits


def _conservative(policy: Policy) -> Policy:
    budget = replace(policy.budget, attempts=min(policy.budget.attempts or 6, 6))
    policy = policy.replace(
        backoff=Backoff(base=2, cap=60), budget=budget, confirm=Confirm.MORE_EXPENSIVE, escalate_after=1
    )
    return policy.with_tries(Action.RETRY, 1)


def _aggressive(policy: Policy) -> Policy:
    attempts, seconds = policy.budget.attempts, policy.budget.seconds
    doubled = replace(
        policy.budget,
        attempts=None if attempts is None else attempts * 2,
        seconds=None if seconds is None else seconds * 2,
    )
    policy = policy.replace(
        backoff=Backoff(base=0.5, cap=20),
        budget=doubled,
        retry_after_cap=180.0,
        patience=LONG_PATIENCE_SECONDS if policy.patience else 0.0,
    )
    return policy.with_tries(Action.RETRY, 6)


def _unattended(policy: Policy) -> Policy:
    """Return a policy that waits for limits to reset, for hours if needed, instead of asking a person."""
    rungs = tuple(replace(rung, seconds=None) if rung.is_retry else rung for rung in policy.ladder.rungs)
    return policy.replace(
        ladder=replace(policy.ladder, rungs=rungs),
        unattended=True,
        budget=replace(policy.budget, seconds=86_400),
        retry_after_cap=300.0,
        park=UNATTENDED_PARK_SECONDS,
        patience=UNATTENDED_PATIENCE_SECONDS if policy.patience else 0.0,
        backoff=Backoff(cap=300),
    )


def _helper(policy: Policy) -> Policy:
    """Return a policy for the helpers of a crew's conductor: three fixes."""
    return policy.with_tries(Action.FIX, 3)


def _off(policy: Policy) -> Policy:
    """Return a policy without recovery: the first failure goes to the ladder's last rung."""
    last = policy.ladder.rungs[-1]
    only = replace(policy.ladder, rungs=(last,), entry={}, default_entry=last.name, loops=(), sizes={})
    return policy.replace(ladder=replace(only, rungs=(replace(last, tries=0),)), retry=frozenset(), patience=0.0)


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
TEMPLATE_DESCRIPTIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "default": "The ladder's own settings.",
        "conservative": "Few attempts, long waits; a person approves a more expensive model.",
        "aggressive": "Many attempts, short waits; long retry-after hints are waited for.",
        "unattended": "For runs without a person: waits are long, and a question ends the run as blocked, with a report.",
        "helper": "For the helpers of a crew's conductor: three fixes instead of a worker's four.",
        "off": "No recovery: the first failure goes to the ladder's last rung.",
    }
)


def preset(ladder: str | Ladder = "task", template: str = "default") -> Policy:
    """Return the policy of a ladder (a name or a Ladder) with a template applied."""
    if isinstance(ladder, str):
        if ladder not in LADDERS:
            raise ConfigError("ladder", ladder, "one of " + ", ".join(LADDERS))
        chosen = LADDERS[ladder]
    else:
        chosen = ladder
    if template not in TEMPLATES:
        raise ConfigError("template", template, "one of " + ", ".join(TEMPLATES))
    park = PARK_SECONDS if chosen.name in _PARKING else 0.0
    patience = 0.0 if chosen.name in _NEVER_WAITING else PATIENCE_SECONDS
    budget = _BUDGETS.get(chosen.name, Budget())
    base = Policy(ladder=chosen, name=template, budget=budget, patience=patience, park=park)
    return TEMPLATES[template](base)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstCase:
    """Upper bounds of one incident under a policy; None: unbounded."""

    attempts: int | None
    seconds: float | None
    dollars: float | None


def worst_case(policy: Policy) -> WorstCase:
    """Return the most attempts, seconds and dollars that the ladder and its budgets allow, without the time parked."""
    if policy.is_off:
        limits = (policy.budget.seconds, policy.attempt_seconds)
        return WorstCase(attempts=1, seconds=min((s for s in limits if s is not None), default=None), dollars=0.0)
    retries = sum(rung.tries for rung in policy.ladder.rungs if rung.scope is RungScope.ACTION)
    climbs = [rung for rung in policy.ladder.rungs if rung.scope is not RungScope.ACTION and rung.tries]
    climbs = [rung for rung in climbs if rung.action not in WAITING_ACTIONS]  # their repeats are not attempts
    attempts_by_rung = {rung.name: _max_attempts(rung, policy, retries) for rung in climbs}
    attempts = 1 + retries + sum(attempts_by_rung.values())
    dollars = sum(rung.cost * attempts_by_rung[rung.name] for rung in climbs)
    if any(rung.action in HANDOVER_ACTIONS for rung in climbs):
        dollars += sum(model.cost for model in policy.models) * (1 + retries)
    return WorstCase(
        attempts=attempts if policy.budget.attempts is None else min(attempts, policy.budget.attempts),
        seconds=min((s for s in (policy.budget.seconds, _max_seconds(policy)) if s is not None), default=None),
        dollars=dollars if policy.budget.dollars is None else min(dollars, policy.budget.dollars),
    )


def _max_attempts(rung: Rung, policy: Policy, retries: int) -> int:
    """Return the most attempts on a rung, with the retries after it: each model has its own."""
    if rung.action in HANDOVER_ACTIONS:
        return min(rung.tries, len(policy.models) + len(policy.agents)) * (1 + retries)
    return rung.tries + retries


def _max_seconds(policy: Policy) -> float | None:
    """Return the most seconds of the first attempt, of the retries before the first climb, and of the rungs above.

    None if one of them has no limit.
    """
    rungs = [rung for rung in policy.ladder.rungs if rung.action not in (Action.PARK, Action.ASK, Action.SURFACE)]
    climbs = [rung.seconds for rung in rungs if not rung.is_retry]
    if policy.attempt_seconds is None or None in climbs:
        return None
    retries = [rung for rung in rungs if rung.is_retry]
    last_probe = any(rung.action is Action.WAIT for rung in rungs)  # it may start when the patience ends
    attempts = policy.attempt_seconds * (1 + last_probe + sum(rung.tries for rung in retries))
    waits = sum(_longest_wait(policy, retry) for rung in retries for retry in range(1, rung.tries + 1))
    return attempts + waits + sum(limit for limit in climbs if limit is not None)


def longest_wait(policy: Policy) -> float:
    """Return the most seconds that one incident waits: before retries and for a failing service, without time parked."""
    retries = [rung for rung in policy.ladder.rungs if rung.is_retry]
    waits = sum(_longest_wait(policy, retry) for rung in retries for retry in range(1, rung.tries + 1))
    if any(rung.action is Action.WAIT for rung in policy.ladder.rungs):
        waits += policy.patience
    return waits if policy.budget.seconds is None else min(waits, policy.budget.seconds)


def _longest_wait(policy: Policy, retry: int) -> float:
    """Return the longest wait before the n-th retry, with or without a server's hint."""
    return max(policy.backoff.wait(retry, 1.0, hint) for hint in (None, policy.retry_after_cap))
