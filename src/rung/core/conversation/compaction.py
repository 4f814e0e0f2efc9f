"""Compact a conversation to a target size, step by step, the least harmful step first.

Tool calls and their results stay paired, and recent messages stay unchanged until the last step. Tool results are
recognized in content blocks, in messages with the role `tool`, and as separate items (Responses API).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from rung.core.classify.evidence import clip

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.core.domain.failures import Failure

    Message = Mapping[str, Any]

RECENT_MESSAGES: Final = 6  # latest messages, which most steps leave unchanged
OMITTED_TEXT: Final = "[left out to save context]"
DUPLICATE_TEXT: Final = "[left out: the same result appears again below]"
_MIN_STUBBED_CHARACTERS: Final = 200  # a shorter result is not worth replacing
_CLIPPED_CHARACTERS: Final = 2_000
_MAX_SUMMARIZED_CHARACTERS: Final = 200_000
SIZE_MARGIN: Final = 0.9  # share of the limit to aim at: token counts are estimates
_DEFAULT_SHARE: Final = 0.5  # for failures that state no token counts
_MEDIA_TYPES: Final = frozenset({"image", "image_url", "document", "input_image", "input_file", "file", "input_audio"})


def target_characters(failure: Failure, characters: int) -> int:
    """Return the target size of a conversation of this size, by the token counts of its failure."""
    tokens = failure.tokens
    share = SIZE_MARGIN * tokens.limit / tokens.asked if tokens is not None and tokens.asked else _DEFAULT_SHARE
    return int(characters * min(share, SIZE_MARGIN))


def compact_messages(messages: Sequence[Message], target: int) -> list[Message]:
    """Apply steps until the messages have at most `target` characters, or no step is left."""
    compacted = list(messages)
    for step in (_drop_duplicate_results, _drop_old_results, _drop_old_media, _clip_old_messages, _clip_results):
        if count_characters(compacted) <= target:
            break
        compacted = step(compacted)
    return compacted


SUMMARY_PROMPT: Final = (
    "Summarise the conversation below for someone who takes it over: the task, the findings, the decisions, the "
    "changes made, and what is still open. Facts only, no preface.\n\n"
)


def summarizable_text(messages: Sequence[Message]) -> str:
    """Return the messages between the task and the latest ones as text to summarize."""
    return clip(
        json.dumps(list(messages)[1:-RECENT_MESSAGES], ensure_ascii=False, default=repr), _MAX_SUMMARIZED_CHARACTERS
    )


def with_summary(messages: Sequence[Message], summary: str) -> list[Message]:
    """Return the task, a summary of the messages in between, and the latest messages."""
    message = {"role": "user", "content": f"[Summary of the messages in between]\n{summary}"}
    return [messages[0], message, *list(messages)[max(1, len(messages) - RECENT_MESSAGES) :]]


def count_characters(messages: Sequence[Message]) -> int:
    """Return the number of characters of the messages as JSON."""
    return len(json.dumps(list(messages), ensure_ascii=False, default=repr))


def _drop_duplicate_results(messages: list[Message]) -> list[Message]:
    """Keep only the last of equal results, such as repeated reads of one file."""
    seen: set[str] = set()

    def shorten(content: Any) -> Any:
        text = json.dumps(content, ensure_ascii=False, default=repr)
        if len(text) < _MIN_STUBBED_CHARACTERS:
            return content
        if text in seen:
            return DUPLICATE_TEXT
        seen.add(text)
        return content

    return [_map_results(message, shorten) for message in reversed(messages)][::-1]


def _drop_old_results(messages: list[Message]) -> list[Message]:
    def shorten(content: Any) -> Any:
        return OMITTED_TEXT if len(json.dumps(content, default=repr)) >= _MIN_STUBBED_CHARACTERS else content

    return [_map_results(message, shorten) for message in messages[:-RECENT_MESSAGES]] + messages[-RECENT_MESSAGES:]


def _drop_old_media(messages: list[Message]) -> list[Message]:
    return [_without_media(message) for message in messages[:-2]] + messages[-2:]


def _clip_old_messages(messages: list[Message]) -> list[Message]:
    """Clip old messages to their head and tail; the first message is the task and stays."""
    return [
        messages[0],
        *map(_clip_message, messages[1:-RECENT_MESSAGES]),
        *messages[max(1, len(messages) - RECENT_MESSAGES) :],
    ]


def _clip_results(messages: list[Message]) -> list[Message]:
    def shorten(content: Any) -> Any:
        if isinstance(content, str):
            return clip(content, _CLIPPED_CHARACTERS)
        if isinstance(content, list):
            return [_clip_block(block) for block in content]
        return content

    return [_map_results(message, shorten) for message in messages]


def _map_results(message: Message, shorten: Callable[[Any], Any]) -> Message:
    """Return the message with `shorten` applied to the contents of its tool results."""
    if message.get("role") == "tool" and "content" in message:
        return {**message, "content": shorten(message["content"])}
    if message.get("type") == "function_call_output" and "output" in message:
        return {**message, "output": shorten(message["output"])}
    content = message.get("content")
    if not isinstance(content, list):
        return message
    return {**message, "content": [_map_result_block(block, shorten) for block in content]}


def _map_result_block(block: Any, shorten: Callable[[Any], Any]) -> Any:
    if isinstance(block, Mapping) and block.get("type") == "tool_result" and "content" in block:
        return {**block, "content": shorten(block["content"])}
    return block


def _without_media(message: Message) -> Message:
    content = message.get("content")
    if not isinstance(content, list):
        return message
    kind = "input_text" if any(_block_type(block).startswith("input_") for block in content) else "text"
    stub = {"type": kind, "text": OMITTED_TEXT}
    return {**message, "content": [stub if _block_type(block) in _MEDIA_TYPES else block for block in content]}


def _block_type(block: Any) -> str:
    return str(block.get("type", "")) if isinstance(block, Mapping) else ""


def _clip_message(message: Message) -> Message:
    content = message.get("content")
    if isinstance(content, str):
        return {**message, "content": clip(content, _CLIPPED_CHARACTERS)}
    if isinstance(content, list):
        return {**message, "content": [_clip_block(block) for block in content]}
    return message


def _clip_block(block: Any) -> Any:
    if isinstance(block, Mapping) and _block_type(block) in ("text", "input_text", "output_text"):
        return {**block, "text": clip(str(block.get("text", "")), _CLIPPED_CHARACTERS)}
    return block
