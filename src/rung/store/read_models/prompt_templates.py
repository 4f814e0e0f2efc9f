"""Prompt patterns: the beginning of a prompt with its variable parts masked, equal for prompts of one template."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from rung.core.domain.masks import mask_volatile

if TYPE_CHECKING:
    from rung.core.domain.request import Request

MAX_PATTERN_CHARS: Final = 60  # characters of a pattern
_HEAD_CHARS: Final = 240  # of a prompt that are read: masking shortens paths and ids


def prompt_pattern(request: Request | None) -> str:
    """Return the pattern of a request's prompt or first user message, after that of its task; empty when it has none."""
    if request is None:
        return ""
    pattern = _pattern((request.prompt or _first_user_text(request)).lstrip()[:_HEAD_CHARS])
    task = _pattern(request.task.lstrip()[:_HEAD_CHARS])
    return " | ".join(filter(None, (task, pattern)))


def _first_user_text(request: Request) -> str:
    for message in request.messages:
        if message.get("role") == "user":
            content = message.get("content")
            parts = content if isinstance(content, list | tuple) else (content,)
            for part in parts:
                text = part.get("text") if isinstance(part, dict) else part
                if isinstance(text, str):
                    return text
    return ""


@lru_cache(maxsize=4_096)
def _pattern(head: str) -> str:
    if len(head) == _HEAD_CHARS:
        head = head.rsplit(None, 1)[0]  # whole words: half an id would not be mask_volatile
    text = mask_volatile(head)
    if len(text) <= MAX_PATTERN_CHARS:
        return text
    words = text[: MAX_PATTERN_CHARS + 1].rsplit(None, 1)[0]
    return words[:MAX_PATTERN_CHARS] + " …" if len(words) <= MAX_PATTERN_CHARS else text[:MAX_PATTERN_CHARS]
