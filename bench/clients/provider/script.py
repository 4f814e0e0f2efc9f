"""What the model says, how a turn looks without a wire, and the faults."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

_UNUSUAL: Final = {7: "é", 19: "漢字", 31: "🪜", 43: "naïve", 55: "“quoted”"}
ANSWER: Final = " ".join(_UNUSUAL.get(n, f"w{n:02}") for n in range(1, 63))
PREFACE: Final = "I will append the row now."
ROW: Final = "one-row"
PROMPT: Final = "Append the row one-row once with your tool, then recite the words."
PIECES: Final = 13  # parts that a text or the arguments of a call come in; a cut is inside a word
MIN_QUOTE: Final = 12  # characters of the answer in the last message that show a request to go on

# fault → where it strikes: in the answer, or in the tool call before it
FAULTS: Final = {
    "429": "answer",
    "529": "answer",  # 503 where the API has no 529
    "500": "answer",
    "502 page": "answer",
    "reset before headers": "answer",
    "close before headers": "answer",
    "cut by reset": "answer",
    "cut by close": "answer",
    "error event in text": "answer",
    "error event before text": "answer",
    "no end": "answer",
    "output limit": "answer",
    "empty 200": "answer",
    "empty message": "answer",
    "stall in text": "answer",
    "stall before headers": "answer",
    "cut in call": "call",
    "stall in call": "call",
}
STREAM_ONLY: Final = frozenset({"error event in text", "error event before text", "no end"})
STALLS: Final = frozenset(name for name in FAULTS if name.startswith("stall"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call that the model makes."""

    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One response of the model: a text, then a tool call."""

    text: str = ""
    call: ToolCall | None = None
    is_limited: bool = False  # ends at the output limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request, as far as the model looks at it."""

    wire: str
    model: str
    is_stream: bool
    tools: dict[str, dict[str, Any]] = field(default_factory=dict)  # name → JSON schema
    results: int = 0  # tool results in the conversation
    last_text: str = ""  # text of the last message


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """How a client's task goes: its tool, and what ends it."""

    tool: str = "append_row"
    arguments: dict[str, Any] = field(default_factory=lambda: {"row": ROW})
    ending: ToolCall | None = None  # a call that the last turn makes beside its text
    text: str = ANSWER
    has_call: bool = True

    def respond(self, asked: Asked) -> Turn | None:
        """Return the next turn; None for a request that is not about the task, such as one for a title."""
        if not self.has_call:
            return _rest(Turn(text=self.text), asked)
        if self.tool not in asked.tools:
            return None
        if asked.results:
            return _rest(Turn(text=self.text, call=self.ending), asked)
        arguments = _complete(self.arguments, asked.tools[self.tool])
        return _rest(Turn(text=PREFACE, call=ToolCall(name=self.tool, arguments=arguments)), asked)


def is_answer(play: Play, asked: Asked) -> bool:
    """Return whether this request is for the last turn."""
    return not play.has_call or asked.results > 0


def _complete(arguments: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with a value for whatever else the schema requires."""
    properties = schema.get("properties") or {}
    samples = {"boolean": False, "integer": 1, "number": 1, "array": [], "object": {}}
    required = {
        name: samples.get(str(properties.get(name, {}).get("type")), "append a row")
        for name in schema.get("required") or ()
    }
    return {**required, **arguments}


def _rest(turn: Turn, asked: Asked) -> Turn:
    """Return what is left of a turn if the last message quotes its beginning; a prompt may quote what is before the words."""
    shortest = max(turn.text.find(ANSWER), 0) + MIN_QUOTE
    for size in range(len(turn.text), shortest, -1):
        if turn.text[:size] in asked.last_text:
            return Turn(text=turn.text[size:], call=turn.call)
    return turn


def pieces(text: str) -> list[str]:
    """Return a text in parts, as a stream carries it."""
    size = max(1, -(-len(text) // PIECES))
    return [text[start : start + size] for start in range(0, len(text), size)]
