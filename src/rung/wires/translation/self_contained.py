"""Requests that carry all that they are about. Others refer to history or files that only one provider has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.wires.anthropic_threads import continues_thread
from rung.wires.translation.conversation import Family, ForeignPart, MediaPart, ToolResultPart

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rung.wires.translation.conversation import Conversation, Part

# Fields of a request that stand for history at the provider.
_STORED_HISTORY: Final = frozenset({"previous_response_id", "conversation", "prompt", "container", "cachedContent"})
_OPENAI: Final = (Family.CHAT, Family.RESPONSES)
_STORED_ITEMS: Final = frozenset({"item_reference", "compaction", "compaction_summary", "context_compaction"})


def is_empty(conversation: Conversation) -> bool:
    """Return whether a request says nothing. OpenAI's APIs take one that has instructions only."""
    if conversation.turns or (conversation.system and conversation.family in _OPENAI):
        return False
    return not any(conversation.extras.get(name) for name in _STORED_HISTORY)


def is_self_contained(conversation: Conversation) -> bool:
    """Return whether another provider can serve a request: it has a conversation, and all of it."""
    if is_empty(conversation):
        return False
    if any(conversation.extras.get(name) for name in _STORED_HISTORY):
        return False
    if conversation.family is Family.ANTHROPIC and continues_thread(conversation.extras):
        return False
    return not any(_is_stored(turn.parts) for turn in conversation.turns)


def _is_stored(parts: Iterable[Part]) -> bool:
    for part in parts:
        if isinstance(part, MediaPart) and part.file_id:
            return True
        if isinstance(part, ForeignPart) and part.kind in _STORED_ITEMS:
            return True
        if isinstance(part, ToolResultPart) and _is_stored(part.parts):
            return True
    return False
