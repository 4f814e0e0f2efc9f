"""Find the text of an answer: unwrap a provider's response body, cut quoted code, bound the length."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.core.classify.lazy_regex import LazyPattern

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEAD_CHARS: Final = 3_000  # of a long answer: its start says what it is,
_TAIL_CHARS: Final = 6_000  # its end says how it ended
_MAX_BODY_CHARS: Final = 200_000  # a longer body is not parsed
_MAX_DEPTH: Final = 12
_BODY_KEYS: Final = frozenset(
    {
        "choices",
        "candidates",
        "output",
        "stop_reason",
        "stopReason",
        "finish_reason",
        "usage",
        "done_reason",
        "text",
        "tool_calls",
    }
)
_TEXT_KEYS: Final = frozenset({"content", "text", "output_text", "response", "reasoning_content"})
_CONTAINERS: Final = frozenset({"choices", "candidates", "output", "content", "text", "message", "response"})
# What a body says about itself, not what the model said.
_OTHER_KEYS: Final = frozenset({"usage", "metrics", "error", "tools", "instructions", "safetyRatings", "usageMetadata"})
_CALL_KEYS: Final = frozenset({"tool_calls", "function_call", "functionCall", "input", "arguments"})
_INLINE_CODE: Final = LazyPattern(r"`[^`\n]{1,200}`")
_SOFT_BREAK: Final = LazyPattern(r"(?<=\w)[ \t]*\n[ \t]*(?=[a-z])")  # a line that continues a sentence


class AnswerText(NamedTuple):
    """An answer: the model's own text, and what its wrapping shows."""

    text: str
    is_body: bool = False  # the text was unwrapped from a response body
    has_calls: bool = False  # the body contains tool calls
    broken_arguments: bool = False  # the arguments of one of them are not JSON
    is_empty: bool = False  # the body has a place for an answer, and nothing in it

    @property
    def prose(self) -> str:
        """The bounded text in lower case, without quoted code and emphasis, for statements."""
        text = bounded(self.text).replace("\u2019", "'").replace("**", "").replace("__", "")
        return _SOFT_BREAK.sub(" ", without_quoted_code(text, "code")).lower()


def bounded(text: str) -> str:
    """Return the start and the end of a long text."""
    return text if len(text) <= _HEAD_CHARS + _TAIL_CHARS else f"{text[:_HEAD_CHARS]}\n{text[-_TAIL_CHARS:]}"


def without_quoted_code(text: str, stand_in: str = " ") -> str:
    """Return the text without inline code and fenced blocks; a text that is mostly code keeps it."""
    if "`" not in text:
        return text
    unfenced = _unfenced(text) if "```" in text else text
    if len(unfenced.strip()) < len(text) * _MIN_PROSE_SHARE:
        unfenced = text
    return _INLINE_CODE.sub(stand_in, unfenced)


def _unfenced(text: str) -> str:
    """Return the lines outside of closed fences; after an unclosed fence everything is kept."""
    kept: list[str] = []
    block: list[str] | None = None
    for line in text.split("\n"):
        if line.lstrip(" \t").startswith("```"):
            block = [line] if block is None else None
        elif block is not None:
            block.append(line)
        else:
            kept.append(line)
    return "\n".join(kept + (block or []))


_MIN_PROSE_SHARE: Final = 0.3


def answer_in(text: str) -> AnswerText:
    """Return the answer in a text: the text itself, or what a response body contains."""
    if not text.lstrip().startswith("{") or len(text) > _MAX_BODY_CHARS:
        return AnswerText(text)
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return AnswerText(text)
    if not isinstance(body, dict) or not (_BODY_KEYS & body.keys()):
        return AnswerText(text)
    parts = [part for part in _texts(body, 0) if part.strip()]
    calls = list(_calls(body, 0))
    is_empty = not parts and not calls and not _CONTAINERS.isdisjoint(body)
    return AnswerText("\n".join(parts), True, bool(calls), any(map(_is_broken, calls)), is_empty)


def _texts(value: Any, depth: int) -> Iterator[str]:
    """Yield the texts that the model wrote."""
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, list):
        for item in value:
            yield from _texts(item, depth + 1)
    elif isinstance(value, dict):
        for name, item in value.items():
            if name in _TEXT_KEYS and isinstance(item, str):
                yield item
            elif name not in _OTHER_KEYS and name not in _CALL_KEYS:
                yield from _texts(item, depth + 1)


def _calls(value: Any, depth: int) -> Iterator[Any]:
    """Yield the arguments of the tool calls."""
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, list):
        for item in value:
            yield from _calls(item, depth + 1)
    elif isinstance(value, dict):
        if "name" in value and ("arguments" in value or "input" in value or "args" in value):
            yield value.get("arguments", "{}")
        for name, item in value.items():
            if name not in _OTHER_KEYS:
                yield from _calls(item, depth + 1)


def _is_broken(arguments: Any) -> bool:
    if not isinstance(arguments, str) or not arguments.strip():
        return False
    try:
        json.loads(arguments)
    except (ValueError, RecursionError):
        return True
    return False
