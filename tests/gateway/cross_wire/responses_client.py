"""Client of OpenAI's Responses API, with its SDK."""

from __future__ import annotations

import json
from typing import Any

import openai

from tests.gateway.cross_wire.talk import Call, Heard, Pdf, ResultTurn, Said, Talk, TalkTurn, UserTurn


def request(talk: Talk) -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": talk.model,
        "max_output_tokens": talk.max_tokens,
        "input": [item for turn in talk.turns for item in _items(turn)],
    }
    if talk.system:
        body["instructions"] = talk.system
    if talk.tools:
        body["tools"] = [
            {"type": "function", "name": name, "description": name, "parameters": schema, "strict": False}
            for name, schema in talk.tools
        ]
    if talk.schema is not None:
        schema = {"type": "json_schema", "name": "answer", "schema": talk.schema, "strict": True}
        body["text"] = {"format": schema}
    return body  # the API has no stop sequences


def _items(turn: TalkTurn) -> list[dict[str, Any]]:
    if isinstance(turn, UserTurn):
        return [{"role": "user", "content": [_part(said) for said in turn.said]}]
    if isinstance(turn, ResultTurn):
        return [
            {
                "type": "function_call_output",
                "call_id": result.call,
                "output": [_part(said) for said in (("Error:", *result.said) if result.is_error else result.said)],
            }
            for result in turn.results
        ]
    text: list[Any] = [{"role": "assistant", "content": turn.text}] if turn.text else []
    return text + [
        {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": json.dumps(call.arguments)}
        for call in turn.calls
    ]


def _part(said: Said) -> dict[str, Any]:
    if isinstance(said, str):
        return {"type": "input_text", "text": said}
    if isinstance(said, Pdf):
        data = f"data:application/pdf;base64,{said.data}"
        return {"type": "input_file", "filename": "report.pdf", "file_data": data}
    url = said.url or f"data:image/png;base64,{said.data}"
    return {"type": "input_image", "image_url": url, "detail": "auto"}


def go_on(body: dict[str, Any], heard: Heard, turn: UserTurn | ResultTurn) -> dict[str, Any]:
    """Return the next request, with the answer as the SDK gave it."""
    answer = [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in heard.own.output]
    for item in answer:
        for part in item.get("content", ()):
            part.pop("parsed", None)
    return {**body, "input": [*body["input"], *answer, *_items(turn)]}


def send(url: str, body: dict[str, Any], *, stream: bool) -> Heard:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="sk-own", max_retries=0, timeout=60.0) as client:
        if stream:
            with client.responses.stream(**body) as events:
                # The helper itself only gives a response that is complete.
                last: Any = list(events)[-1]
                response: Any = events.get_final_response() if last.type == "response.completed" else last.response
        else:
            response = client.responses.create(**body)
    assert response.usage.output_tokens >= 0
    calls = tuple(
        Call(item.call_id, item.name, json.loads(item.arguments))
        for item in response.output
        if item.type == "function_call"
    )
    parts = [part for item in response.output if item.type == "message" for part in item.content]
    refusal = "".join(part.refusal for part in parts if part.type == "refusal")
    return Heard(response.output_text, calls, _stop(response, calls, refusal), response, refusal)


def _stop(response: Any, calls: tuple[Call, ...], refusal: str) -> str:
    if response.status == "incomplete":
        return "refusal" if response.incomplete_details.reason == "content_filter" else "limit"
    assert response.status == "completed"
    return "calls" if calls else "refusal" if refusal else "end"
