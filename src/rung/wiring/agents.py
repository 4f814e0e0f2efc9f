"""Sessions of the agents of a way in: the agents that its settings file describes, and how it reports them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rung.adapters.system.agent_sessions.agent_sessions import AgentSessions
from rung.core.policy.presets import LADDERS
from rung.wiring.settings_file import find, named

if TYPE_CHECKING:
    from collections.abc import Callable


def agent_sessions(report: Callable[[str], object], policy: str | None = None) -> AgentSessions:
    """Return the sessions, with the `[[agents]]` of the named policy file, or of the `rung.toml` in the working directory.

    A preset ladder in place of a file describes no agents.
    """
    file = find(quiet=True) if policy is None else None if policy in LADDERS else named(policy)
    return AgentSessions(() if file is None else file.agents(), report)
