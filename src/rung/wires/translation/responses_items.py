"""Items of the Responses API: the history of a request, and the output of a response."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from rung.wires.translation.conversation import (
    Family,
    ForeignPart,
    MediaPart,
    ReasoningPart,
    Speaker,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    Turn,
)
from rung.wires.translation.responses_client_tools import CLIENT_TOOLS, KIND_OF_CALL, arguments_of
from rung.wires.translation.responses_content import read_content
from rung.wires.wire_json import object_list, to_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.wires.translation.conversation import Part
    from rung.wires.translation.responses_tools import ReadTools

MESSAGE: Final = "message"
_SPEAKERS: Final[Mapping[str, Speaker]] = {
    "user": Speaker.USER,
    "assistant": Speaker.ASSISTANT,
    "system": Speaker.SYSTEM,
    "developer": Speaker.SYSTEM,
}
_OUTPUT_TYPES: Final = frozenset(
    {"function_call_output", "custom_tool_call_output", "local_shell_call_output", "shell_call_output",
     "apply_patch_call_output"}
)  # fmt: skip


def input_items(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the items of a request's input."""
    content = body.get("input")
    if isinstance(content, str):
        return [{"role": "user", "content": content}]
    return [item for item in content if isinstance(item, dict)] if isinstance(content, list) else []


def item_type(item: Mapping[str, Any]) -> str:
    """Return the type of an item. Messages and references may leave it out."""
    return str(item.get("type") or (MESSAGE if "role" in item else "item_reference"))


def read_history(
    body: Mapping[str, Any], items: list[dict[str, Any]], tools: ReadTools
) -> tuple[tuple[TextPart, ...], tuple[Turn, ...]]:
    """Return the instructions of a request with its first developer messages, and the turns after them."""
    text = body.get("instructions")
    system = [TextPart(text=text)] if isinstance(text, str) and text else []
    turns = TurnCollector()
    calls: dict[str, str] = {}  # call ids by the ids of local shell calls, which their outputs repeat
    for item in items:
        speaker, parts = read_item(item, tools, calls)
        if not parts:
            continue
        if speaker is Speaker.SYSTEM and turns.is_empty and all(type(part) is TextPart for part in parts):
            system += parts
        else:
            turns.add(speaker, parts)
    return tuple(system), turns.finish()


class TurnCollector:
    """Puts the parts of items into turns: items of the assistant that follow each other are one turn."""

    def __init__(self) -> None:
        self._turns: list[Turn] = []
        self._answer: list[Part] = []  # of the assistant's turn that is open
        self._results: dict[str, int] = {}  # turns by the calls that they have results of

    @property
    def is_empty(self) -> bool:
        """Whether no turn has begun."""
        return not self._turns and not self._answer

    def add(self, speaker: Speaker, parts: list[Any]) -> None:
        """Add the parts of an item."""
        first = parts[0]
        if speaker is Speaker.ASSISTANT:
            self._answer += parts
            if type(first) is ToolCallPart:
                self._results.pop(first.id, None)  # some servers use the ids of calls again
            return
        if type(first) is ToolResultPart:
            if first.call_id in self._results:
                self._add_to_result(first)
                return
            self._results[first.call_id] = len(self._turns) + bool(self._answer)
        self._close_answer()
        self._turns.append(Turn(speaker=speaker, parts=tuple(parts)))

    def finish(self) -> tuple[Turn, ...]:
        """Return the turns."""
        self._close_answer()
        return tuple(self._turns)

    def _close_answer(self) -> None:
        if self._answer:
            self._turns.append(Turn(speaker=Speaker.ASSISTANT, parts=tuple(self._answer)))
            self._answer = []

    def _add_to_result(self, result: ToolResultPart) -> None:
        """Add a result to the earlier one of the same call: other wires allow one result of a call."""
        at = self._results[result.call_id]
        (before,) = self._turns[at].parts
        parts = before.parts if isinstance(before, ToolResultPart) else ()
        self._turns[at] = replace(self._turns[at], parts=(replace(result, parts=parts + result.parts),))


def read_item(item: Mapping[str, Any], tools: ReadTools, calls: dict[str, str]) -> tuple[Speaker, list[Any]]:
    """Return the speaker and the parts of one item. An unknown item is one part, as it is."""
    kind = item_type(item)
    if kind == MESSAGE and (speaker := _SPEAKERS.get(str(item.get("role")))) is not None:
        return speaker, list(read_content(item.get("content")))
    if kind == "function_call":
        return Speaker.ASSISTANT, [_read_function_call(item, tools)]
    if kind == "function_call_output":
        call = item.get("call_id")
        parts = _result_parts(item.get("output"))
        return Speaker.USER, [ToolResultPart(call_id=call if isinstance(call, str) else "", parts=parts)]
    if kind == "reasoning":
        return Speaker.ASSISTANT, [ReasoningPart(family=Family.RESPONSES, block=item, text=_summary(item))]
    return _read_other(kind, item, tools, calls)


def _read_other(
    kind: str, item: Mapping[str, Any], tools: ReadTools, calls: dict[str, str]
) -> tuple[Speaker, list[Any]]:
    if kind == "additional_tools":  # already among the tools
        return Speaker.SYSTEM, []
    if kind in KIND_OF_CALL and isinstance(item.get("call_id"), str) and item.get("execution") != "server":
        if isinstance(item.get("id"), str):
            calls[item["id"]] = item["call_id"]
        return Speaker.ASSISTANT, [_read_client_call(KIND_OF_CALL[kind], item, tools)]
    if kind in _OUTPUT_TYPES:
        return Speaker.USER, [_read_output(item, calls)]
    if kind == "tool_search_output" and isinstance(item.get("call_id"), str) and item.get("execution") != "server":
        return Speaker.USER, [_read_found_tools(item, tools)]
    speaker = Speaker.USER if kind.endswith(("_output", "_response", MESSAGE)) else Speaker.ASSISTANT
    return speaker, [ForeignPart(family=Family.RESPONSES, block=item, kind=kind)]


def _read_function_call(item: Mapping[str, Any], tools: ReadTools) -> ToolCallPart:
    call, arguments = item.get("call_id"), item.get("arguments")
    return ToolCallPart(
        id=call if isinstance(call, str) else str(item.get("id") or ""),
        name=tools.name_of(str(item.get("name") or ""), str(item.get("namespace") or "")),
        arguments=arguments if isinstance(arguments, str) else "",
    )


def _read_client_call(kind: str, item: Mapping[str, Any], tools: ReadTools) -> ToolCallPart:
    """Read the call of a tool that is no function as the call of the function that stands for it."""
    name = item.get("name") if kind == "custom" else kind
    return ToolCallPart(
        id=item["call_id"],
        name=tools.name_of(str(name or ""), str(item.get("namespace") or "")),
        arguments=arguments_of(CLIENT_TOOLS[kind], item),
    )


def _read_output(item: Mapping[str, Any], calls: Mapping[str, str]) -> ToolResultPart:
    own = str(item.get("id") or "")
    call = item.get("call_id")
    output = item.get("output")
    if item.get("type") == "apply_patch_call_output":
        output = output or str(item.get("status") or "")  # the output may be left out
    if item.get("type") == "shell_call_output" and isinstance(output, list):
        output = to_json(output)  # the outputs and exit codes of several commands
    return ToolResultPart(
        call_id=call if isinstance(call, str) else calls.get(own, own),
        parts=_result_parts(output),
        is_error=item.get("status") == "failed",
    )


def _read_found_tools(item: Mapping[str, Any], tools: ReadTools) -> ToolResultPart:
    names = [
        tools.name_of(str(tool.get("name") or tool.get("type")), namespace)
        for entry in object_list(item, "tools")
        for tool, namespace in (
            [(inner, str(entry.get("name") or "")) for inner in object_list(entry, "tools")]
            if entry.get("type") == "namespace"
            else [(entry, "")]
        )
    ]
    text = f"These tools are available now: {', '.join(names)}" if names else "No tools were found."
    return ToolResultPart(call_id=item["call_id"], parts=(TextPart(text=text),))


def _result_parts(output: object) -> tuple[TextPart | MediaPart, ...]:
    if isinstance(output, str):
        return (TextPart(text=output),) if output else ()
    parts = read_content(output)
    return tuple(part if isinstance(part, TextPart | MediaPart) else TextPart(text=_as_text(part)) for part in parts)


def _as_text(part: object) -> str:
    """Return a part that no tool result can have as text."""
    return to_json(dict(part.block)) if isinstance(part, ForeignPart) else str(getattr(part, "text", ""))


def _summary(item: Mapping[str, Any]) -> str:
    return "\n\n".join(str(part.get("text") or "") for part in object_list(item, "summary"))
