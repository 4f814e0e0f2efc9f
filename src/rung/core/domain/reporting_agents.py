"""Agents that run their own loop and report to Rung: over hooks, or over MCP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

HOOKS_POLICY: Final = "hooks"  # name of the policy of an incident that hooks have reported
MCP_AGENT: Final = "mcp"  # the agent of a request that was reported over MCP
# The command that each agent with hooks is run by without a terminal; its prompt comes on standard input.
COMMANDS: Final[Mapping[str, tuple[str, ...]]] = {
    "claude-code": ("claude", "-p"),
    "codex": ("codex", "exec", "-"),
    "gemini-cli": ("gemini", "--prompt="),
}
# The command by which a person continues a session in a terminal; the id of the session follows.
CONTINUED_BY: Final[Mapping[str, str]] = {
    "claude-code": "claude --resume",
    "codex": "codex resume",
    "gemini-cli": "gemini --resume",
}
