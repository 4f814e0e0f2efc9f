"""Settings of single tools: `[tools.NAME]` of a policy file, applied to the failures of that tool."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.frozen_dict import FrozenDict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.core.domain.failures import Failure
    from rung.core.policy.policy import Policy

_NO_TABLES: Final[Mapping[str, Mapping[str, Any]]] = FrozenDict()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSettings:
    """Policy settings by the name of a tool. `is_bounded`: nobody has trusted their file, so they raise nothing."""

    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: _NO_TABLES)
    is_bounded: bool = False


NO_TOOLS: Final = ToolSettings()


def policy_for_failure(policy: Policy, failure: Failure) -> Policy:
    """Return the policy with the settings of the tool that failed."""
    return policy_for_tool(policy, failure.evidence.tool) if failure.evidence.tool else policy


def policy_for_tool(policy: Policy, tool: str) -> Policy:
    """Return the policy with the settings of a tool. An incident stays on its ladder: another one is not taken."""
    table = policy.tools.tables.get(tool)
    if not table:
        return policy
    from rung.core.policy.bounds import bounded
    from rung.core.policy.parser import parse_policy

    settings = {key: value for key, value in table.items() if key != "ladder"}
    changed = parse_policy(settings, f"tools.{tool}", policy)
    if [rung.name for rung in changed.ladder.rungs] != [rung.name for rung in policy.ladder.rungs]:
        changed = changed.replace(ladder=policy.ladder)  # such as that of the template `off`, which still is off
    return bounded(changed, policy) if policy.tools.is_bounded else changed
