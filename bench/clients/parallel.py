"""Many calls at once behind the gateway, with random faults: python -m bench.clients.parallel [CALLS] [--seed N].

Six kinds of call of the Python SDKs (three wires, streamed and whole, each with a tool), without their own retries. Every answer must be whole, and every tool run once.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import anthropic
import openai

from bench.clients.behind import gateway
from bench.clients.provider.script import ANSWER, FAULTS, PROMPT, STALLS, STREAM_ONLY, Asked, Play, is_answer
from bench.clients.provider.server import Provider

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

CONCURRENCY: Final = 12
RATE: Final = 0.3
TIMEOUT_SECONDS: Final = 600.0  # of the SDKs, connections too: their five seconds are short on a busy machine
PATIENCE: Final = 10.0  # factor of the gateway's timeouts where nothing stalls
MODEL: Final = "m"
PARAMETERS: Final = {"type": "object", "properties": {"row": {"type": "string"}}, "required": ["row"]}
FUNCTION: Final = {"name": "append_row", "description": "Append a row.", "parameters": PARAMETERS}


class FaultyProvider(Provider):
    """Strikes a share of all requests, each with a fault that fits it."""

    def __init__(self, seed: int, *, has_stalls: bool) -> None:
        super().__init__(play=Play())
        self._unused = {"empty message"} if has_stalls else {"empty message", *STALLS}
        self._random = random.Random(seed)

    def _strike(self, asked: Asked) -> str | None:
        if self._random.random() >= RATE:
            return None
        place = "answer" if is_answer(self.play, asked) else "call"
        self.struck += 1
        common = [name for name in FAULTS if "before headers" in name or name.isdigit()]
        here = [name for name, where in FAULTS.items() if where == place]
        fitting = [name for name in {*common, *here} if asked.is_stream or name not in STREAM_ONLY]
        return self._random.choice(sorted(set(fitting) - self._unused))


async def call_messages(url: str, *, is_stream: bool) -> tuple[str, int]:
    rows, messages = 0, [{"role": "user", "content": PROMPT}]
    tool: Any = {"name": "append_row", "description": "Append a row.", "input_schema": PARAMETERS}
    async with anthropic.AsyncAnthropic(base_url=url, api_key="k", max_retries=0, timeout=TIMEOUT_SECONDS) as client:
        while True:
            told: Any = {"model": MODEL, "max_tokens": 2_000, "messages": messages, "tools": [tool]}
            if is_stream:
                async with client.messages.stream(**told) as stream:
                    answer: Any = await stream.get_final_message()
            else:
                answer = await client.messages.create(**told)
            calls = [block for block in answer.content if block.type == "tool_use"]
            if not calls:
                return "".join(block.text for block in answer.content), rows
            rows += len(calls)
            results = [{"type": "tool_result", "tool_use_id": call.id, "content": "appended"} for call in calls]
            messages += [{"role": "assistant", "content": answer.content}, {"role": "user", "content": results}]  # type: ignore[dict-item]  # the SDK takes its own blocks


async def call_chat(url: str, *, is_stream: bool) -> tuple[str, int]:
    rows = 0
    messages: list[Any] = [{"role": "user", "content": PROMPT}]
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0, timeout=TIMEOUT_SECONDS) as client:
        while True:
            told: Any = {"model": MODEL, "messages": messages, "tools": [{"type": "function", "function": FUNCTION}]}
            if is_stream:
                async with client.chat.completions.stream(**told) as stream:
                    said: Any = (await stream.get_final_completion()).choices[0].message
            else:
                said = (await client.chat.completions.create(**told)).choices[0].message
            if not said.tool_calls:
                return said.content or "", rows
            rows += len(said.tool_calls)
            messages.append(said.model_dump(include={"role", "content", "tool_calls"}))
            messages += [{"role": "tool", "tool_call_id": call.id, "content": "appended"} for call in said.tool_calls]


async def call_responses(url: str, *, is_stream: bool) -> tuple[str, int]:
    rows = 0
    items: list[Any] = [{"role": "user", "content": PROMPT}]
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0, timeout=TIMEOUT_SECONDS) as client:
        while True:
            tools = [{"type": "function", "strict": False, **FUNCTION}]
            told: Any = {"model": MODEL, "input": items, "tools": tools, "store": False}
            if is_stream:
                async with client.responses.stream(**told) as stream:
                    answer: Any = await stream.get_final_response()
            else:
                answer = await client.responses.create(**told)
            calls = [item for item in answer.output if item.type == "function_call"]
            if not calls:
                return answer.output_text, rows
            rows += len(calls)
            items += [item.model_dump(exclude={"parsed_arguments"}) for item in answer.output]
            items += [{"type": "function_call_output", "call_id": call.call_id, "output": "appended"} for call in calls]


KINDS: Final[tuple[Callable[..., Awaitable[tuple[str, int]]], ...]] = (call_messages, call_chat, call_responses)


async def run(calls: int, seed: int, *, has_stalls: bool) -> dict[str, Any]:
    """Make the calls; return how many ended in each way, and what the provider met."""
    provider = FaultyProvider(seed, has_stalls=has_stalls)
    await provider.start()
    ends: Counter[str] = Counter()
    left = iter(range(calls))

    async def worker(url: str) -> None:
        for number in left:
            call, is_stream = KINDS[number % 3], number % 2 == 0
            try:
                text, rows = await call(url, is_stream=is_stream)
            except Exception as error:
                ends[f"{call.__name__}: {type(error).__name__}: {error}"[:200]] += 1
                continue
            whole = text == ANSWER and rows == 1
            ends["whole" if whole else f"{call.__name__} stream={is_stream}: {rows} rows, {text[:300]!r}"] += 1

    async with gateway(f"http://127.0.0.1:{provider.port}", patience=1.0 if has_stalls else PATIENCE) as url:
        await asyncio.gather(*(worker(url) for _ in range(CONCURRENCY)))
    await provider.stop()
    return {"calls": calls, "ends": dict(ends), "requests": provider.requests, "struck": provider.struck}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("calls", nargs="?", type=int, default=450)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-stalls", action="store_true", help="leave out the faults that end by a timeout")
    options = parser.parse_args()
    found = asyncio.run(run(options.calls, options.seed, has_stalls=not options.no_stalls))
    print(json.dumps(found, ensure_ascii=False, indent=1))
    return int(found["ends"] != {"whole": options.calls})


if __name__ == "__main__":
    sys.exit(main())
