"""Which messages of a conversation compaction keeps: system prompts, the task, the user's last request, the latest turns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    Message = Mapping[str, Any]

RECENT_MESSAGES: Final = 6  # latest messages, which most steps leave unchanged
_MAX_TASK_MESSAGES: Final = 4  # more user messages at the beginning are the conversation itself


def kept_indices(messages: Sequence[Message]) -> set[int]:
    """Return the indices of the messages that stay; the others may be clipped, left out or summarised.

    The latest messages do not begin with a result whose call is left out. Agents write the task as several messages:
    Codex sends the environment before the prompt.
    """
    latest = _latest_start(messages)
    task = _task_end(messages)
    kept = {index for index, each in enumerate(messages) if index < task or index >= latest or is_system(each)}
    request = _last_request(messages)
    return kept | {request} if request is not None and task <= request < latest else kept


def is_system(message: Message) -> bool:
    """Whether a message is a system prompt."""
    return message.get("role") in ("system", "developer")


def is_result_item(message: Message) -> bool:
    """Whether a message is the separate result of a tool call (Responses API)."""
    return str(message.get("type", "")).endswith("_call_output")


def block_type(block: Any) -> str:
    """Return the type of a content block; empty if there is none."""
    return str(block.get("type", "")) if isinstance(block, Mapping) else ""


def _latest_start(messages: Sequence[Message]) -> int:
    start = max(0, len(messages) - RECENT_MESSAGES)
    while start > 0 and _needs_previous(messages[start - 1], messages[start]):
        start -= 1
    return start


def _needs_previous(previous: Message, message: Message) -> bool:
    """Whether a message cannot begin a conversation: a result, a call after its reasoning, the next of parallel calls."""
    if message.get("role") == "tool" or is_result_item(message) or _has_results(message):
        return True
    is_call = str(message.get("type", "")).endswith("_call")
    return is_call and (previous.get("type") == "reasoning" or str(previous.get("type", "")).endswith("_call"))


def _task_end(messages: Sequence[Message]) -> int:
    """Return the index after the task: after the user's messages before the first of the model, or after the first."""
    first = next((index for index, each in enumerate(messages) if not is_system(each)), len(messages))
    end = next(
        (index for index, each in enumerate(messages) if not is_system(each) and not _is_request(each)), len(messages)
    )
    return end if first < end <= first + _MAX_TASK_MESSAGES else first + 1


def _last_request(messages: Sequence[Message]) -> int | None:
    """Return the index of the last message of the user that the model has begun to work on."""
    for index in range(len(messages) - 1, 0, -1):
        if _is_request(messages[index - 1]) and _is_of_model(messages[index]):
            return index - 1
    return None


def _is_request(message: Message) -> bool:
    return message.get("role") == "user" and not _has_results(message)


def _is_of_model(message: Message) -> bool:
    kind = str(message.get("type", ""))
    return message.get("role") == "assistant" or kind == "reasoning" or kind.endswith("_call")


def _has_results(message: Message) -> bool:
    content = message.get("content")
    return isinstance(content, list) and any(block_type(block) == "tool_result" for block in content)
