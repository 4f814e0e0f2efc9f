"""Schemas of tools that one provider accepts and others reject are written in a form that all accept."""

from __future__ import annotations

from typing import Any

import pytest

from rung.wires.translation.conversation import (
    Conversation,
    Family,
    JsonOutput,
    Speaker,
    TextPart,
    ToolDefinition,
    Turn,
)
from rung.wires.translation.registry import translator_of
from tests.wires.translation.upstream_rules import check_request

ASKED = (Turn(speaker=Speaker.USER, parts=(TextPart(text="hi"),)),)
BY_ID = {"type": "object", "properties": {"id": {"type": "integer"}, "full": {"type": "boolean"}}, "required": ["id"]}
BY_NAME = {"type": "object", "properties": {"name": {"type": "string"}, "id": {"type": "string"}}, "required": ["name"]}
TREE = {
    "type": "object",
    "properties": {"next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}},
    "$defs": {"Node": {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/Node"}}}}},
}  # fmt: skip


def write(wire: str, family: Family = Family.GEMINI, **fields: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    request = Conversation(family=family, model="some-model", turns=ASKED, **fields)
    written = translator_of(wire).write_request(request)
    check_request(wire, written.body)
    return written.body, written.dropped


def parameters(wire: str, schema: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    body, dropped = write(wire, tools=(ToolDefinition(name="find", schema=schema),))
    tool = body["tools"][0]
    if wire == "chat":
        return tool["function"]["parameters"], dropped
    return tool["input_schema" if wire == "messages" else "parameters"], dropped


@pytest.mark.parametrize("wire", ["messages", "chat", "responses"])
@pytest.mark.parametrize("union", ["anyOf", "oneOf"])
def test_a_union_of_arguments_becomes_one_object(wire: str, union: str) -> None:
    """Properties of all branches stay, only those that all branches require are required, and the loss is named."""
    base = {"type": "object", "properties": {"limit": {"type": "integer"}}, "required": ["limit"]}
    found, dropped = parameters(wire, {**base, union: [BY_ID, BY_NAME]})
    found.pop("cache_control", None)
    assert found == {
        "type": "object",
        "properties": {
            "limit": {"type": "integer"},
            "id": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
            "full": {"type": "boolean"},
            "name": {"type": "string"},
        },
        "required": ["limit"],
    }
    assert dropped == ("schema_keywords",)


@pytest.mark.parametrize("wire", ["messages", "chat", "responses"])
def test_all_of_becomes_one_object(wire: str) -> None:
    """What any part of `allOf` requires stays required, also in a definition that is referred to."""
    found, _ = parameters(wire, {"allOf": [{"$ref": "#/$defs/ById"}, BY_NAME], "$defs": {"ById": BY_ID}})
    assert (sorted(found["properties"]), found["required"]) == (["full", "id", "name"], ["id", "name"])


@pytest.mark.parametrize("wire", ["chat", "responses"])
def test_arguments_without_properties_or_items(wire: str) -> None:
    """OpenAI gets an object with properties, and arrays with items."""
    assert parameters(wire, {"type": "object"}) == ({"type": "object", "properties": {}}, ())
    nested = {
        "type": "object",
        "properties": {"all": {"type": "array"}, "rows": {"type": "array", "items": {"type": "array"}}},
    }
    found, dropped = parameters(wire, nested)
    assert found["properties"]["all"] == {"type": "array", "items": {}}
    assert found["properties"]["rows"]["items"] == {"type": "array", "items": {}}
    assert dropped == ()


@pytest.mark.parametrize("wire", ["chat", "responses"])
def test_a_strict_tool_of_another_provider(wire: str) -> None:
    """A strict tool with an optional property is not strict at OpenAI, which would reject it."""
    schema = {**BY_ID, "additionalProperties": False}
    body, dropped = write(wire, tools=(ToolDefinition(name="find", schema=schema, strict=True),))
    tool = body["tools"][0]
    assert not (tool["function"] if wire == "chat" else tool).get("strict")
    assert dropped == ("strict",)


def test_a_recursive_output_is_an_instruction_for_anthropic() -> None:
    """Anthropic's structured outputs reject recursion: the schema is in the system prompt, and the loss is named."""
    body, dropped = write("messages", output=JsonOutput(schema=TREE))
    assert "output_config" not in body
    assert '"#/$defs/Node"' in body["system"][-1]["text"]
    assert dropped == ("json_schema",)
    body, dropped = write(
        "messages", output=JsonOutput(schema={"$ref": "#/$defs/A", "$defs": {"A": {"type": "string"}}})
    )
    assert (set(body["output_config"]), dropped) == ({"format"}, ())


def test_many_strict_tools_are_not_strict_for_anthropic() -> None:
    """Anthropic compiles 20 strict tools at most: more of them are sent as tools that are not strict."""
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    tools = tuple(ToolDefinition(name=f"tool_{n}", schema=schema, strict=True) for n in range(21))
    body, dropped = write("messages", tools=tools[:20])
    assert (all(tool["strict"] for tool in body["tools"]), dropped) == (True, ())
    body, dropped = write("messages", tools=tools)
    assert (any("strict" in tool for tool in body["tools"]), dropped) == (False, ("strict",))


@pytest.mark.parametrize("wire", ["chat", "responses"])
def test_an_output_that_is_no_object_is_an_instruction_for_openai(wire: str) -> None:
    """OpenAI rejects a schema whose root is an array: the model is told of it, and the loss is named."""
    body, dropped = write(wire, output=JsonOutput(schema={"type": "array", "items": {"type": "string"}}))
    assert not {"response_format", "text"} & set(body)
    assert '"array"' in str(body.get("instructions") or body["messages"][0]["content"])
    assert dropped == ("json_schema",)
    referring = {"$ref": "#/$defs/A", "$defs": {"A": {"type": "object", "properties": {}}}}
    body, dropped = write(wire, output=JsonOutput(schema=referring))
    found = body["response_format"]["json_schema"] if wire == "chat" else body["text"]["format"]
    assert (found["schema"]["type"], dropped) == ("object", ())
