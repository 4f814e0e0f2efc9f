"""How a prompt begins, with what changes from one call to the next masked: prompts of one template have one pattern."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from rung.core.domain.failures import mask_volatile

if TYPE_CHECKING:
    from rung.core.domain.request import Request

WIDTH: Final = 60  # characters of a pattern
_LOOK: Final = 240  # characters of a prompt that are looked at: a path or an id shrinks when it is masked


def pattern(request: Request | None) -> str:
    """The pattern of a request's prompt, or of the first thing its user says; empty: it has neither."""
    if request is None:
        return ""
    return _pattern((request.prompt or _said(request)).lstrip()[:_LOOK])


def _said(request: Request) -> str:
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
    if len(head) == _LOOK:
        head = head.rsplit(None, 1)[0]  # whole words: half an id is not seen to be one
    text = mask_volatile(head)
    if len(text) <= WIDTH:
        return text
    words = text[: WIDTH + 1].rsplit(None, 1)[0]
    return words[:WIDTH] + " …" if len(words) <= WIDTH else text[:WIDTH]
