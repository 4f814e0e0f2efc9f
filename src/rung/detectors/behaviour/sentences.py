"""Sentences of a task, without code blocks and list marks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_TASK_CHARS: Final = 20_000
_FENCE: Final = re.compile(r"^\s*(```|~~~).*?(?:^\s*\1\s*$|\Z)", re.MULTILINE | re.DOTALL)
_END: Final = re.compile(r"(?<=[.!?;])\s+|\n+")
_MARK: Final = re.compile(r"^\s*(?:[-*•>#]+\s+|\d+[.)]\s+)+")


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text; quoted code and list marks are left out."""
    for part in _END.split(_FENCE.sub("\n", text[:MAX_TASK_CHARS])):
        sentence = " ".join(_MARK.sub("", part).replace("**", "").split())
        if sentence:
            yield sentence
