"""Each agent's way of telling us what happened, and of being told: events in, answers out."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Final

# What an event is to us, by the agent's own name for it.
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
    "gemini-cli": {  # its PreCompress comes before every turn, whether anything is compressed or not
        "SessionStart": "start",
        "BeforeAgent": "prompt",
        "BeforeTool": "before",
        "AfterTool": "after",
        "AfterAgent": "stop",
        "SessionEnd": "end",
    },
}


class HookEvent:
    """One event, whoever told it. `steps` are tool, arguments, result, error and the call's id."""

    __slots__ = ("active", "agent", "cwd", "name", "said", "session", "steps", "text", "told")

    def __init__(self, agent: str, table: Mapping[str, Any]) -> None:
        self.agent = agent
        self.said = str(table.get("hook_event_name", ""))
        self.name = EVENTS[agent].get(self.said, "")
        worker = table.get("agent_id")
        self.session = str(table.get("session_id", "")) + (f"/{worker}" if worker else "")
        self.cwd = str(table.get("cwd") or ".")
        self.active = table.get("stop_hook_active") is True
        self.told = table
        self.text = _text(self.name, table)
        self.steps = [_step(call) for call in _calls(self.name, table)]


def _text(name: str, table: Mapping[str, Any]) -> str:
    """The words an event is about."""
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
    """What the agent itself saw of a result, where that is said apart."""
    if isinstance(response, dict):
        for key in ("llmContent", "stdout", "output"):
            if isinstance(response.get(key), str):
                rest = response.get("stderr")
                return response[key] + (f"\n{rest}" if isinstance(rest, str) and rest else "")
    return response


def _error(response: Any) -> bool | str:
    """Does a result say that it is an error?"""
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
    """What we say to an event. Nothing: we were only told."""

    __slots__ = ("block", "context", "deny", "notice", "stop")

    def __init__(self, *, context: str = "", deny: str = "", block: str = "", stop: str = "", notice: str = "") -> None:
        self.context = context  # for the model
        self.deny = deny  # this call is not made; why, for the model
        self.block = block  # it may not finish yet; why, for the model
        self.stop = stop  # the agent is stopped; why, for the user
        self.notice = notice  # for the user


def written(heard: HookEvent, answer: HookResponse) -> dict[str, Any]:
    """The answer in the agent's own form."""
    table: dict[str, Any] = {}
    if answer.notice:
        table["systemMessage"] = answer.notice
    if answer.stop:
        table |= {"continue": False, "stopReason": answer.stop}
    if answer.context:
        table["hookSpecificOutput"] = {"hookEventName": heard.said, "additionalContext": answer.context}
    if heard.agent == "gemini-cli":
        why = answer.deny or answer.block
        return table | ({"decision": "deny", "reason": why} if why else {})
    if answer.deny:
        table["hookSpecificOutput"] = {
            "hookEventName": heard.said,
            "permissionDecision": "deny",
            "permissionDecisionReason": answer.deny,
        }
    if answer.block:
        table |= {"decision": "block", "reason": answer.block}
    return table
