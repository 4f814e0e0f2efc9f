"""Client of Gemini's API, with Google's SDK."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

from google import genai
from google.genai import types

from tests.gateway.cross_wire.talk import Call, Heard, Pdf, Result, ResultTurn, Said, Talk, TalkTurn, UserTurn

REFUSALS = {"SAFETY", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII", "RECITATION"}


def request(talk: Talk) -> dict[str, Any]:
    config: dict[str, Any] = {"max_output_tokens": talk.max_tokens}
    if talk.system:
        config["system_instruction"] = talk.system
    if talk.tools:
        functions = [
            types.FunctionDeclaration(name=name, description=name, parameters_json_schema=schema)
            for name, schema in talk.tools
        ]
        config["tools"] = [types.Tool(function_declarations=functions)]
        config["automatic_function_calling"] = types.AutomaticFunctionCallingConfig(disable=True)
    if talk.schema is not None:
        config |= {"response_mime_type": "application/json", "response_json_schema": talk.schema}
    if talk.stop:
        config["stop_sequences"] = list(talk.stop)
    return {"model": talk.model, "contents": [_content(turn) for turn in talk.turns], "config": config}


def _content(turn: TalkTurn) -> types.Content:
    if isinstance(turn, UserTurn):
        return types.Content(role="user", parts=[_part(said) for said in turn.said])
    if isinstance(turn, ResultTurn):
        return types.Content(role="user", parts=[part for result in turn.results for part in _result(result)])
    parts = [types.Part(text=turn.text)] if turn.text else []
    parts += [
        types.Part(
            function_call=types.FunctionCall(id=call.id, name=call.name, args=call.arguments),
            thought_signature=b"skip_thought_signature_validator" if call is turn.calls[0] else None,
        )
        for call in turn.calls
    ]
    return types.Content(role="model", parts=parts)


def _part(said: Said) -> types.Part:
    if isinstance(said, str):
        return types.Part(text=said)
    if isinstance(said, Pdf):
        return types.Part.from_bytes(data=b64decode(said.data), mime_type="application/pdf")
    if said.url:
        return types.Part.from_uri(file_uri=said.url, mime_type="image/png")
    return types.Part.from_bytes(data=b64decode(said.data), mime_type="image/png")


def _result(result: Result) -> list[types.Part]:
    text = "\n".join(said for said in result.said if isinstance(said, str))
    media = [_part(said) for said in result.said if not isinstance(said, str)]
    response = types.FunctionResponse(
        id=result.call, name=result.name, response={"error" if result.is_error else "output": text}
    )
    return [types.Part(function_response=response), *media]


def go_on(body: dict[str, Any], heard: Heard, turn: UserTurn | ResultTurn) -> dict[str, Any]:
    """Return the next request, with the answer as the SDK gave it."""
    return {**body, "contents": [*body["contents"], *heard.own, _content(turn)]}


def send(url: str, body: dict[str, Any], *, stream: bool) -> Heard:
    client = genai.Client(api_key="own-key", http_options=types.HttpOptions(base_url=url, timeout=60_000))
    config = types.GenerateContentConfig(**body["config"])
    asked = {"model": body["model"], "contents": body["contents"], "config": config}
    try:
        chunks = (
            list(client.models.generate_content_stream(**asked))
            if stream
            else [client.models.generate_content(**asked)]
        )
    finally:
        client.close()
    candidates = [candidate for chunk in chunks for candidate in chunk.candidates or ()]
    contents = [candidate.content for candidate in candidates if candidate.content and candidate.content.parts]
    parts = [part for content in contents for part in content.parts or ()]
    calls = tuple(
        Call(part.function_call.id or "", part.function_call.name or "", dict(part.function_call.args or {}))
        for part in parts
        if part.function_call
    )
    reasons = [candidate.finish_reason.value for candidate in candidates if candidate.finish_reason]
    text = "".join(part.text or "" for part in parts if not part.thought)
    return Heard(text, calls, _stop(chunks, reasons, calls), contents)


def _stop(chunks: list[Any], reasons: list[str], calls: tuple[Call, ...]) -> str:
    if any(chunk.prompt_feedback and chunk.prompt_feedback.block_reason for chunk in chunks):
        return "refusal"
    (reason,) = reasons
    if reason in REFUSALS:
        return "refusal"
    return {"STOP": "calls" if calls else "end", "MAX_TOKENS": "limit"}[reason]
