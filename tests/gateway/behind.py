"""Test rig: a gateway in front of a lab, both on loopback, each in its own thread."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any, Self, TypeVar

import anthropic
import httpx
import openai
import uvloop
from google import genai
from google.genai import types

from rung.core.policy.parser import parse_policy_file
from rung.gateway.serve import RunningGateway
from rung.gateway.settings import GatewaySettings, settings_from
from rung.testing.provider import Lab

if TYPE_CHECKING:
    from rung.gateway.gateway import Gateway

C = TypeVar("C")
# Delays that are short enough for tests.
QUICK: dict[str, Any] = {"retries": 3, "patience": 0, "backoff": {"base": 0.02, "cap": 0.1}}
# Timeouts that no good response reaches on a busy machine, and timeouts for upstreams that hang on purpose.
TIMEOUTS = {
    "connect": 60.0,
    "headers": 60.0,
    "total": 60.0,
    "first_token": 60.0,
    "idle": 60.0,
    "last_resort_factor": 1.0,
}
IMPATIENT = {"connect": 60.0, "headers": 2.0, "total": 2.0, "first_token": 2.0, "idle": 1.0, "last_resort_factor": 1.0}
LONG = 180.0
NEVER = 100_000.0


class Behind:
    """A lab, and a gateway that uses it as upstream."""

    def __init__(
        self, script: Any = None, *, policy: Any = None, journal: Any = None, detectors: Any = (), **settings: Any
    ) -> None:
        lab = {
            key: settings.pop(key)
            for key in list(settings)
            if key
            in (
                "words",
                "overlap",
                "turns",
                "calls",
                "models",
                "gap",
                "delay",
                "thinking",
                "window",
                "max_output",
                "rate",
                "seed",
            )
        }
        self.lab = Lab(script, **lab)
        self.policy_table = {**QUICK, **(policy or {})}
        self._tools = settings.pop("tools", {})
        self._apis = settings.pop("apis", ("anthropic", "openai", "gemini"))  # whose upstream is the lab
        self._settings = settings
        self._journal = journal
        self._detectors = detectors
        self._started = threading.Event()
        self.log_lines: list[str] = []
        self._clients: list[Any] = []
        self.served: RunningGateway

    def settings(self, **more: Any) -> GatewaySettings:
        table = {
            **dict.fromkeys(self._apis, self.lab.url),
            "timeouts": TIMEOUTS,
            "probe_seconds": NEVER,
            "port": 0,
            **self._settings,
            **more,
        }
        loops = table.pop("loops", None)
        return settings_from(table, parse_policy_file({"policy": self.policy_table, "tools": self._tools}), loops=loops)

    def __enter__(self) -> Self:
        self.lab.__enter__()
        self.served = RunningGateway(self.settings(), self._journal, self._log, self._detectors)
        self.thread = threading.Thread(target=lambda: uvloop.run(self.served.run()), daemon=True)
        self.thread.start()
        assert self._started.wait(LONG)
        return self

    def __exit__(self, *_: object) -> None:
        for client in self._clients:
            client.close()
        self.served.stop()
        self.thread.join(LONG)
        assert not self.thread.is_alive()
        self.lab.__exit__()

    def _log(self, line: str) -> None:
        self.log_lines.append(line)
        self._started.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.served.port}"

    @property
    def gateway(self) -> Gateway:
        assert self.served.app is not None
        return self.served.app.gateway

    @property
    def attempts(self) -> int:
        return self.lab.attempts

    def _closed(self, client: C) -> C:
        self._clients.append(client)
        return client

    def claude(self, **options: Any) -> anthropic.Anthropic:
        return self._closed(
            anthropic.Anthropic(base_url=self.url, api_key="sk-ant-test", max_retries=0, timeout=LONG, **options)
        )

    def gpt(self, **options: Any) -> openai.OpenAI:
        return self._closed(
            openai.OpenAI(base_url=f"{self.url}/v1", api_key="sk-test", max_retries=0, timeout=LONG, **options)
        )

    def google(self) -> genai.Client:
        options = types.HttpOptions(base_url=self.url, api_version="v1beta", timeout=int(1_000 * LONG))
        return self._closed(genai.Client(api_key="g-test", http_options=options))

    def http(self, **options: Any) -> httpx.Client:
        return self._closed(httpx.Client(base_url=self.url, **{"timeout": LONG, **options}))


ASK: Any = [{"role": "user", "content": "count to 40 as apple"}]
TOOL: Any = {
    "name": "look",
    "description": "Look.",
    "input_schema": {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]},
}
CHAT_TOOL: Any = {
    "type": "function",
    "function": {"name": "look", "description": "Look.", "parameters": TOOL["input_schema"]},
}
RESPONSES_TOOL: Any = {"type": "function", "name": "look", "description": "Look.", "parameters": TOOL["input_schema"]}


GEMINI_TOOL: Any = {
    "function_declarations": [
        {"name": "look", "description": "Look.", "parameters_json_schema": TOOL["input_schema"]},
    ]
}


class Got:
    """An answer, independent of API and streaming."""

    def __init__(self, text: str, stop: str | None, calls: list[str], usage: int) -> None:
        self.text, self.stop, self.calls, self.usage = text, stop, calls, usage


def messages(client: anthropic.Anthropic, *, stream: bool, tools: bool = False, **more: Any) -> Got:
    """Send a request with Anthropic's Messages API."""
    asked: Any = {
        "model": "small",
        "max_tokens": 4_000,
        "messages": ASK,
        **({"tools": [TOOL]} if tools else {}),
        **more,
    }
    if stream:
        with client.messages.stream(**asked) as events:
            message: Any = events.get_final_message()
    else:
        message = client.messages.create(**asked)
    text = "".join(block.text for block in message.content if block.type == "text")
    calls = [str(block.input) for block in message.content if block.type == "tool_use"]
    return Got(text, message.stop_reason, calls, message.usage.output_tokens)


def chat(client: openai.OpenAI, *, stream: bool, tools: bool = False, **more: Any) -> Got:
    """Send a request with OpenAI's Chat Completions API."""
    asked: Any = {
        "model": "small",
        "max_completion_tokens": 4_000,
        "messages": ASK,
        **({"tools": [CHAT_TOOL]} if tools else {}),
        **more,
    }
    if stream:
        with client.chat.completions.stream(**asked, stream_options={"include_usage": True}) as events:
            completion: Any = events.get_final_completion()
    else:
        completion = client.chat.completions.create(**asked)
    choice = completion.choices[0]
    calls = [call.function.arguments for call in choice.message.tool_calls or ()]
    return Got(
        choice.message.content or choice.message.refusal or "",
        choice.finish_reason,
        calls,
        completion.usage.completion_tokens,
    )


def responses(client: openai.OpenAI, *, stream: bool, tools: bool = False, **more: Any) -> Got:
    """Send a request with OpenAI's Responses API."""
    asked: Any = {
        "model": "small",
        "max_output_tokens": 4_000,
        "input": ASK[0]["content"],
        **({"tools": [RESPONSES_TOOL]} if tools else {}),
        **more,
    }
    if stream:
        with client.responses.stream(**asked) as events:
            response: Any = events.get_final_response()
    else:
        response = client.responses.create(**asked)
    calls = [item.arguments for item in response.output if item.type == "function_call"]
    refused = [
        part.refusal
        for item in response.output
        if item.type == "message"
        for part in item.content
        if part.type == "refusal"
    ]
    return Got(response.output_text + "".join(refused), response.status, calls, response.usage.output_tokens)


def gemini(client: genai.Client, *, stream: bool, tools: bool = False, **more: Any) -> Got:
    """Send a request with Google's Gemini API."""
    config: Any = {"max_output_tokens": 4_000, **({"tools": [GEMINI_TOOL]} if tools else {})}
    asked: Any = {"model": "small", "contents": ASK[0]["content"], "config": config, **more}
    if stream:
        chunks = list(client.models.generate_content_stream(**asked))
    else:
        chunks = [client.models.generate_content(**asked)]
    candidates = [candidate for chunk in chunks for candidate in chunk.candidates or ()]
    parts = [part for each in candidates if each.content is not None for part in each.content.parts or ()]
    stops = [each.finish_reason.value.lower() for each in candidates if each.finish_reason is not None]
    usage = chunks[-1].usage_metadata if chunks else None
    blocked = [chunk.prompt_feedback.block_reason for chunk in chunks if chunk.prompt_feedback is not None]
    return Got(
        "".join(part.text or "" for part in parts if not part.thought),
        stops[-1] if stops else "content_filter" if any(blocked) else None,
        [json.dumps(part.function_call.args) for part in parts if part.function_call is not None],
        (usage.candidates_token_count or 0) if usage is not None else 0,
    )


def ask(behind: Behind, wire: str, **how: Any) -> Got:
    """Send a request with the API of this wire."""
    if wire == "messages":
        return messages(behind.claude(), **how)
    if wire == "gemini":
        return gemini(behind.google(), **how)
    return (chat if wire == "chat" else responses)(behind.gpt(), **how)


WHOLE = " ".join(f"apple{n}" for n in range(1, 41))
WIRES = ("messages", "chat", "responses")
ALL_WIRES = (*WIRES, "gemini")
