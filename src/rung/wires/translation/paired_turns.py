"""Turns in which every call has one result, directly after it, and every result a call. All providers demand that.

Histories break when an agent is stopped in mid-turn, and servers of one wire accept what those of others reject.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rung.core.conversation.repair import MISSING_RESULT_TEXT
from rung.wires.translation.conversation import (
    MediaPart,
    ReasoningPart,
    RefusalPart,
    Speaker,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    Turn,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rung.wires.translation.conversation import Part

_ANSWER_PARTS: Final = (ToolCallPart, ReasoningPart, RefusalPart)
_UNMATCHED_TEXT: Final = "[result of an earlier tool call]\n"


def pair_turns(turns: tuple[Turn, ...], dropped: set[str]) -> tuple[Turn, ...]:
    """Return the turns with calls and results in pairs. Turns that are in order are returned as they are."""
    return turns if _are_paired(turns) else tuple(_Pairs(turns, dropped).turns())


def _are_paired(turns: Sequence[Turn]) -> bool:
    seen: set[str] = set()
    waiting: set[str] = set()
    for turn in turns:
        is_answer = turn.speaker is Speaker.ASSISTANT
        if is_answer and waiting:
            return False
        for part in turn.parts:
            if isinstance(part, ToolCallPart):
                if not is_answer or not part.id or part.id in seen:
                    return False
                seen.add(part.id)
                waiting.add(part.id)
            elif isinstance(part, ToolResultPart):
                if is_answer or part.call_id not in waiting:
                    return False
                waiting.remove(part.call_id)
            elif isinstance(part, RefusalPart) and not is_answer:
                return False
    return not waiting


class _Pairs:
    """Puts the parts of broken turns in order."""

    def __init__(self, turns: Sequence[Turn], dropped: set[str]) -> None:
        self._turns = turns
        self._dropped = dropped
        parts = [part for turn in turns for part in turn.parts]
        calls = Counter(part.id for part in parts if isinstance(part, ToolCallPart))
        # Results by the id of their call, in their order: some servers use the ids of calls again.
        self._results: dict[str, list[ToolResultPart]] = defaultdict(list)
        self._unmatched: set[int] = set()  # identities of results without a call
        for part in parts:
            if isinstance(part, ToolResultPart):
                if len(self._results[part.call_id]) < calls[part.call_id]:
                    self._results[part.call_id].append(part)
                else:
                    self._unmatched.add(id(part))
        self._ids: set[str] = set()

    def turns(self) -> Iterator[Turn]:
        """Yield the turns, and after each turn with calls their results."""
        for turn in self._split():
            parts: list[Part] = []
            results: list[ToolResultPart] = []
            for part in turn.parts:
                if isinstance(part, ToolCallPart):
                    unique_id = self._unique(part.id)
                    results.append(self._result_of(part, unique_id))
                    parts.append(replace(part, id=unique_id))
                else:
                    parts.append(part)
            yield replace(turn, parts=tuple(parts))
            if results:
                yield Turn(speaker=Speaker.USER, parts=tuple(results))

    def _split(self) -> Iterator[Turn]:
        """Yield the turns without results, and with calls and reasoning in turns of the assistant only."""
        for turn in self._turns:
            parts: list[Part] = []
            speaker = turn.speaker
            for part in turn.parts:
                converted = self._converted_part(part, turn.speaker)
                if converted is None:
                    continue
                owner = Speaker.ASSISTANT if isinstance(converted, _ANSWER_PARTS) else turn.speaker
                if owner is not speaker and parts:
                    yield replace(turn, speaker=speaker, parts=tuple(parts))
                    parts = []
                speaker = owner
                parts.append(converted)
            if parts:
                yield replace(turn, speaker=speaker, parts=tuple(parts))

    def _converted_part(self, part: Part, speaker: Speaker) -> Part | None:
        if isinstance(part, RefusalPart) and speaker is not Speaker.ASSISTANT:
            return TextPart(text=part.text)
        if not isinstance(part, ToolResultPart):
            return part
        if id(part) not in self._unmatched:
            return None  # it follows its call
        self._dropped.add("tool_result")
        texts = [each.text or f"[{each.kind}]" if isinstance(each, MediaPart) else each.text for each in part.parts]
        return TextPart(text=_UNMATCHED_TEXT + "\n".join(texts))

    def _result_of(self, call: ToolCallPart, unique_id: str) -> ToolResultPart:
        found = self._results[call.id]
        if found:
            return replace(found.pop(0), call_id=unique_id)
        return ToolResultPart(
            call_id=unique_id, name=call.name, parts=(TextPart(text=MISSING_RESULT_TEXT),), is_error=True
        )

    def _unique(self, call_id: str) -> str:
        base = call_id or "call"
        found, number = base, 1
        while found in self._ids:
            number += 1
            found = f"{base}_{number}"
        self._ids.add(found)
        return found
