"""Contents of Gemini's requests: a history read from Gemini's wire, and written back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rung.wires.translation.conversation import NOTHING, Family, ForeignPart, Part, Speaker, TextPart, Turn
from rung.wires.translation.gemini_fields import invented_id, listed, spelled
from rung.wires.translation.gemini_parts import own_part, read_part

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Google accepts "function" for the turn of function responses. It writes "user" itself.
_SPEAKERS: Final = {"user": Speaker.USER, "model": Speaker.ASSISTANT, "function": Speaker.USER, "tool": Speaker.USER}
_OBJECTS: Final = frozenset({dict})
_WHOLE: Final = "content"  # kind of a content that is not understood


class CallPairs:
    """Ids of the calls and responses of a history. Without ids, responses are for the calls of their name in order."""

    def __init__(self) -> None:
        self._open: list[tuple[str, str]] = []  # id and name of the calls without a response
        self._step = -1
        self._count = 0

    def start(self, speaker: Speaker, before: Speaker | None) -> None:
        """Start a content. Calls of an earlier step of the model get no responses any more."""
        if speaker is before is Speaker.ASSISTANT:
            return
        self._step, self._count = self._step + 1, 0
        if speaker is Speaker.ASSISTANT:
            self._open = []

    def call_id(self, call: Mapping[str, Any]) -> str:
        """Return the id of a call."""
        found = call.get("id") or self._invented()
        self._open.append((found, call.get("name", "")))
        return found

    def result_id(self, result: Mapping[str, Any]) -> str:
        """Return the id of the call that a response is for."""
        given, name = result.get("id"), result.get("name")
        if not self._open:
            return given or self._invented()
        if self._open[0] == (given, name):
            return self._open.pop(0)[0]
        ids, names = [call_id for call_id, _ in self._open], [each for _, each in self._open]
        if given in ids:
            return self._open.pop(ids.index(given))[0]
        if name in names:
            return self._open.pop(names.index(name))[0]
        return given or self._invented()

    def _invented(self) -> str:
        self._count += 1
        return invented_id(str(self._step), self._count - 1)


def read_turns(contents: Sequence[Any]) -> tuple[Turn, ...]:
    """Read the contents of a request. Consecutive contents of the model are one turn.

    Google's SDK makes a content of each piece of a streamed answer. For other wires they are one message.
    """
    pairs = CallPairs()
    steps: list[list[Turn]] = []
    before: Turn | None = None
    for content in contents:
        turn = _read_turn(content, pairs, before.speaker if before else None)
        if before is not None and _is_plain_answer(before) and _is_plain_answer(turn):
            steps[-1].append(turn)
        else:
            steps.append([turn])
        before = turn
    return tuple([step[0] if len(step) == 1 else _joined(step) for step in steps])


def _is_plain_answer(turn: Turn) -> bool:
    return turn.speaker is Speaker.ASSISTANT and turn.family is None


def _joined(pieces: Sequence[Turn]) -> Turn:
    """Return one turn of these pieces, with one text for each run of texts. Empty texts are left out."""
    parts: list[Part] = []
    texts: list[str] = []
    for part in (part for piece in pieces for part in piece.parts):
        if isinstance(part, TextPart) and part.family is None:
            texts.append(part.text)
            continue
        if any(texts):
            parts.append(TextPart(text="".join(texts)))
        texts = []
        parts.append(part)
    if any(texts):
        parts.append(TextPart(text="".join(texts)))
    return Turn(speaker=Speaker.ASSISTANT, parts=tuple(parts))


def _read_turn(content: Any, pairs: CallPairs, before: Speaker | None) -> Turn:
    fields = spelled(content) if isinstance(content, dict) else {}
    role, parts = fields.get("role", "user"), listed(fields.get("parts"))
    speaker = _SPEAKERS.get(role) if isinstance(role, str) else None
    if speaker is None or not isinstance(parts, list) or not _OBJECTS.issuperset(map(type, parts)):
        block = ForeignPart(family=Family.GEMINI, block={_WHOLE: content}, kind=_WHOLE)
        return Turn(speaker=speaker or Speaker.USER, parts=(block,), family=Family.GEMINI)
    pairs.start(speaker, before)
    read = tuple([read_part(part, pairs.call_id, pairs.result_id) for part in parts])
    if len(fields) > 2 or role not in ("user", "model") or "role" not in fields:  # noqa: PLR2004  # role and parts
        extras = {key: value for key, value in fields.items() if key != "parts"}
        return Turn(speaker=speaker, parts=read, extras=extras or NOTHING, family=Family.GEMINI)
    return Turn(speaker=speaker, parts=read)


def own_contents(turns: Sequence[Turn]) -> list[Any]:
    """Write the turns of a conversation that was read from Gemini's wire."""
    return [_own_content(turn) for turn in turns]


def _own_content(turn: Turn) -> Any:
    if len(turn.parts) == 1 and isinstance(turn.parts[0], ForeignPart) and turn.parts[0].kind == _WHOLE:
        return turn.parts[0].block[_WHOLE]
    parts: list[Any] = [own_part(part) for part in turn.parts]
    if turn.family is Family.GEMINI:
        return {**turn.extras, "parts": parts}
    return {"role": "model" if turn.speaker is Speaker.ASSISTANT else "user", "parts": parts}
