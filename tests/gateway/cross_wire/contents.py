"""Contents of the matrix: what a client asks for, what the labs answer, and what must reach both sides."""

from __future__ import annotations

import base64
from typing import Any, NamedTuple

from rung.wires.translation.tool_names import accepted_name
from tests.gateway.behind import WHOLE
from tests.gateway.cross_wire.talk import (
    Call,
    Image,
    ModelTurn,
    Pdf,
    Result,
    ResultTurn,
    Talk,
    TalkTurn,
    UserTurn,
)

COUNT = "count to 40 as apple"
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"pixels" * 9).decode()
OTHER_PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"others" * 9).decode()
PDF = base64.b64encode(b"%PDF-1.7\n" + b"words " * 9).decode()
URL = "https://pictures.test/cat.png"
# Arguments that are easily damaged: numbers that are no floats, text that must be escaped, empty values, nested objects.
ARGUMENTS: dict[str, Any] = {
    "at": 'quote " backslash \\ newline \n tab \t null \u0000 slash / emoji 🙂 umlaut ü line \u2028',
    "numbers": [1e21, 0.1, -0.0, 1e-7, 2**53 + 1, 2**64 + 1, -(2**70), 0, 1.5e300],
    "nested": {"a": [{"b": []}, [[], {}], None, True, False], "": {"deep": {"deeper": ["x"]}}},
    'key with "quotes" and ü': "",
    "json": '{"not": "parsed", "n": 1}',
}
ANY_OBJECT = {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]}
NO_ARGUMENTS = {"type": "object", "properties": {}}
TOOLS = (("look", ANY_OBJECT), ("list_all", NO_ARGUMENTS), ("find-in_Files2", ANY_OBJECT))
SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "sizes": {"type": "array", "items": {"type": "integer"}},
        "inner": {
            "type": "object",
            "properties": {"is_big": {"type": "boolean"}, "share": {"type": "number"}},
            "required": ["is_big", "share"],
            "additionalProperties": False,
        },
        "note": {"type": ["string", "null"]},
    },
    "required": ["city", "sizes", "inner", "note"],
    "additionalProperties": False,
}
ANSWER_OF_SCHEMA = '{"city": "lab", "sizes": [1], "inner": {"is_big": true, "share": 1.5}, "note": "lab"}'
STEPS = 20


class Content(NamedTuple):
    """A request, the settings of both labs, and the answer that the client must get."""

    talk: Talk
    text: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    stop: str = "end"
    lab: dict[str, Any] = {}  # noqa: RUF012  # read only
    script: tuple[dict[str, Any], ...] = ()  # faults that belong to the content, such as a refusal
    reaches: tuple[str, ...] = ()  # texts of the request that the other provider must get


def ask(*said: Any, **settings: Any) -> Talk:
    return Talk((UserTurn(said),), **settings)


def _turn(*calls: tuple[str, dict[str, Any]], text: str = "") -> dict[str, Any]:
    return {"turns": [{"text": text, "tools": [{"tool": name, "input": given} for name, given in calls]}, WHOLE]}


def _called(*calls: tuple[str, dict[str, Any]], text: str = "") -> Content:
    talk = ask("Look for it.", tools=TOOLS)
    return Content(talk, text=text, calls=calls, stop="calls", lab=_turn(*calls, text=text))


def long_talk() -> tuple[TalkTurn, ...]:
    """A history with parallel calls, results in another order than their calls, errors and images."""
    turns: list[TalkTurn] = [UserTurn(("Find all of them.",))]
    for step in range(STEPS):
        calls = tuple(Call(f"call_{step}_{n}", TOOLS[n][0], {"at": f"place {step}.{n}"}) for n in range(1 + step % 3))
        results = [
            Result(call.id, call.name, (f"result of {call.id}",), is_error=(step + n) % 4 == 0)
            for n, call in enumerate(calls)
        ]
        if step % 5 == 4:
            results[0] = results[0]._replace(said=(f"picture of {calls[0].id}", Image(data=PNG)), is_error=False)
        turns += [ModelTurn(f"step {step}" if step % 2 else "", calls), ResultTurn(tuple(results))]
        if step % 7 == 6:
            turns += [ModelTurn(f"summary {step}"), UserTurn((f"go on with {step}",))]
    return (*turns, ModelTurn("All found."), UserTurn((COUNT,)))


_SEEN = (
    UserTurn(("Show it.",)),
    ModelTurn("", (Call("call_1", "look", {"at": "door"}), Call("call_2", "look", {"at": "window"}))),
    ResultTurn(
        (
            Result("call_1", "look", ("a picture of the door", Image(data=PNG))),
            Result("call_2", "look", (Image(data=OTHER_PNG), Image(url=URL))),
        )
    ),
)
_DOTTED = "files.read:all"  # Gemini's API allows it
_DOTTED_CALL = {"at": "the end"}
_LOOK = ("look", {"at": "the left, then the right"})
CONTENTS: dict[str, Content] = {
    "text": Content(ask(COUNT), WHOLE),
    "system": Content(ask(COUNT, system="Speak like Grünkohl & <sons>."), WHOLE, reaches=("Speak like Grünkohl & <sons>.",)),
    "image": Content(ask("Before.", Image(data=PNG), COUNT), WHOLE, reaches=(PNG, "Before.")),
    "image_url": Content(ask(Image(url=URL), COUNT), WHOLE, reaches=(URL,)),
    "pdf": Content(ask(Pdf(PDF), COUNT), WHOLE, reaches=(PDF,)),
    "result_images": Content(
        Talk((*_SEEN, ModelTurn("I see."), UserTurn((COUNT,))), tools=TOOLS),
        WHOLE,
        reaches=(PNG, OTHER_PNG, URL, "a picture of the door"),
    ),
    "one_call": _called(_LOOK),
    "parallel_calls": _called(_LOOK, ("list_all", {}), ("look", {"at": "again"}), ("find-in_Files2", {"at": "x"})),
    "hard_arguments": _called(("look", ARGUMENTS), ("list_all", {})),
    "text_and_call": _called(_LOOK, text="I look there first."),
    "other_names": Content(
        ask("Look for it.", tools=((_DOTTED, ANY_OBJECT),)),
        calls=((_DOTTED, _DOTTED_CALL),),
        stop="calls",
        lab=_turn((_DOTTED, _DOTTED_CALL), (accepted_name(_DOTTED), _DOTTED_CALL)),  # the one that the request has
    ),
    "schema": Content(ask("Describe it.", schema=SCHEMA), ANSWER_OF_SCHEMA),
    "long": Content(
        Talk(long_talk(), system="Be brief.", tools=TOOLS),
        WHOLE,
        reaches=(PNG, "result of call_19_1", "summary 13", "place 7.1", "Be brief."),
    ),
    "stop_sequence": Content(ask(COUNT, stop=("END", "\n\nHuman:")), WHOLE),
    "refusal": Content(ask(COUNT), stop="refusal", script=({"fault": "refusal"},)),
    "refusal_half_way": Content(ask(COUNT), stop="refusal", script=({"fault": "refusal", "after": 7},)),
}  # fmt: skip
