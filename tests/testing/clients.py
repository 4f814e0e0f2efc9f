"""Real SDKs that send the same request with each API, and their parsed answers."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import anthropic
import openai
from google import genai
from google.genai import types

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "lines": {"type": "integer"}},
    "required": ["path", "lines"],
}
PROMPT = "Please say what you have to say about this, in as many words as you like."
WIRES = ("messages", "chat", "responses", "gemini")
WAYS = [(wire, stream) for wire in WIRES for stream in (False, True)]


@dataclass
class Seen:
    """An answer as the caller sees it."""

    text: str = ""
    stop: str | None = None
    calls: list[tuple[str, str]] = field(default_factory=list)  # name, arguments as JSON
    usage: tuple[int, int] | None = None
    thinking: str = ""
    id: str = ""


class Asker:
    """The SDKs for one base URL, with their retries disabled by default."""

    def __init__(self, url: str, retries: int = 0, seconds: float = 5.0, key: str = "sk-test-1234567") -> None:
        self.anthropic = anthropic.Anthropic(api_key=key, base_url=url, max_retries=retries, timeout=seconds)
        self.openai = openai.OpenAI(api_key=key, base_url=f"{url}/v1", max_retries=retries, timeout=seconds)
        options = types.HttpOptions(base_url=url, timeout=int(seconds * 1_000))
        self.gemini = genai.Client(api_key=key, http_options=options)

    def __enter__(self) -> Asker:
        return self

    def __exit__(self, *_: object) -> None:
        self.anthropic.close()
        self.openai.close()
        self.gemini.close()

    def ask(
        self,
        wire: str,
        stream: bool,
        messages: Any = None,
        *,
        tools: bool = False,
        model: str = "lab-small",
        **more: Any,
    ) -> Seen:
        """Send a request with one API; exceptions of the SDK propagate."""
        messages = messages or [{"role": "user", "content": PROMPT}]
        if tools:
            more["tools"] = [_TOOLS[wire]]
        way = getattr(self, f"_{wire}_{'stream' if stream else 'whole'}")
        seen: Seen = way(model=model, messages=messages, **more)
        return seen

    def _messages_whole(self, **asked: Any) -> Seen:
        return _of_message(self.anthropic.messages.create(**{"max_tokens": 1_000, **asked}))

    def _messages_stream(self, **asked: Any) -> Seen:
        with self.anthropic.messages.stream(**{"max_tokens": 1_000, **asked}) as stream:
            return _of_message(stream.get_final_message())

    def _chat_whole(self, **asked: Any) -> Seen:
        done = self.openai.chat.completions.create(**_limit(asked, "max_completion_tokens"))
        choice = done.choices[0]
        calls = [(call.function.name, call.function.arguments) for call in choice.message.tool_calls or []]
        usage = (done.usage.prompt_tokens, done.usage.completion_tokens)
        text = choice.message.content or choice.message.refusal or ""
        return Seen(text=text, stop=choice.finish_reason, calls=calls, usage=usage, id=done.id)

    def _chat_stream(self, **asked: Any) -> Seen:
        seen = Seen()
        asked = {"stream_options": {"include_usage": True}, **_limit(asked, "max_completion_tokens")}
        with self.openai.chat.completions.create(stream=True, **asked) as stream:
            for chunk in stream:
                seen.id = chunk.id
                if chunk.usage:
                    seen.usage = (chunk.usage.prompt_tokens, chunk.usage.completion_tokens)
                for choice in chunk.choices:
                    seen.text += choice.delta.content or choice.delta.refusal or ""
                    seen.stop = choice.finish_reason or seen.stop
                    for call in choice.delta.tool_calls or []:
                        if call.id:
                            seen.calls.append((call.function.name, ""))
                        name, so_far = seen.calls[call.index]
                        seen.calls[call.index] = (name, so_far + (call.function.arguments or ""))
        return seen

    def _responses_whole(self, **asked: Any) -> Seen:
        return _of_response(self.openai.responses.create(**_as_input(asked)))

    def _responses_stream(self, **asked: Any) -> Seen:
        seen, ended = Seen(), Seen()
        with self.openai.responses.create(stream=True, **_as_input(asked)) as stream:
            for event in stream:
                if event.type in {"response.output_text.delta", "response.refusal.delta"}:
                    seen.text += event.delta
                if event.type in {"response.completed", "response.incomplete"}:
                    ended = _of_response(event.response)
        assert ended.text in {"", seen.text}
        return seen if ended.stop is None else ended

    def _gemini_whole(self, **asked: Any) -> Seen:
        seen = Seen()
        _add_chunk(seen, self.gemini.models.generate_content(**as_contents(asked)))
        return seen

    def _gemini_stream(self, **asked: Any) -> Seen:
        seen = Seen()
        for chunk in self.gemini.models.generate_content_stream(**as_contents(asked)):
            _add_chunk(seen, chunk)
        return seen


_TOOLS: dict[str, Any] = {
    "messages": {"name": "read", "description": "Read a file.", "input_schema": SCHEMA},
    "chat": {"type": "function", "function": {"name": "read", "parameters": SCHEMA}},
    "responses": {"type": "function", "name": "read", "parameters": SCHEMA},
    "gemini": {"function_declarations": [{"name": "read", "parameters_json_schema": SCHEMA}]},
}


def _limit(asked: dict[str, Any], name: str) -> dict[str, Any]:
    return {name if key == "max_tokens" else key: value for key, value in asked.items()}


def _as_input(asked: dict[str, Any]) -> dict[str, Any]:
    return {"input" if key == "messages" else key: value for key, value in _limit(asked, "max_output_tokens").items()}


def as_contents(asked: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of google-genai."""
    contents = [
        {"role": "model" if message["role"] == "assistant" else "user", "parts": [{"text": message["content"]}]}
        for message in asked["messages"]
    ]
    names = {"max_tokens": "max_output_tokens"}
    config = {names.get(key, key): value for key, value in asked.items() if key not in ("model", "messages")}
    return {"model": asked["model"], "contents": contents, "config": config}


def _add_chunk(seen: Seen, chunk: Any) -> None:
    """Add a chunk of a stream, or a whole answer."""
    seen.id = chunk.response_id or seen.id
    for candidate in chunk.candidates or ():
        parts = (candidate.content.parts or ()) if candidate.content else ()
        for part in parts:
            if part.function_call:
                seen.calls.append((part.function_call.name, json.dumps(part.function_call.args)))
            elif part.thought:
                seen.thinking += part.text
            else:
                seen.text += part.text or ""
        if candidate.finish_reason:
            seen.stop = candidate.finish_reason.value
    if chunk.usage_metadata:
        used = chunk.usage_metadata
        output = (used.candidates_token_count or 0) + (used.thoughts_token_count or 0)
        seen.usage = (used.prompt_token_count, output)


def _of_message(message: Any) -> Seen:
    return Seen(
        text="".join(block.text for block in message.content if block.type == "text"),
        thinking="".join(block.thinking for block in message.content if block.type == "thinking"),
        stop=message.stop_reason,
        calls=[(block.name, json.dumps(block.input)) for block in message.content if block.type == "tool_use"],
        usage=(message.usage.input_tokens, message.usage.output_tokens),
        id=message.id,
    )


def _of_response(response: Any) -> Seen:
    seen = Seen(stop=response.status, usage=(response.usage.input_tokens, response.usage.output_tokens), id=response.id)
    if response.incomplete_details:
        seen.stop = response.incomplete_details.reason
    for item in response.output:
        if item.type == "function_call":
            seen.calls.append((item.name, item.arguments))
        elif item.type == "reasoning":
            seen.thinking += "".join(part.text for part in item.summary)
        else:
            seen.text += "".join(part.text if part.type == "output_text" else part.refusal for part in item.content)
    return seen
