"""Reader of the event stream of OpenAI's Responses API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.usage_formats import responses_usage
from rung.wires.sse import EventReader
from rung.wires.translation.answer import (
    CallDelta,
    CallEnded,
    CallStarted,
    Ended,
    ForeignBlock,
    ReasoningDelta,
    RefusalDelta,
    Started,
    StreamFailed,
    TextDelta,
)
from rung.wires.translation.responses_answer import read_stop
from rung.wires.translation.responses_client_tools import CLIENT_TOOLS, FUNCTION, KIND_OF_CALL, arguments_of
from rung.wires.wire_json import int_or_zero, object_field, object_list, parse_event_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rung.wires.translation.answer import AnswerEvent

Data = dict[str, Any]

_END_EVENTS: Final = frozenset({"response.completed", "response.incomplete"})
_ERROR_EVENTS: Final = frozenset({"response.failed", "error"})
_DONE_MARK: Final = b"[DONE]"  # some servers end the stream with it


class ResponsesStreamReader:
    """Reads one stream. What came in no delta is read from the end of its item, or of the response."""

    def __init__(self) -> None:
        self._events = EventReader()
        self._is_started = False
        self._blocks: dict[tuple[int, int], int] = {}  # of texts, by item and part
        self._calls: dict[int, int] = {}  # indexes of calls, by item
        self._with_arguments: set[int] = set()  # items of calls whose arguments have begun
        self._done: set[int] = set()  # items that are complete
        self._has_refusal = False

    def feed(self, chunk: bytes) -> list[AnswerEvent]:
        """Return the events that these bytes complete. Raise ValueError if an event is not valid JSON."""
        found: list[AnswerEvent] = []
        for event in self._events.feed(chunk):
            if event.data and event.data != _DONE_MARK:
                found += self._read(event.name, event.data)
        if self._events.oversized:
            raise ValueError("an event exceeds the size limit")
        return found

    def finish(self) -> list[AnswerEvent]:
        """Return nothing: only an event ends a stream of this wire."""
        return []

    def _read(self, name: bytes, raw: bytes) -> list[AnswerEvent]:
        try:
            data = parse_event_json(raw)
        except RecursionError:
            raise ValueError("an event is nested too deeply") from None
        if not isinstance(data, dict):
            return []
        kind = str(data.get("type") or name.decode("utf-8", "replace"))
        if kind in _ERROR_EVENTS:
            return [StreamFailed(name=kind, data=raw.decode("utf-8", "replace"))]
        if kind in _END_EVENTS:
            return self._end(object_field(data, "response"))
        if kind in ("response.created", "response.in_progress"):
            return self._start(object_field(data, "response"))
        read = _READERS.get(kind)
        return read(self, data) if read is not None else []

    def _start(self, response: Data) -> list[AnswerEvent]:
        if self._is_started:
            return []
        self._is_started = True
        created = response.get("created_at")
        return [
            Started(
                id=str(response.get("id") or ""),
                model=str(response.get("model") or ""),
                created=int(created) if isinstance(created, int | float) else 0,
            )
        ]

    def _end(self, response: Data) -> list[AnswerEvent]:
        found = self._start(response)
        for index, item in enumerate(object_list(response, "output")):
            found += self._item_done({"output_index": index, "item": item})
        stop = read_stop(response, has_calls=bool(self._calls), has_refusal=self._has_refusal)
        return [*found, Ended(stop=stop, usage=responses_usage(object_field(response, "usage")))]

    def _text(self, data: Data) -> list[AnswerEvent]:
        place = (int_or_zero(data.get("output_index")), int_or_zero(data.get("content_index")))
        block = self._blocks.setdefault(place, len(self._blocks))
        text = data.get("delta")
        return [TextDelta(text=text, block=block)] if isinstance(text, str) and text else []

    def _refusal(self, data: Data) -> list[AnswerEvent]:
        place = (int_or_zero(data.get("output_index")), int_or_zero(data.get("content_index")))
        self._blocks.setdefault(place, len(self._blocks))
        self._has_refusal = True
        text = data.get("delta")
        return [RefusalDelta(text=text)] if isinstance(text, str) and text else []

    def _reasoning(self, data: Data) -> list[AnswerEvent]:
        text = data.get("delta")
        return [ReasoningDelta(text=text)] if isinstance(text, str) and text else []

    def _item_added(self, data: Data) -> list[AnswerEvent]:
        item, at = object_field(data, "item"), int_or_zero(data.get("output_index"))
        return self._call_started(at, item) if _is_call(item) else []

    def _call_started(self, at: int, item: Data) -> list[AnswerEvent]:
        if at in self._calls:
            return []
        self._calls[at] = len(self._calls)
        name = item.get("name") or KIND_OF_CALL[str(item["type"])]
        return [CallStarted(index=self._calls[at], id=str(item.get("call_id") or item.get("id") or ""), name=str(name))]

    def _arguments(self, data: Data) -> list[AnswerEvent]:
        return self._add_arguments(int_or_zero(data.get("output_index")), data.get("delta"))

    def _arguments_done(self, data: Data) -> list[AnswerEvent]:
        at = int_or_zero(data.get("output_index"))
        return [] if at in self._with_arguments else self._add_arguments(at, data.get("arguments"))

    def _add_arguments(self, at: int, text: object) -> list[AnswerEvent]:
        if at not in self._calls or not isinstance(text, str) or not text:
            return []
        self._with_arguments.add(at)
        return [CallDelta(index=self._calls[at], json=text)]

    def _item_done(self, data: Data) -> list[AnswerEvent]:
        item, at = object_field(data, "item"), int_or_zero(data.get("output_index"))
        if at in self._done:
            return []
        self._done.add(at)
        if _is_call(item):
            return self._call_done(at, item)
        if item.get("type") == "message":
            return [
                event
                for index, part in enumerate(object_list(item, "content"))
                for event in self._part(at, index, part)
            ]
        return [ForeignBlock(kind=str(item.get("type")))] if item.get("type") != "reasoning" else []

    def _call_done(self, at: int, item: Data) -> list[AnswerEvent]:
        found = self._call_started(at, item)
        if at not in self._with_arguments:
            kind = CLIENT_TOOLS[KIND_OF_CALL[str(item["type"])]]
            found += self._add_arguments(at, arguments_of(kind, item))
        # A call of an incomplete item has no end: its arguments may break off.
        is_whole = item.get("status") in (None, "completed")
        return [*found, CallEnded(index=self._calls[at])] if is_whole else found

    def _part(self, at: int, index: int, part: Data) -> list[AnswerEvent]:
        """Return the content of a part that came in no delta."""
        if (at, index) in self._blocks:
            return []
        place = {"output_index": at, "content_index": index}
        if part.get("type") == "refusal":
            return self._refusal({**place, "delta": part.get("refusal")})
        return self._text({**place, "delta": part.get("text")})


def _is_call(item: Data) -> bool:
    kind = str(item.get("type"))
    return kind == FUNCTION.call_type or (kind in KIND_OF_CALL and item.get("execution") != "server")


_READERS: Final[Mapping[str, Callable[[ResponsesStreamReader, Data], list[AnswerEvent]]]] = {
    "response.output_text.delta": ResponsesStreamReader._text,  # noqa: SLF001  # its own table
    "response.refusal.delta": ResponsesStreamReader._refusal,  # noqa: SLF001
    "response.reasoning_summary_text.delta": ResponsesStreamReader._reasoning,  # noqa: SLF001
    "response.reasoning_text.delta": ResponsesStreamReader._reasoning,  # noqa: SLF001
    "response.output_item.added": ResponsesStreamReader._item_added,  # noqa: SLF001
    "response.function_call_arguments.delta": ResponsesStreamReader._arguments,  # noqa: SLF001
    "response.function_call_arguments.done": ResponsesStreamReader._arguments_done,  # noqa: SLF001
    "response.output_item.done": ResponsesStreamReader._item_done,  # noqa: SLF001
}
