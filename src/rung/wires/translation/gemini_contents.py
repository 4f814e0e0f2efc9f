"""Contents of Gemini's requests for a conversation of another wire.

Gemini demands that the responses to all calls of a content stand in the next content, that the first call of a content
is signed, and that the last content is the user's. Roles alternate, as older models demand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rung.wires.translation.conversation import (
    Family,
    ForeignPart,
    MediaPart,
    ReasoningPart,
    RefusalPart,
    Speaker,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from rung.wires.translation.dropped_names import name_extras
from rung.wires.translation.gemini_fields import SKIPPED_SIGNATURE, merged
from rung.wires.translation.gemini_media import written_media
from rung.wires.translation.gemini_parts import object_of, own_part, written_call, written_result

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rung.wires.translation.conversation import Part, Turn

    Content = dict[str, Any]

_FILLER: Final = "…"
_GO_ON: Final = TextPart(text="Continue.")
_NESTED_TYPES: Final = frozenset({"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"})


class ForeignHistory:
    """Writer of the history of another wire, whose calls and results are paired. `dropped` names what Gemini cannot say."""

    def __init__(self, turns: Sequence[Turn], dropped: set[str], *, nests_media: bool) -> None:
        self.dropped = dropped
        self._turns = turns
        self._nests_media = nests_media  # whether a function response can contain media

    def contents(self) -> list[Content]:
        """Return the contents."""
        steps = self._steps()
        contents: list[Content] = []
        calls: list[ToolCallPart] = []
        for speaker, parts in steps:
            if speaker is Speaker.ASSISTANT:
                if not contents:
                    contents.append({"role": "user", "parts": [{"text": _FILLER}]})
                contents.append({"role": "model", "parts": self._model_parts(parts)})
                calls = [part for part in parts if isinstance(part, ToolCallPart)]
            else:
                contents.append({"role": "user", "parts": self._user_parts(parts, calls)})
                calls = []
        if contents and contents[-1]["role"] == "user":
            return contents
        return [*contents, {"role": "user", "parts": self._plain(_GO_ON)}]

    def _steps(self) -> list[tuple[Speaker, list[Part]]]:
        """Return the parts that Gemini can say, those of consecutive turns of a speaker together."""
        steps: list[tuple[Speaker, list[Part]]] = []
        for turn in self._turns:
            parts = [part for part in turn.parts if self._is_sayable(part)]
            self._note_turn(turn)
            speaker = Speaker.ASSISTANT if turn.speaker is Speaker.ASSISTANT else Speaker.USER
            if steps and steps[-1][0] is speaker:
                steps[-1][1].extend(parts)
            elif parts:
                steps.append((speaker, parts))
        return steps

    def _note_turn(self, turn: Turn) -> None:
        if turn.speaker is Speaker.SYSTEM:
            self.dropped.add("system_role")
        if turn.name:
            self.dropped.add("name")

    def _is_sayable(self, part: Part) -> bool:
        if isinstance(part, ReasoningPart | ForeignPart):
            if part.family is not Family.GEMINI:
                self.dropped.add("reasoning" if isinstance(part, ReasoningPart) else part.kind)
            return part.family is Family.GEMINI
        if isinstance(part, ToolCallPart | ToolResultPart | TextPart | MediaPart) and part.cache is not None:
            self.dropped.add("cache_control")
        if isinstance(part, TextPart) and part.family is not Family.GEMINI:
            name_extras(part.extras, self.dropped)
        return bool(part.text) if isinstance(part, TextPart | RefusalPart) else True

    def _model_parts(self, parts: Iterable[Part]) -> list[Content]:
        written: list[Content] = []
        is_signed = False
        for part in parts:
            if isinstance(part, ToolCallPart):
                if object_of(part.arguments) is None:
                    self.dropped.add("invalid_arguments")
                written.append(signed_call(part, is_first=not is_signed))
                is_signed = True
            else:
                written.extend(self._plain(part))
        return written

    def _user_parts(self, parts: Sequence[Part], calls: Sequence[ToolCallPart]) -> list[Content]:
        """Return the responses to the calls before, in their order, and then everything else."""
        results = {part.call_id: part for part in parts if isinstance(part, ToolResultPart)}
        written: list[Content] = []
        others: list[Content] = []
        for call in calls:
            written.extend(self._response(results[call.id], call.name, others))
        for part in parts:
            if not isinstance(part, ToolResultPart):
                others.extend(self._plain(part))
        return [*written, *others] or [{"text": _FILLER}]

    def _response(self, part: ToolResultPart, name: str, after: list[Content]) -> list[Content]:
        """Return a function response. Media that it cannot contain is added to `after`."""
        response = written_result(part, name)
        nested: list[Content] = []
        for item in part.parts:
            if isinstance(item, MediaPart):
                written = written_media(item, self.dropped)
                is_nested = self._nests_media and written.get("inlineData", {}).get("mimeType") in _NESTED_TYPES
                (nested if is_nested else after).append(written)
        if nested:
            response["parts"] = nested
        return [{"functionResponse": response}]

    def _plain(self, part: Part) -> list[Content]:
        if isinstance(part, MediaPart) and part.family is not Family.GEMINI:
            return [written_media(part, self.dropped)]
        if isinstance(part, TextPart) and part.family is not Family.GEMINI:
            return [{"text": part.text}]
        return [own_part(part)]


def signed_call(part: ToolCallPart, *, is_first: bool) -> Content:
    """Write a call. Gemini checks the signature of the first call of a content only."""
    call = {"functionCall": written_call(part)}
    if part.family is Family.GEMINI:
        return merged(call, part.extras)
    return {**call, "thoughtSignature": SKIPPED_SIGNATURE} if is_first else call
