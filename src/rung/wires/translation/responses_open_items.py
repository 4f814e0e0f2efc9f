"""Items of a streamed response while they are open: each gives the events of its beginning, its pieces and its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rung.wires.translation.responses_client_tools import CUSTOM, FUNCTION, NO_ARGUMENTS
from rung.wires.translation.responses_output import call_item, message_item, refusal_part, text_part

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rung.wires.translation.answer import CallStarted
    from rung.wires.translation.conversation import Conversation

Data = dict[str, Any]
ItemEvent = tuple[str, Data]


class OpenMessage:
    """Message with texts and refusals, one part after the other."""

    def __init__(self, name: str, output_index: int) -> None:
        self._name = name
        self._output_index = output_index
        self._content: list[Data] = []  # complete parts
        self._pieces: list[str] = []  # of the open part
        self._block: int | None = None
        self._is_open = False

    def begin(self) -> Iterator[ItemEvent]:
        """Yield the event of the beginning."""
        item = message_item(self._name, [], "in_progress")
        yield "response.output_item.added", {"output_index": self._output_index, "item": item}

    def add(self, text: str, block: int | None) -> Iterator[ItemEvent]:
        """Yield the events of a piece of text, or of a refusal, which has no block."""
        if self._is_open and block != self._block:
            yield from self._end_part()
        if not self._is_open:
            self._block, self._is_open, self._pieces = block, True, []
            yield "response.content_part.added", {**self._place(), "part": self._part("")}
        self._pieces.append(text)
        if block is None:
            yield "response.refusal.delta", {**self._place(), "delta": text}
        else:
            yield "response.output_text.delta", {**self._place(), "delta": text, "logprobs": []}

    def end(self, status: str) -> tuple[Data, list[ItemEvent]]:
        """Return the message, and the events of its end."""
        events = list(self._end_part()) if self._is_open else []
        item = message_item(self._name, self._content, status)
        return item, [*events, ("response.output_item.done", {"output_index": self._output_index, "item": item})]

    def _end_part(self) -> Iterator[ItemEvent]:
        text = "".join(self._pieces)
        place, part = self._place(), self._part(text)
        if self._block is None:
            yield "response.refusal.done", {**place, "refusal": text}
        else:
            yield "response.output_text.done", {**place, "text": text, "logprobs": []}
        yield "response.content_part.done", {**place, "part": part}
        self._content.append(part)
        self._is_open = False

    def _part(self, text: str) -> Data:
        return refusal_part(text) if self._block is None else text_part(text)

    def _place(self) -> Data:
        return {"item_id": self._name, "output_index": self._output_index, "content_index": len(self._content)}


class OpenCall:
    """Call of a tool. Arguments come in pieces for functions only: other tools have them in another form, at the end."""

    def __init__(self, conversation: Conversation, name: str, output_index: int, started: CallStarted) -> None:
        self.index = started.index
        self._conversation = conversation
        self._name = name
        self._started = started
        self._pieces: list[str] = []
        self._begun = self._item("in_progress")
        self._kind = self._begun["type"]
        self._at = {"output_index": output_index}
        self._place = {"item_id": self._begun["id"], **self._at}

    def begin(self) -> Iterator[ItemEvent]:
        """Yield the event of the beginning. A call whose arguments are an object begins with its end."""
        if self._kind in (FUNCTION.call_type, CUSTOM.call_type):
            yield "response.output_item.added", {**self._at, "item": self._begun}

    def add(self, json: str) -> Iterator[ItemEvent]:
        """Yield the events of a piece of the arguments."""
        self._pieces.append(json)
        if json and self._kind == FUNCTION.call_type:
            yield "response.function_call_arguments.delta", {**self._place, "delta": json}

    def end(self, status: str) -> tuple[Data, list[ItemEvent]]:
        """Return the call, and the events of its end."""
        events: list[ItemEvent] = []
        if self._kind == FUNCTION.call_type and status == "completed" and not any(self._pieces):
            events += self.add(NO_ARGUMENTS)
        item = self._item(status)
        if self._kind == FUNCTION.call_type:
            done = {**self._place, "name": item["name"], "arguments": item["arguments"]}
            events.append(("response.function_call_arguments.done", done))
        elif self._kind == CUSTOM.call_type:
            events.append(("response.custom_tool_call_input.delta", {**self._place, "delta": item["input"]}))
            events.append(("response.custom_tool_call_input.done", {**self._place, "input": item["input"]}))
        else:
            events.append(("response.output_item.added", {**self._at, "item": item}))
        return item, [*events, ("response.output_item.done", {**self._at, "item": item})]

    def _item(self, status: str) -> Data:
        return call_item(
            self._conversation,
            name=self._name,
            call_id=self._started.id,
            tool=self._started.name,
            arguments="".join(self._pieces),
            status=status,
        )
