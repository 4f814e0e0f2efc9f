"""Cells of the recovery matrix: every lab fault, for each API, streamed and unstreamed, with each kind of client."""

from __future__ import annotations

import json
import time
from ast import literal_eval
from contextlib import closing
from typing import Any, NamedTuple

import anthropic
import httpx
import openai
from google import genai
from google.genai import errors, types

from rung.testing.provider import FAULTS, Lab
from tests.gateway.behind import (
    ALL_WIRES,
    ASK,
    CHAT_TOOL,
    RESPONSES_TOOL,
    TOOL,
    WHOLE,
    Got,
    chat,
    gemini,
    messages,
    responses,
)
from tests.wires.strict import GEMINI_PATHS, PATHS, ErrorEvent, Malformed, error_of, streamed, whole

TIMEOUT = 10.0
# Short timeouts that only silent upstreams reach.
TIMEOUTS = {"connect": 2.0, "headers": 2.0, "total": 2.0, "first_token": 2.0, "idle": 1.0, "last_resort_factor": 1.0}
POLICY = {"models": ["small", "large"], "backoff": {"base": 0.05, "cap": 0.3}}
DRIVERS = ("sdk", "http")
CONTENTS: list[Any] = [{"role": "user", "parts": [{"text": ASK[0]["content"]}]}]
LOOK: Any = {
    "functionDeclarations": [{"name": "look", "description": "Look.", "parametersJsonSchema": TOOL["input_schema"]}]
}


class Case(NamedTuple):
    """A fault, its parameters, when it is triggered, and the best possible result."""

    fault: str
    told: dict[str, Any] = {}  # noqa: RUF012  # read only
    strikes: dict[str, Any] = {"request": 1}  # noqa: RUF012  # read only
    best: str = "whole"  # or "error": not recoverable; "same": passed on unchanged
    tools: bool = False
    streams: tuple[bool, ...] = (False, True)
    long: bool = False  # a conversation that can be compacted


ALWAYS: dict[str, Any] = {}
_SMALL = {"model": "small"}  # every request of one model
_ONLY_STREAM = (True,)
CASES: dict[str, Case] = {
    **{name: Case(name, {}, ALWAYS, "error") for name in (
        "bad_request", "unauthorized", "payment", "forbidden", "not_found", "unprocessable", "quota", "spend_limit",
        "redirect", "too_large",
    )},
    "model_gone": Case("model_gone", {}, _SMALL),
    "wall": Case("wall", {}, _SMALL),
    **{f"rate_limit, {form}": Case("rate_limit", {"retry_after": 0.3, "form": form})
       for form in ("seconds", "ms", "date", "text", "reset")},
    **{name: Case(name) for name in (
        "request_timeout", "server_error", "bad_gateway", "unavailable", "gateway_timeout", "overloaded", "reset",
        "reset_headers", "wrong_type", "empty",
    )},
    "status 522": Case("status", {"status": 522}),
    "status 599": Case("status", {"status": 599}),
    "slow": Case("slow", {"seconds": 6.0}),
    "stall at once": Case("stall", {"after": 0, "seconds": 60.0}),
    "stall": Case("stall", {"after": 7, "seconds": 60.0}),
    "stall with pings": Case("stall", {"after": 7, "seconds": 12.0, "pings": True}, streams=_ONLY_STREAM),
    "cut at once": Case("cut", {"after": 0}),
    "cut": Case("cut", {"after": 7}),
    "cut by a reset": Case("cut", {"after": 7, "how": "reset"}),
    "cut twice": Case("cut", {"after": 9}, {"request": "1-2"}),
    "no_end": Case("no_end", {"after": 7}, streams=_ONLY_STREAM),
    "no_end of all": Case("no_end", {"after": -1}, streams=_ONLY_STREAM),
    **{f"stream_error, {error}": Case("stream_error", {"after": 7, "error": error})
       for error in ("overloaded", "server_error", "rate_limit", "request_timeout")},
    "stream_error at once": Case("stream_error", {"after": 0}),
    "truncated_json": Case("truncated_json", {"after": 7}),
    "max_tokens": Case("max_tokens", {"after": 7}),
    "max_tokens twice": Case("max_tokens", {"after": 9}, {"request": "1-2"}),
    "overflow": Case("overflow", {}, ALWAYS, long=True),
    "refusal": Case("refusal", {}, ALWAYS, "same"),
    "refusal half-way": Case("refusal", {"after": 7}, ALWAYS, "same"),
    "loop": Case("loop", tools=True),
    "bad_arguments": Case("bad_arguments", tools=True),
    "cut in a call": Case("cut", {"after": 1}, tools=True),
    "no_end in a call": Case("no_end", {"after": 1}, tools=True, streams=_ONLY_STREAM),
    "stall in a call": Case("stall", {"after": 1, "seconds": 60.0}, tools=True),
    "stream_error in a call": Case("stream_error", {"after": 1}, tools=True),
    "max_tokens in a call": Case("max_tokens", {"after": 1}, tools=True),
}  # fmt: skip
assert {case.fault for case in CASES.values()} == set(FAULTS), "every fault of the lab has a cell"


class Cell(NamedTuple):
    """One request of the matrix."""

    case: str
    wire: str
    stream: bool
    driver: str

    def __str__(self) -> str:
        return f"{self.case}-{self.wire}-{'stream' if self.stream else 'whole'}-{self.driver}".replace(" ", "_")


CELLS = [
    Cell(name, wire, stream, driver)
    for name, case in CASES.items()
    for wire in ALL_WIRES
    for stream in case.streams
    for driver in DRIVERS
]


class Found(NamedTuple):
    """Result of a request."""

    got: str  # "whole", "error", or a description
    attempts: int
    seconds: float
    lost: int = 0
    doubled: int = 0


def measure(lab: Lab, base: str, cell: Cell, headers: dict[str, str] | None = None) -> Found:
    """Send one request to a lab with the cell's fault."""
    case = CASES[cell.case]
    lab.use([{"fault": case.fault, **case.told, **case.strikes}], calls=1 if case.tools else 0)
    began = time.perf_counter()
    got, lost, doubled = _asked(base, cell, case, headers or {})
    return Found(got, lab.attempts, time.perf_counter() - began, lost, doubled)


def as_good_as_can_be(cell: Cell, ours: Found, bare: Found | None) -> bool:
    """Return whether the result is complete if possible, else a well-formed error within the expected attempts."""
    best = CASES[cell.case].best
    if best == "same":
        return bare is None or ours[:2] == bare[:2]
    return ours.got == best and not ours.lost and not ours.doubled


def _asked(base: str, cell: Cell, case: Case, headers: dict[str, str]) -> tuple[str, int, int]:
    try:
        got = (_by_sdk if cell.driver == "sdk" else _by_http)(base, cell, case, headers)
    except Malformed as error:
        return f"malformed: {error}", 0, 0
    except ErrorEvent:
        return "error event", 0, 0
    except _Error:
        return "error", 0, 0
    except (anthropic.APIStatusError, openai.APIStatusError) as error:
        good = isinstance(error.body, dict) and error.status_code >= 400
        return ("error" if good else f"error of status {error.status_code}"), 0, 0
    except errors.APIError as error:
        return ("error" if error.code >= 400 and error.message else f"error of status {error.code}"), 0, 0
    except Exception as error:
        return f"broken ({type(error).__name__})", 0, 0
    return _judged(got, case)


def _judged(got: Got, case: Case) -> tuple[str, int, int]:
    if case.tools:
        good = len(got.calls) == 1 and _complete(got.calls[0])
        return ("whole" if good else f"{len(got.calls)} calls, not whole"), 0, 0
    words = got.text.split()
    lost, doubled = len(set(WHOLE.split()) - set(words)), len(words) - len(set(words))
    if got.text == WHOLE and got.stop in ("end_turn", "stop", "completed"):
        return "whole", 0, 0
    if got.stop in ("refusal", "content_filter", "safety", "prohibited_content") or "can't help" in got.text:
        return "refusal", 0, 0
    if got.text == WHOLE:
        return f"no end ({got.stop})", 0, 0
    return f"{'silent' if not words else 'cut'} ({got.stop})", lost, doubled


def _complete(arguments: str) -> bool:
    """Return whether a tool call's arguments are complete, as JSON or as parsed by the SDK."""
    for read in (json.loads, literal_eval):
        try:
            return "at" in read(arguments)
        except (ValueError, SyntaxError, TypeError):
            continue
    return False


class _Error(Exception):
    """Return whether the body is a well-formed error."""


def _conversation(wire: str) -> list[Any]:
    """Return a long conversation with tool results that can be dropped."""
    told: list[Any] = list(ASK) if wire != "gemini" else CONTENTS[:]
    for n in range(12):
        long = f"{n} " * 600
        if wire == "messages":
            call: Any = {"type": "tool_use", "id": f"c{n}", "name": "look", "input": {"at": "x"}}
            told += [
                {"role": "assistant", "content": [call]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"c{n}", "content": long}]},
            ]
        elif wire == "gemini":
            call = {
                "functionCall": {"name": "look", "args": {"at": "x"}},
                "thoughtSignature": "skip_thought_signature_validator",
            }
            answer = {"functionResponse": {"name": "look", "response": {"output": long}}}
            told += [{"role": "model", "parts": [call]}, {"role": "user", "parts": [answer]}]
        elif wire == "chat":
            call = {"id": f"c{n}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
            told += [
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": f"c{n}", "content": long},
            ]
        else:
            told += [
                {"type": "function_call", "call_id": f"c{n}", "name": "look", "arguments": "{}"},
                {"type": "function_call_output", "call_id": f"c{n}", "output": long},
            ]
    return told


def _more(cell: Cell, case: Case) -> dict[str, Any]:
    name = {"responses": "input", "gemini": "contents"}.get(cell.wire, "messages")
    return {name: _conversation(cell.wire)} if case.long else {}


def _by_sdk(base: str, cell: Cell, case: Case, headers: dict[str, str]) -> Got:
    options: Any = {"max_retries": 0, "timeout": TIMEOUT, "default_headers": headers}
    how: Any = {"stream": cell.stream, "tools": case.tools or case.long, **_more(cell, case)}
    if cell.wire == "messages":
        with anthropic.Anthropic(base_url=base, api_key="sk-ant-lab", **options) as claude:
            return messages(claude, **how)
    if cell.wire == "gemini":
        http = types.HttpOptions(base_url=base, api_version="v1beta", timeout=int(1_000 * TIMEOUT), headers=headers)
        with closing(genai.Client(api_key="g-lab", http_options=http)) as google:
            return gemini(google, **how)
    with openai.OpenAI(base_url=f"{base}/v1", api_key="sk-lab", **options) as gpt:
        return (chat if cell.wire == "chat" else responses)(gpt, **how)


def _by_http(base: str, cell: Cell, case: Case, headers: dict[str, str]) -> Got:
    tool = {"messages": TOOL, "chat": CHAT_TOOL, "responses": RESPONSES_TOOL, "gemini": LOOK}[cell.wire]
    body: Any = {"model": "small", "stream": cell.stream}
    body |= {"input": ASK, "max_output_tokens": 4_000} if cell.wire == "responses" else {"messages": ASK}
    if cell.wire == "gemini":
        body = {"contents": CONTENTS, "generationConfig": {"maxOutputTokens": 4_000}}
    if cell.wire == "messages":
        body["max_tokens"] = 4_000
    if case.tools or case.long:
        body["tools"] = [tool]
    key = {"x-api-key": "sk-ant-lab", "anthropic-version": "2023-06-01"}
    key = key if cell.wire == "messages" else {"authorization": "Bearer sk-lab"}
    headers = {**headers, **({"x-goog-api-key": "g-lab"} if cell.wire == "gemini" else key)}
    path = GEMINI_PATHS[cell.stream] if cell.wire == "gemini" else PATHS[cell.wire]
    with httpx.Client(timeout=TIMEOUT) as client:
        answer = client.post(base + path, json={**body, **_more(cell, case)}, headers=headers)
    if answer.status_code != 200:
        error_of(cell.wire, answer.status_code, answer.content)
        raise _Error
    if cell.stream:
        return streamed(cell.wire, answer.text)
    try:
        return whole(cell.wire, answer.json())
    except (KeyError, TypeError, ValueError) as error:
        raise Malformed(f"{type(error).__name__}: {error}") from None
