"""Hooks for programs that use the Claude Agent SDK: `ClaudeAgentOptions(hooks=hooks())`.

They behave like the hooks installed for Claude Code, and run in the program's process.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

from claude_agent_sdk import HookMatcher

from rung.hooks.crash_log import log_crash
from rung.hooks.data_dir import default_data_dir
from rung.hooks.handlers import handle_event
from rung.hooks.spool import start_drain

EVENTS: Final = ("UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop", "PreCompact")


def hooks(data_dir: str | None = None) -> dict[Any, list[HookMatcher]]:
    """Return the hooks; their state is kept in `data_dir` (default: the directory that all hooks share)."""
    folder = data_dir or default_data_dir()

    async def hook(payload: Any, call: str | None, context: Any) -> Any:  # noqa: ARG001  # the SDK's signature
        return await asyncio.to_thread(_answer, folder, payload)

    return {event: [HookMatcher(hooks=[hook])] for event in EVENTS}


def _answer(data_dir: str, payload: Any) -> dict[str, Any]:
    """Return the response to an event; empty on any error, so that the agent is not affected."""
    try:
        answer, needs_drain, _ = handle_event("claude-sdk", data_dir, json.dumps(payload, default=str).encode())
        if needs_drain:
            start_drain(data_dir)
        table: dict[str, Any] = json.loads(answer)
    except Exception as error:  # noqa: BLE001  # a failing hook must never affect the agent
        log_crash(data_dir, "claude-sdk", error)
        return {}
    if "continue" in table:
        table["continue_"] = table.pop("continue")
    return table
