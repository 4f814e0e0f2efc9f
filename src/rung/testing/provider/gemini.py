"""Google's Gemini API (generateContent): request parsing and validation, response bodies and streams."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

from rung.testing.provider.answers import signature
from rung.testing.provider.gemini_checks import (
    as_texts,
    check_config,
    check_tools,
    check_turns,
    fields_of,
    read_contents,
    table_of,
    turns_of,
)
from rung.testing.provider.messages import ID_PLACEHOLDER
from rung.testing.provider.parsed_request import (
    InvalidRequest,
    LabWire,
    ParsedRequest,
    ParsedTool,
    ParsedTurn,
    as_list,
    count_tokens,
    first_int,
    joined_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rung.testing.provider.answers import AnswerBlock, ScriptedAnswer

    Fields = dict[str, Any]

STOP_REASONS: Final = {"end": "STOP", "limit": "MAX_TOKENS", "tool": "STOP", "refusal": "SAFETY"}
COUNT: Final = "countTokens"
# A blank line. Google sends no pings, and its SDK takes a comment for a chunk.
PING: Final = b"\n"
_WHOLE: Final = "generateContent"
_STREAM: Final = "streamGenerateContent"
_PATH: Final = re.compile(r"/(?:models|tunedModels)/([^/:]+):(\w+)$")


def parse_path(path: str) -> tuple[str, str]:
    """Return the model and the method of a path; both are empty if it has none."""
    found = _PATH.search(path)
    return (unquote(found[1]), found[2]) if found else ("", "")


def is_generation(path: str) -> bool:
    """Return whether a path is one of a model request."""
    return parse_path(path)[1] in (_WHOLE, _STREAM)


def parse_request(body: Fields, target: str) -> ParsedRequest:
    """Parse a request; raise InvalidRequest if Google would reject it."""
    url = urlsplit(target)
    model, method = parse_path(url.path)
    if method == _STREAM and parse_qs(url.query).get("alt") != ["sse"]:
        raise InvalidRequest("The lab streams with alt=sse only.")
    fields = fields_of(body, "")
    contents = read_contents(fields.get("contents"))
    turns = turns_of(contents)
    check_turns(turns, model)
    config = table_of(fields, "generationConfig", "generation_config")
    thinking = table_of(config, "thinkingConfig", "thinking_config")
    check_config(config, thinking)
    declarations, calling = _tools(fields)
    check_tools(declarations, calling)
    return ParsedRequest(
        wire=LabWire.GEMINI,
        model=model,
        stream=method == _STREAM,
        limit=first_int(config, "maxOutputTokens"),
        tokens=count_tokens([contents, fields.get("systemInstruction"), fields.get("tools")]) + 4 * len(contents),
        turns=tuple(map(_turn, turns)),
        tools=tuple(ParsedTool(name=each["name"], schema=_parameters(each)) for each in declarations),
        forced=_forced(calling),
        thinking=thinking.get("includeThoughts") is True,
        schema=_schema(config),
    )


def _tools(fields: Fields) -> tuple[list[Fields], Fields]:
    """Return the declared functions, and the choice between them."""
    tools = [_camel(tool) for tool in as_list(fields.get("tools"))]
    declarations = [
        fields_of(each, "function_declaration") for tool in tools for each in as_list(tool.get("functionDeclarations"))
    ]
    choice = _camel(fields["toolConfig"]) if isinstance(fields.get("toolConfig"), dict) else {}
    return declarations, table_of(choice, "functionCallingConfig", "function_calling_config")


def _camel(fields: Fields) -> Fields:
    return {re.sub(r"_([a-z])", lambda found: found[1].upper(), name): value for name, value in fields.items()}


def _parameters(declaration: Fields) -> Any:
    schema = declaration.get("parametersJsonSchema")
    return schema if isinstance(schema, dict) else _with_lower_types(declaration.get("parameters") or {})


def _forced(calling: Fields) -> str | None:
    """Return the tool that must be called; "" means any tool, None means no tool."""
    if calling.get("mode") != "ANY":
        return None
    return next(iter(as_texts(calling.get("allowedFunctionNames"))), "")


def _schema(config: Fields) -> Any:
    if config.get("responseMimeType") != "application/json":
        return None
    schema = config.get("responseJsonSchema") or _with_lower_types(config.get("responseSchema"))
    return schema or {"type": "object"}


def _with_lower_types(schema: Any) -> Any:
    """Return Google's schema as a JSON Schema, whose types are in lower case."""
    if isinstance(schema, list):
        return [_with_lower_types(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: value.lower() if key == "type" and isinstance(value, str) else _with_lower_types(value)
        for key, value in schema.items()
    }


def _turn(content: Fields) -> ParsedTurn:
    parts = content["parts"]
    return ParsedTurn(
        role="assistant" if content["role"] == "model" else "user",
        text=joined_text([part for part in parts if not part.get("thought")]),
        calls=tuple(str(part["functionCall"].get("name")) for part in parts if "functionCall" in part),
        results=tuple(str(part["functionResponse"].get("name")) for part in parts if "functionResponse" in part),
    )


def response_body(request: ParsedRequest, answer: ScriptedAnswer) -> Fields:
    """Return the body of an unstreamed response."""
    content: Fields = {"role": "model"}
    parts = [part for at, block in enumerate(answer.blocks) for part in _parts(request, answer, block, at)]
    if parts:
        content["parts"] = parts
    candidate = {"content": content, "finishReason": STOP_REASONS[answer.stop], "index": 0}
    return {"candidates": [candidate], "usageMetadata": _usage(request, answer), **_head(request)}


def events(request: ParsedRequest, answer: ScriptedAnswer) -> Iterator[tuple[bytes, int]]:
    """Yield the chunks of a streamed response, each with its token count. A call comes in one chunk."""
    for at, block in enumerate(answer.blocks):
        if block.kind == "tool":
            for part in _parts(request, answer, block, at):
                yield _chunk(request, part), len(block.tokens)
        else:
            for token in block.tokens:
                yield _chunk(request, _text_part(block, token)), 1
    ending = {"finishReason": STOP_REASONS[answer.stop]}
    yield _chunk(request, {"text": ""}, ending, _usage(request, answer)), 0


def data(chunk: Fields) -> bytes:
    """Encode one server-sent event as Google does."""
    return f"data: {json.dumps(chunk, separators=(',', ':'))}\r\n\r\n".encode()


def _chunk(request: ParsedRequest, part: Fields, ending: Fields | None = None, usage: Fields | None = None) -> bytes:
    candidate = {"content": {"parts": [part], "role": "model"}, **(ending or {}), "index": 0}
    counts = usage or {"promptTokenCount": request.tokens, "totalTokenCount": request.tokens}
    return data({"candidates": [candidate], "usageMetadata": counts, **_head(request)})


def _parts(request: ParsedRequest, answer: ScriptedAnswer, block: AnswerBlock, at: int) -> list[Fields]:
    """Return the part of a block. A truncated call is left out, and only the first call is signed."""
    if block.kind != "tool":
        return [_text_part(block, block.text)]
    if not block.is_complete:
        return []
    part: Fields = {"functionCall": {"name": block.name, "args": _arguments(block)}}
    if not any(each.kind == "tool" for each in answer.blocks[:at]):
        part["thoughtSignature"] = signature(request.model)
    return [part]


def _text_part(block: AnswerBlock, text: str) -> Fields:
    return {"text": text, "thought": True} if block.kind == "thinking" else {"text": text}


def _arguments(block: AnswerBlock) -> Any:
    try:
        return json.loads(block.text)
    except ValueError:
        return {}  # a call of this API cannot carry invalid JSON


def _head(request: ParsedRequest) -> Fields:
    return {"modelVersion": request.model, "responseId": f"lab{ID_PLACEHOLDER}"}


def _usage(request: ParsedRequest, answer: ScriptedAnswer) -> Fields:
    thought = sum(len(block.tokens) for block in answer.blocks if block.kind == "thinking")
    return {
        "promptTokenCount": request.tokens, "candidatesTokenCount": answer.tokens - thought,
        "totalTokenCount": request.tokens + answer.tokens, **({"thoughtsTokenCount": thought} if thought else {}),
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": request.tokens}],
    }  # fmt: skip


def model_row(name: str) -> Fields:
    """Return a model as the list of models has it."""
    return {
        "name": f"models/{name}", "version": "001", "displayName": name, "inputTokenLimit": 1_048_576,
        "outputTokenLimit": 65_536, "supportedGenerationMethods": [_WHOLE, COUNT],
    }  # fmt: skip
