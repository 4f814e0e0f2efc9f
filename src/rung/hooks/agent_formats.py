"""Hook formats of the supported agents: parse their events, and format our responses."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Final

# For each agent: its name for an event, and ours.
EVENTS: Final[Mapping[str, Mapping[str, str]]] = {
    "claude-code": {
        "SessionStart": "start",
        "UserPromptSubmit": "prompt",
        "PreToolUse": "before",
        "PostToolUseFailure": "failed",
        "PostToolBatch": "after",
        "Stop": "stop",
        "StopFailure": "broke",
        "PreCompact": "compact",
        "SessionEnd": "end",
    },
    "claude-sdk": {
        "UserPromptSubmit": "prompt",
        "PreToolUse": "before",
        "PostToolUse": "after",
        "PostToolUseFailure": "after",
        "Stop": "stop",
        "PreCompact": "compact",
    },
    "codex": {
        "SessionStart": "start",
        "UserPromptSubmit": "prompt",
        "PreToolUse": "before",
        "PostToolUse": "after",
        "Stop": "stop",
        "PreCompact": "compact",
        "SessionEnd": "end",
    },
    "gemini-cli": {  # no PreCompress: it fires before every turn, even if nothing is compressed
        "SessionStart": "start",
        "BeforeAgent": "prompt",
        "BeforeTool": "before",
        "AfterTool": "after",
        "AfterAgent": "stop",
        "SessionEnd": "end",
    },
}


class HookEvent:
    """One hook event in a common form. A step is (tool, arguments, result, error, call id)."""

    __slots__ = ("agent", "agent_event", "cwd", "name", "payload", "session", "steps", "stop_hook_active", "text")

    def __init__(self, agent: str, table: Mapping[str, Any]) -> None:
        self.agent = agent
        self.agent_event = str(table.get("hook_event_name", ""))
        self.name = EVENTS[agent].get(self.agent_event, "")
        worker = table.get("agent_id")
        self.session = str(table.get("session_id", "")) + (f"/{worker}" if worker else "")
        self.cwd = str(table.get("cwd") or ".")
        self.stop_hook_active = table.get("stop_hook_active") is True
        self.payload = table
        self.text = _text(self.name, table)
        self.steps = [_step(call) for call in _calls(self.name, table)]


def _text(name: str, table: Mapping[str, Any]) -> str:
    """Return the text of an event: the prompt, the last message or the error."""
    keys = {
        "prompt": ("prompt",),
        "stop": ("last_assistant_message", "prompt_response"),
        "failed": ("error",),
        "broke": ("error", "last_assistant_message"),
        "end": ("reason",),
        "compact": ("trigger",),
    }.get(name, ())
    return "\n".join(str(table[key]) for key in keys if table.get(key))


def _calls(name: str, table: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    if name not in ("before", "after", "failed"):
        return []
    calls = table.get("tool_calls")
    return [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else [table]


def _step(call: Mapping[str, Any]) -> tuple[str, Any, Any, bool | str, str]:
    response = call.get("tool_response")
    return (
        str(call.get("tool_name") or "?"),
        call.get("tool_input"),
        _result(response),
        call.get("error") or _error(response),
        str(call.get("tool_use_id", "")),
    )


def _result(response: Any) -> Any:
    """Return the part of a tool response that the model sees, if the agent reports it separately."""
    if isinstance(response, dict):
        for key in ("llmContent", "stdout", "output"):
            if isinstance(response.get(key), str):
                stderr = response.get("stderr")
                return response[key] + (f"\n{stderr}" if isinstance(stderr, str) and stderr else "")
    return response


def _error(response: Any) -> bool | str:
    """Return whether a tool response reports an error, as its message where there is one."""
    if isinstance(response, dict):
        error = response.get("error")
        if error:
            return str(error.get("message") or error) if isinstance(error, dict) else str(error)
        code = response.get("exit_code", response.get("exitCode"))
        return response.get("is_error") is True or response.get("success") is False or (type(code) is int and code != 0)
    if isinstance(response, str):
        head = response[:40].lower()
        return head.startswith(("exit code", "error:")) and not head.startswith(("exit code 0", "exit code: 0"))
    return False


class HookResponse:
    """Response to a hook event. An empty one lets the agent continue."""

    __slots__ = ("block", "context", "deny", "notice", "stop")

    def __init__(self, *, context: str = "", deny: str = "", block: str = "", stop: str = "", notice: str = "") -> None:
        self.context = context  # for the model
        self.deny = deny  # reject this tool call; the reason, for the model
        self.block = block  # do not let the agent finish yet; the reason, for the model
        self.stop = stop  # stop the agent; the reason, for the user
        self.notice = notice  # for the user


def format_response(event: HookEvent, response: HookResponse) -> dict[str, Any]:
    """Return the response as JSON in the agent's format."""
    table: dict[str, Any] = {}
    if response.notice:
        table["systemMessage"] = response.notice
    if response.stop:
        table |= {"continue": False, "stopReason": response.stop}
    if response.context:
        table["hookSpecificOutput"] = {"hookEventName": event.agent_event, "additionalContext": response.context}
    if event.agent == "gemini-cli":
        reason = response.deny or response.block
        return table | ({"decision": "deny", "reason": reason} if reason else {})
    if response.deny:
        table["hookSpecificOutput"] = {
            "hookEventName": event.agent_event,
            "permissionDecision": "deny",
            "permissionDecisionReason": response.deny,
        }
    if response.block:
        table |= {"decision": "block", "reason": response.block}
    return table
