"""Types of the settings that `rung.policy` accepts as keyword arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from rung.core.domain.failures import Kind
    from rung.core.domain.ladder import Ladder
    from rung.core.policy.backoff import Backoff
    from rung.core.policy.budget import Budget
    from rung.core.policy.learn_settings import LearnSettings
    from rung.core.policy.policy import Confirm, Model, Sticky
    from rung.core.policy.stalls import StallLimits
    from rung.core.policy.tool_settings import ToolSettings


class PolicySettings(TypedDict, total=False):
    """Settings of a policy besides its ladder and template. `rung.policy` describes each of them.

    A value may be given as the object that holds it, or as the plain table of a policy file.
    """

    name: str
    attempts: int | None
    seconds: float | None
    dollars: float | None
    budget: Budget | Mapping[str, Any]
    retries: int
    tries: Mapping[str, int]
    entry: Mapping[str, str]
    backoff: Backoff | Mapping[str, Any]
    models: Sequence[str | Model | Mapping[str, Any]]
    agents: Sequence[str]
    same_account: Sequence[str] | None
    retry: Collection[Kind | str]
    retry_after_cap: float
    patience: float
    park: float
    attempt_seconds: float | None
    stalls: StallLimits | Mapping[str, Any]
    retry_budget: bool
    breaker: bool
    auto_escalate: bool
    escalate_after: int | None
    confirm: str
    sticky: str
    unattended: bool
    checkpoints: bool
    report: str
    prompts: Mapping[str, str]
    resume_sessions: bool
    elide_text: bool
    learn: bool | LearnSettings | Mapping[str, Any]


class PolicyFields(TypedDict, total=False):
    """Fields of a policy, as arguments of `Policy.replace`."""

    ladder: Ladder
    name: str
    backoff: Backoff
    budget: Budget
    models: tuple[Model, ...]
    agents: tuple[str, ...]
    same_account: tuple[str, ...] | None
    retry: frozenset[Kind]
    retry_after_cap: float
    patience: float
    park: float
    attempt_seconds: float | None
    stalls: StallLimits
    retry_budget: bool
    breaker: bool
    auto_escalate: bool
    escalate_after: int | None
    confirm: Confirm
    sticky: Sticky
    unattended: bool
    checkpoints: bool
    report: str
    prompts: Mapping[str, str]
    resume_sessions: bool
    elide_text: bool
    learn: bool | LearnSettings
    tools: ToolSettings
