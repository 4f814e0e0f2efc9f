"""Tool calls in a Chat Completions stream, put in order: each call begins, grows and ends before the next one begins."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rung.wires.translation.answer import CallDelta, CallEnded, CallStarted
from rung.wires.translation.chat_answer import derived_call_id
from rung.wires.wire_json import object_field, parse_json

if TYPE_CHECKING:
    from rung.wires.translation.answer import AnswerEvent


@dataclass(slots=True)
class _PartialCall:
    """A call of which deltas have come."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    sent: int = 0  # pieces of the arguments that were given
    is_started: bool = False


class ChatCallDeltas:
    """Assembles calls from deltas, also where servers leave out indexes or ids, or repeat them."""

    def __init__(self) -> None:
        self._calls: list[_PartialCall] = []
        self._by_index: dict[int, _PartialCall] = {}
        self._first_open = 0
        self._ids = {""}  # which an earlier call has, or which is none

    @property
    def has_calls(self) -> bool:
        """Whether a call has come."""
        return bool(self._calls)

    @property
    def is_open(self) -> bool:
        """Whether a call may not be complete yet."""
        return self._first_open < len(self._calls)

    def add(self, delta: dict[str, Any], answer_id: str) -> list[AnswerEvent]:
        """Take the delta of one call. Return the events that it completes."""
        function = object_field(delta, "function")
        call = self._call_of(delta, function)
        call.id = call.id or _text(delta.get("id"))
        call.name = call.name or _text(function.get("name"))
        piece = _text(function.get("arguments"))
        if piece:
            call.arguments.append(piece)
        return self._advance(answer_id, last=call)

    def end(self, answer_id: str) -> list[AnswerEvent]:
        """Return the events that end all calls: the answer is complete."""
        return self._advance(answer_id, last=None)

    def end_complete(self, answer_id: str) -> list[AnswerEvent]:
        """Return the events that end the calls whose arguments are complete, for what follows them."""
        events: list[AnswerEvent] = []
        while self.is_open and _is_complete(self._calls[self._first_open]):
            events += self._release(self._first_open, answer_id, is_end=True)
            self._first_open += 1
        return events

    def _call_of(self, delta: dict[str, Any], function: dict[str, Any]) -> _PartialCall:
        index, call_id = delta.get("index"), _text(delta.get("id"))
        if isinstance(index, int):
            known = self._by_index.get(index)
            is_other = known is not None and bool(call_id) and bool(known.id) and known.id != call_id
            if known is None or is_other:  # some servers give every call the index 0
                known = self._by_index[index] = self._new()
            return known
        if call_id:
            return next((call for call in self._calls if call.id == call_id), None) or self._new()
        last = self._calls[-1] if self._calls else None
        is_new = last is None or (bool(function.get("name")) and bool(last.arguments))
        return self._new() if last is None or is_new else last

    def _new(self) -> _PartialCall:
        self._calls.append(_PartialCall())
        return self._calls[-1]

    def _advance(self, answer_id: str, *, last: _PartialCall | None) -> list[AnswerEvent]:
        """Return what can be said of the first open call, and of the later ones once it is complete."""
        events: list[AnswerEvent] = []
        while self.is_open:
            call = self._calls[self._first_open]
            is_end = last is None or (call is not last and _is_complete(call))
            events += self._release(self._first_open, answer_id, is_end=is_end)
            if not is_end:
                break
            self._first_open += 1
        return events

    def _release(self, index: int, answer_id: str, *, is_end: bool) -> list[AnswerEvent]:
        call = self._calls[index]
        events: list[AnswerEvent] = []
        is_known = bool(call.name) and bool(call.id or call.arguments)  # an id may come after the name
        if not call.is_started and (is_known or is_end):
            call.is_started = True
            call.id = derived_call_id(answer_id, index) if call.id in self._ids else call.id
            self._ids.add(call.id)
            events.append(CallStarted(index=index, id=call.id, name=call.name))
        if call.is_started:
            events += [CallDelta(index=index, json=piece) for piece in call.arguments[call.sent :]]
            call.sent = len(call.arguments)
        if is_end:
            events.append(CallEnded(index=index))
        return events


def _is_complete(call: _PartialCall) -> bool:
    return isinstance(parse_json("".join(call.arguments)), dict)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
