"""Policy: a ladder with its backoff, budgets, models and settings; presets, templates and the worst case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.errors import ConfigError
from rung.core.domain.failures import NEVER_RETRYABLE, TRANSIENT, Kind
from rung.core.domain.frozen_dict import FrozenDict
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
from rung.core.policy.stalls import StallLimits
from rung.core.policy.tool_settings import NO_TOOLS, ToolSettings

if TYPE_CHECKING:
    from typing import Unpack

    from rung.core.domain.ladder import Action, Ladder
    from rung.core.policy.policy_settings import PolicyFields


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
EMPTY_TABLE: Final[Mapping[str, Any]] = FrozenDict()


@settings
class Policy:
    """Settings of a recovery: ladder, backoff, budgets and models. `rung.policy` makes one from a preset.

    Attributes:
        ladder: The ladder.
        tools: Settings of single tools, from a policy file.
    """

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
        "model, which they would use, too; otherwise it is not known. A model of another `provider` has another account. In the "
        "gateway: upstreams with the same key.",
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
        """Return the model of the ladder with this name; None if it is not in it.

        Args:
            name: Name of the model.
        """
        for model in self.models:
            if model.name == name:
                return model
        return None

    def rank(self, name: str) -> int:
        """Return the position of a model in the ladder; -1 if it is not in it.

        Args:
            name: Name of the model.
        """
        for position, model in enumerate(self.models):
            if model.name == name:
                return position
        return -1

    def costs_more(self, name: str, than: str) -> bool:
        """Return whether one model costs more than another: by cost if both are known, else by position.

        Args:
            name: Name of the model.
            than: Name of the other model.
        """
        model, other = self.model(name), self.model(than)
        if model is not None and other is not None and model.cost and other.cost:
            return model.cost > other.cost
        return self.rank(name) > self.rank(than)

    def replace(self, **changes: Unpack[PolicyFields]) -> Policy:
        """Return a copy with these fields changed.

        Args:
            **changes: Fields and their new values.

        Raises:
            ConfigError: A value is not allowed.
        """
        fields: dict[str, Any] = {**changes}
        return replace(self, **fields)

    def with_patience_at_most(self, seconds: float | None) -> Policy:
        """Return a policy that waits no longer for a failing service than the caller for its answer.

        Args:
            seconds: Seconds that the caller waits; None: any time.
        """
        return self if seconds is None or seconds >= self.patience else self.replace(patience=max(0.0, seconds))

    def with_tries(self, action: Action, tries: int) -> Policy:
        """Return a copy with another number of tries on the rungs of this action.

        Args:
            action: Action of the rungs.
            tries: Number of tries, 0 or more.
        """
        rungs = tuple(replace(rung, tries=tries) if rung.action is action else rung for rung in self.ladder.rungs)
        return self.replace(ladder=replace(self.ladder, rungs=rungs))
