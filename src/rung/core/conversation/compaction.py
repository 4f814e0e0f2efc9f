"""Compact a conversation to a target size, step by step, the least harmful step first.

Tool calls and their results stay paired. What `kept_messages` names is unchanged until the last steps: then the tool
results among it are clipped and, if that is allowed, the longest texts. Tool results are recognized in content blocks, in
messages with the role `tool`, and as separate items (Responses API).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from rung.core.classify.evidence import clip
from rung.core.conversation.kept_messages import RECENT_MESSAGES, block_type, is_result_item, is_system, kept_indices
from rung.core.conversation.media_size import CHARACTERS_PER_TOKEN, media_excess

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.core.domain.failures import Failure

    Message = Mapping[str, Any]

OMITTED_TEXT: Final = "[left out to save context]"
DUPLICATE_TEXT: Final = "[left out: the same result appears again below]"
_MIN_STUBBED_CHARACTERS: Final = 200  # a shorter result is not worth replacing
_CLIPPED_CHARACTERS: Final = 2_000
_MAX_SUMMARIZED_CHARACTERS: Final = 200_000
_MIN_ELIDED_MESSAGES: Final = 2  # a single message is not worth a marker
_MAX_ELIDED_TEXTS: Final = 8
_TEXT_TYPES: Final = frozenset({"text", "input_text", "output_text"})
SIZE_MARGIN: Final = 0.9  # share of the limit to aim at: token counts are estimates
_DEFAULT_SHARE: Final = 0.5  # for failures that state no token counts
_MEDIA_TYPES: Final = frozenset({"image", "image_url", "document", "input_image", "input_file", "file", "input_audio"})


def target_characters(failure: Failure, characters: int) -> int:
    """Return the target size of a conversation of this size, by the token counts of its failure."""
    tokens = failure.tokens
    share = SIZE_MARGIN * tokens.limit / tokens.asked if tokens is not None and tokens.asked else _DEFAULT_SHARE
    return int(characters * min(share, SIZE_MARGIN))


def compact_messages(
    messages: Sequence[Message], target: int, *, elide_turns: bool = True, elide_text: bool = False
) -> list[Message]:
    """Apply steps until the messages have at most `target` characters, or no step is left.

    `elide_turns`: leave old messages out, with a marker. `elide_text`: cut the longest texts in their middle at last.
    """
    steps: list[Callable[[list[Message]], list[Message]]] = [
        _drop_duplicate_results,
        _drop_old_results,
        _drop_old_media,
    ]
    steps += [_clip_old_messages, *([_elide_old_turns] if elide_turns else []), _clip_results]
    compacted = list(messages)
    for step in steps:
        if count_characters(compacted) <= target:
            return compacted
        compacted = step(compacted)
    return _elide_longest_texts(compacted, target) if elide_text else compacted


SUMMARY_PROMPT: Final = (
    "Summarise the conversation below for someone who takes it over: the task, the findings, the decisions, the "
    "changes made, and what is still open. Facts only, no preface.\n\n"
)


def summarizable_text(messages: Sequence[Message]) -> str:
    """Return the messages that a summary replaces, as text to summarize."""
    kept = kept_indices(messages)
    old = [each for index, each in enumerate(messages) if index not in kept]
    return clip(json.dumps(old, ensure_ascii=False, default=repr), _MAX_SUMMARIZED_CHARACTERS)


def with_summary(messages: Sequence[Message], summary: str) -> list[Message]:
    """Return the messages that stay, and a summary where the first of the others was."""
    return _with_marker(messages, kept_indices(messages), f"[Summary of the messages in between]\n{summary}")


def _with_marker(messages: Sequence[Message], kept: set[int], text: str) -> list[Message]:
    """Return the messages that stay, with a message of this text where the first of the others was."""
    gap = next((index for index in range(len(messages)) if index not in kept), len(messages))
    marker = {"role": "user", "content": text}
    return [*messages[:gap], marker, *(messages[index] for index in range(gap, len(messages)) if index in kept)]


def count_characters(messages: Sequence[Message]) -> int:
    """Return the number of characters of the messages as JSON; media have as many as a text that takes their tokens."""
    listed = list(messages)
    return len(json.dumps(listed, ensure_ascii=False, default=repr)) - media_excess(listed)


def estimate_tokens(messages: Sequence[Message]) -> int:
    """Estimate the tokens of messages."""
    return count_characters(messages) // CHARACTERS_PER_TOKEN


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
    """Clip old messages to their head and tail."""
    kept = kept_indices(messages)
    return [each if index in kept else _clip_message(each) for index, each in enumerate(messages)]


def _elide_old_turns(messages: list[Message]) -> list[Message]:
    """Leave old messages out."""
    kept = kept_indices(messages)
    count = len(messages) - len(kept)
    if count < _MIN_ELIDED_MESSAGES:
        return messages
    return _with_marker(messages, kept, f"[{count} earlier messages left out to save context]")


def _elide_longest_texts(messages: list[Message], target: int) -> list[Message]:
    """Cut the middle of the longest texts, one after the other, until the messages fit; system prompts stay."""
    texts = sorted(
        {text for each in messages if not is_system(each) for text in _texts_of(each)}, key=len, reverse=True
    )
    for text in texts[:_MAX_ELIDED_TEXTS]:
        excess = count_characters(messages) - target
        if excess <= 0:
            break
        shorter = clip(text, max(_CLIPPED_CHARACTERS, len(text) - excess))
        messages = [each if is_system(each) else _with_text(each, text, shorter) for each in messages]
    return messages


def _texts_of(message: Message) -> list[str]:
    content = message.get("content")
    if isinstance(content, str):
        return [content]
    blocks = content if isinstance(content, list) else []
    return [str(block.get("text", "")) for block in blocks if block_type(block) in _TEXT_TYPES]


def _with_text(message: Message, text: str, replacement: str) -> Message:
    content = message.get("content")
    if content == text:
        return {**message, "content": replacement}
    if not isinstance(content, list):
        return message
    return {**message, "content": [_with_block_text(block, text, replacement) for block in content]}


def _with_block_text(block: Any, text: str, replacement: str) -> Any:
    if block_type(block) in _TEXT_TYPES and block.get("text") == text:
        return {**block, "text": replacement}
    return block


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
    if is_result_item(message) and "output" in message:
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
    kind = "input_text" if any(block_type(block).startswith("input_") for block in content) else "text"
    stub = {"type": kind, "text": OMITTED_TEXT}
    return {**message, "content": [stub if block_type(block) in _MEDIA_TYPES else block for block in content]}


def _clip_message(message: Message) -> Message:
    content = message.get("content")
    if isinstance(content, str):
        return {**message, "content": clip(content, _CLIPPED_CHARACTERS)}
    if isinstance(content, list):
        return {**message, "content": [_clip_block(block) for block in content]}
    return message


def _clip_block(block: Any) -> Any:
    if block_type(block) in _TEXT_TYPES:
        return {**block, "text": clip(str(block.get("text", "")), _CLIPPED_CHARACTERS)}
    return block
