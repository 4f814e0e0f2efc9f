"""Our hooks inside a program that uses the Claude Agent SDK: `ClaudeAgentOptions(hooks=hooks())`.

The same answers as in the settings of Claude Code, given in the program's own process.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

from claude_agent_sdk import HookMatcher

from rung.hooks.crash_log import crashed
from rung.hooks.data_dir import directory
from rung.hooks.handlers import answered
from rung.hooks.spool import wake_drain

EVENTS: Final = ("UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop", "PreCompact")


def hooks(place: str | None = None) -> dict[Any, list[HookMatcher]]:
    """The hooks, keeping what they remember in this directory (default: the one that all hooks share)."""
    folder = place or directory()

    async def hook(given: Any, call: str | None, context: Any) -> Any:  # noqa: ARG001  # the SDK's signature
        return await asyncio.to_thread(_answer, folder, given)

    return {event: [HookMatcher(hooks=[hook])] for event in EVENTS}


def _answer(place: str, given: Any) -> dict[str, Any]:
    """Whatever goes wrong here, the agent goes on."""
    try:
        answer, wake, _ = answered("claude-sdk", place, json.dumps(given, default=str).encode())
        if wake:
            wake_drain(place)
        table: dict[str, Any] = json.loads(answer)
    except Exception as error:  # noqa: BLE001  # as in every hook of ours
        crashed(place, "claude-sdk", error)
        return {}
    if "continue" in table:
        table["continue_"] = table.pop("continue")
    return table
