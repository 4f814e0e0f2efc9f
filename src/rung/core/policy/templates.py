"""Templates of policies, and the policy of a ladder with a template applied."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from rung.core.domain.errors import ConfigError
from rung.core.domain.ladder import Action, Ladder
from rung.core.domain.settings_schema import suggest_names
from rung.core.policy.backoff import Backoff
from rung.core.policy.budget import Budget
from rung.core.policy.policy import PATIENCE_SECONDS, Confirm, Policy
from rung.core.policy.presets import LADDERS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

LONG_PATIENCE_SECONDS: Final = 600.0
UNATTENDED_PATIENCE_SECONDS: Final = 21_600.0  # of providers' published incidents 44 % end in an hour, 91 % in six
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
        raise ConfigError("template", template, "one of " + ", ".join(TEMPLATES) + suggest_names(template, TEMPLATES))
    park = PARK_SECONDS if chosen.name in _PARKING else 0.0
    patience = 0.0 if chosen.name in _NEVER_WAITING else PATIENCE_SECONDS
    budget = _BUDGETS.get(chosen.name, Budget())
    base = Policy(ladder=chosen, name=template, budget=budget, patience=patience, park=park)
    return TEMPLATES[template](base)
