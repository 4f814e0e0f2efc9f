"""Compaction of a conversation, for requests of the library and bodies of every wire: cheapest step first.

Tool pairs stay whole, and the latest messages stay unchanged as long as that is enough. Results are found in blocks,
in messages of the role `tool`, and in items of their own.
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

RECENT: Final = 6  # messages that are touched last
STUB: Final = "[left out to save context]"
SAME: Final = "[left out: the same comes again further on]"
_SHORT: Final = 200  # characters: a result below this is not worth a stub
_CLIPPED: Final = 2_000
_SUMMARISED: Final = 200_000  # characters a summary is made of
MARGIN: Final = 0.9  # of the room there is: counts of tokens differ
_HALF: Final = 0.5  # where the failure does not report how much is too much
_PICTURES: Final = frozenset({"image", "image_url", "document", "input_image", "input_file", "file", "input_audio"})


def goal_for(failure: Failure, characters: int) -> int:
    """How many characters a conversation of this size should come down to, by the token counts of its failure."""
    tokens = failure.tokens
    share = MARGIN * tokens.limit / tokens.asked if tokens is not None and tokens.asked else _HALF
    return int(characters * min(share, MARGIN))


def compacted(messages: Sequence[Message], goal: int) -> list[Message]:
    """The messages after as many steps as it takes to come down to so many characters."""
    made = list(messages)
    for step in (_duplicates, _old_results, _old_pictures, _old_turns, _long_results):
        if size(made) <= goal:
            break
        made = step(made)
    return made


SUMMARISE: Final = (
    "Summarise the conversation below for somebody who takes it over: the task, what was found out, what was decided, "
    "what was changed, what is still open. Facts only, no preface.\n\n"
)


def between(messages: Sequence[Message]) -> str:
    """What stands between the task and the latest messages, as text to be summarised."""
    return clip(json.dumps(list(messages)[1:-RECENT], ensure_ascii=False, default=repr), _SUMMARISED)


def condensed(messages: Sequence[Message], summary: str) -> list[Message]:
    """The task, a summary of what came between, and the latest messages."""
    told = {"role": "user", "content": f"[Summary of what came between]\n{summary}"}
    return [messages[0], told, *list(messages)[max(1, len(messages) - RECENT) :]]


def size(messages: Sequence[Message]) -> int:
    """Characters of the messages as JSON."""
    return len(json.dumps(list(messages), ensure_ascii=False, default=repr))


def _duplicates(messages: list[Message]) -> list[Message]:
    """Of equal results only the last is kept: a file read again and again."""
    seen: set[str] = set()

    def shorten(content: Any) -> Any:
        text = json.dumps(content, ensure_ascii=False, default=repr)
        if len(text) < _SHORT:
            return content
        if text in seen:
            return SAME
        seen.add(text)
        return content

    return [_with_results(message, shorten) for message in reversed(messages)][::-1]


def _old_results(messages: list[Message]) -> list[Message]:
    def shorten(content: Any) -> Any:
        return STUB if len(json.dumps(content, default=repr)) >= _SHORT else content

    return [_with_results(message, shorten) for message in messages[:-RECENT]] + messages[-RECENT:]


def _old_pictures(messages: list[Message]) -> list[Message]:
    return [_without_pictures(message) for message in messages[:-2]] + messages[-2:]


def _old_turns(messages: list[Message]) -> list[Message]:
    """What was said long ago, shortened to its head and tail; the first message is the task and stays."""
    return [messages[0], *map(_shorter, messages[1:-RECENT]), *messages[max(1, len(messages) - RECENT) :]]


def _long_results(messages: list[Message]) -> list[Message]:
    def shorten(content: Any) -> Any:
        if isinstance(content, str):
            return clip(content, _CLIPPED)
        if isinstance(content, list):
            return [_clipped(block) for block in content]
        return content

    return [_with_results(message, shorten) for message in messages]


def _with_results(message: Message, shorten: Callable[[Any], Any]) -> Message:
    """The message with the contents of its tool results shortened."""
    if message.get("role") == "tool" and "content" in message:
        return {**message, "content": shorten(message["content"])}
    if message.get("type") == "function_call_output" and "output" in message:
        return {**message, "output": shorten(message["output"])}
    content = message.get("content")
    if not isinstance(content, list):
        return message
    return {**message, "content": [_shortened_block(block, shorten) for block in content]}


def _shortened_block(block: Any, shorten: Callable[[Any], Any]) -> Any:
    if isinstance(block, Mapping) and block.get("type") == "tool_result" and "content" in block:
        return {**block, "content": shorten(block["content"])}
    return block


def _without_pictures(message: Message) -> Message:
    content = message.get("content")
    if not isinstance(content, list):
        return message
    kind = "input_text" if any(_type(block).startswith("input_") for block in content) else "text"
    left = [{"type": kind, "text": STUB} if _type(block) in _PICTURES else block for block in content]
    return {**message, "content": left}


def _type(block: Any) -> str:
    return str(block.get("type", "")) if isinstance(block, Mapping) else ""


def _shorter(message: Message) -> Message:
    content = message.get("content")
    if isinstance(content, str):
        return {**message, "content": clip(content, _CLIPPED)}
    if isinstance(content, list):
        return {**message, "content": [_clipped(block) for block in content]}
    return message


def _clipped(block: Any) -> Any:
    if isinstance(block, Mapping) and _type(block) in ("text", "input_text", "output_text"):
        return {**block, "text": clip(str(block.get("text", "")), _CLIPPED)}
    return block
