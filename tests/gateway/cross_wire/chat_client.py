"""Client of OpenAI's Chat Completions API, with its SDK."""

from __future__ import annotations

import json
from typing import Any

import openai

from tests.gateway.cross_wire.talk import Call, Heard, Pdf, Result, ResultTurn, Said, Talk, TalkTurn, UserTurn

STOPS = {"stop": "end", "tool_calls": "calls", "content_filter": "refusal", "length": "limit"}


def request(talk: Talk) -> dict[str, Any]:
    messages = [{"role": "system", "content": talk.system}] if talk.system else []
    body: dict[str, Any] = {
        "model": talk.model,
        "max_completion_tokens": talk.max_tokens,
        "messages": messages + [message for turn in talk.turns for message in _messages(turn)],
    }
    if talk.tools:
        body["tools"] = [
            {"type": "function", "function": {"name": name, "description": name, "parameters": schema}}
            for name, schema in talk.tools
        ]
    if talk.schema is not None:
        schema = {"name": "answer", "schema": talk.schema, "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    if talk.stop:
        body["stop"] = list(talk.stop)
    return body


def _messages(turn: TalkTurn) -> list[dict[str, Any]]:
    if isinstance(turn, UserTurn):
        return [{"role": "user", "content": [_item(said) for said in turn.said]}]
    if isinstance(turn, ResultTurn):
        return [message for result in turn.results for message in _result(result)] + _shown(turn.results)
    message: dict[str, Any] = {"role": "assistant", "content": turn.text or None}
    if turn.calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
            }
            for call in turn.calls
        ]
    return [message]


def _item(said: Said) -> dict[str, Any]:
    if isinstance(said, str):
        return {"type": "text", "text": said}
    if isinstance(said, Pdf):
        return {
            "type": "file",
            "file": {"filename": "report.pdf", "file_data": f"data:application/pdf;base64,{said.data}"},
        }
    return {"type": "image_url", "image_url": {"url": said.url or f"data:image/png;base64,{said.data}"}}


def _result(result: Result) -> list[dict[str, Any]]:
    text = "\n".join(said for said in result.said if isinstance(said, str)) or "See below."
    return [{"role": "tool", "tool_call_id": result.call, "content": f"Error: {text}" if result.is_error else text}]


def _shown(results: tuple[Result, ...]) -> list[dict[str, Any]]:
    """Return the media of results as a user's message: this API has no others."""
    media = [_item(said) for result in results for said in result.said if not isinstance(said, str)]
    return [{"role": "user", "content": media}] if media else []


def go_on(body: dict[str, Any], heard: Heard, turn: UserTurn | ResultTurn) -> dict[str, Any]:
    """Return the next request, with the answer as the SDK gave it."""
    answer = heard.own.model_dump(exclude_none=True, exclude={"parsed"})
    for call in answer.get("tool_calls", ()):
        call.pop("index", None)
        call["function"].pop("parsed_arguments", None)
    return {**body, "messages": [*body["messages"], answer, *_messages(turn)]}


def send(url: str, body: dict[str, Any], *, stream: bool) -> Heard:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="sk-own", max_retries=0, timeout=60.0) as client:
        if stream:
            with client.chat.completions.stream(**body, stream_options={"include_usage": True}) as events:
                try:
                    completion: Any = events.until_done().get_final_completion()
                except openai.ContentFilterFinishReasonError:  # by which this helper tells of a filter
                    return Heard("", (), "refusal", None)
        else:
            completion = client.chat.completions.create(**body)
    assert completion.usage.completion_tokens >= 0
    (choice,) = completion.choices
    message = choice.message
    calls = tuple(
        Call(call.id, call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls or ()
    )
    stop = "refusal" if message.refusal else STOPS[choice.finish_reason]
    return Heard(message.content or "", calls, stop, message, message.refusal or "")
