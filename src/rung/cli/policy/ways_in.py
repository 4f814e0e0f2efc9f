"""Policies that each way in uses with a policy file: what a run, a gateway or a crew really does, and how long it waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rung.cli.output import format_seconds, pluralize
from rung.core.domain.ladder import WAITING_ACTIONS, Action
from rung.core.policy.templates import preset
from rung.core.policy.worst_case import longest_wait
from rung.core.recovery.stream_rules import for_streams
from rung.detectors.session_policy import session_policy

if TYPE_CHECKING:
    from rung.core.policy.policy import Policy
    from rung.wiring.settings_file import SettingsFile


def policies_of_ways_in(file: SettingsFile) -> dict[str, Policy]:
    """Return the policy of each way in. Pipelines and crews do not read the file's `[policy]`."""
    from rung.gateway.settings import settings_from, with_gateway_defaults

    book, table = file.book(), file.table
    if "gateway" in table:
        with file.errors():
            settings_from(table["gateway"], book, loops=table.get("loops"), recording=table.get("recording"))
    return {
        "library": book.default,
        "run": book.default,
        "mcp": book.default,
        "gateway": for_streams(with_gateway_defaults(book).policy_for(tool="gateway")),
        "pipeline": preset("pipeline"),
        "crew": preset("crew"),
        "hooks": session_policy(file.loops(), name="hooks"),
    }


def way_in_text(policy: Policy) -> dict[str, str]:
    """Return what a policy does after a failure as text, by key."""
    table = way_in_table(policy)
    budget = policy.budget
    attempts = "any number of attempts" if budget.attempts is None else pluralize(budget.attempts, "attempt")
    waits = format_seconds(table["longest_wait"]) if table["longest_wait"] else "none"
    return {
        "ladder": f"{table['ladder']}: {' → '.join(table['rungs'])}",
        "retries": str(table["retries"]),
        "budget": f"{attempts}, {format_seconds(budget.seconds)}",
        "patience": format_seconds(policy.patience) if table["patience"] else "none",
        "park": format_seconds(policy.park) if table["park"] else "none",
        "longest wait": f"{waits}, and {format_seconds(table['park'])} parked" if table["park"] else waits,
        "falls back to": ", ".join(table["models"]) or "nothing",
    }


def way_in_table(policy: Policy) -> dict[str, Any]:
    """Return what a policy does after a failure as a table: the longest wait is without the time parked."""
    rungs = policy.ladder.rungs
    actions = {rung.action for rung in rungs}
    return {
        "ladder": policy.ladder.name,
        "rungs": [rung.name for rung in rungs if rung.action not in WAITING_ACTIONS],
        "retries": sum(rung.tries for rung in rungs if rung.is_retry),
        "attempts": policy.budget.attempts,
        "seconds": policy.budget.seconds,
        "patience": policy.patience if Action.WAIT in actions else 0.0,
        "park": policy.park if Action.PARK in actions else 0.0,
        "longest_wait": longest_wait(policy),
        "models": [*(model.name for model in policy.models[1:]), *policy.agents],
    }
