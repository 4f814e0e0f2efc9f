"""CPU time of a translated call at 200 kB of history, for every pair of wires: reading, translating and writing.

    python -m bench.translation [--size BYTES] [--rounds N]

The goal is at most 2 ms added to a call. `copy` is what a call costs that only needs its body parsed and written.
"""

from __future__ import annotations

import argparse
from functools import partial
from statistics import median
from time import process_time
from typing import TYPE_CHECKING, Any

import orjson

from rung.gateway.upstream.translated_call import TranslatedCall
from rung.wires.registry import BY_NAME
from rung.wires.translation.conversation import (
    Conversation,
    Family,
    Speaker,
    TextPart,
    ToolCallPart,
    ToolDefinition,
    ToolResultPart,
    Turn,
)
from rung.wires.translation.registry import TRANSLATED_WIRES, translator_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TRANSLATORS = {name: translator_of(name) for name in TRANSLATED_WIRES}
GOAL_MS = 2.0
_SENTENCE = "The function reads the file line by line and returns the first match, or None if there is none.\n"
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "line": {"type": "integer"}},
    "required": ["path"],
}


def history(size: int) -> tuple[Turn, ...]:
    """Return the turns of a coding agent: two calls and results of 2 kB in each step, as JSON of about this size."""
    turns = [Turn(speaker=Speaker.USER, parts=(TextPart(text="Fix the bug."),))]
    step = 0
    while step * 4_900 < size:
        names = [f"toolu_{step:06}_{n}" for n in range(2)]
        arguments = orjson.dumps({"path": f"src/module_{step}.py", "line": step, "text": _SENTENCE * 2}).decode()
        calls = [ToolCallPart(id=name, name="read_file", arguments=arguments) for name in names]
        results = [ToolResultPart(call_id=name, parts=(TextPart(text=_SENTENCE * 20),)) for name in names]
        turns.append(Turn(speaker=Speaker.ASSISTANT, parts=(TextPart(text=_SENTENCE), *calls)))
        turns.append(Turn(speaker=Speaker.USER, parts=tuple(results)))
        step += 1
    return (*turns, Turn(speaker=Speaker.USER, parts=(TextPart(text="Go on."),)))


def request(wire: str, turns: tuple[Turn, ...]) -> bytes:
    """Return a request of a client of this wire."""
    other = Family.CHAT if TRANSLATORS[wire].family is not Family.CHAT else Family.ANTHROPIC
    tools = tuple(ToolDefinition(name=f"tool_{n}", description=_SENTENCE, schema=_SCHEMA) for n in range(20))
    system = (TextPart(text=_SENTENCE * 40),)
    conversation = Conversation(family=other, model="m", system=system, turns=turns, tools=tools)
    return orjson.dumps(TRANSLATORS[wire].write_request(conversation).body)


def milliseconds(work: Callable[[], object], rounds: int) -> float:
    """Return the median time of a function."""
    times = []
    for _ in range(rounds):
        started = process_time()
        work()
        times.append(process_time() - started)
    return median(times) * 1_000


def rows(size: int, rounds: int) -> Iterator[tuple[str, ...]]:
    """Yield the header and a row for each client wire."""
    turns = history(size)
    yield ("client \\ upstream", "kB", "copy", *TRANSLATORS)
    for client, reader in TRANSLATORS.items():
        body = request(client, turns)
        cells = [f"{len(body) / 1_000:.0f}", f"{milliseconds(lambda: orjson.dumps(orjson.loads(body)), rounds):.2f}"]  # noqa: B023  # used at once
        for upstream, writer in TRANSLATORS.items():
            if upstream == client:
                cells.append("-")
                continue
            translated = partial(TranslatedCall, is_stream=True, validate=BY_NAME[upstream].bodies.validate)
            spent = milliseconds(lambda: translated(reader, writer, body, "some-model"), rounds)  # noqa: B023
            cells.append(f"{spent:.2f}{'' if spent <= GOAL_MS else ' !'}")
        yield (client, *cells)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="bench.translation", description=__doc__)
    parser.add_argument("--size", type=int, default=200_000, help="bytes of history")
    parser.add_argument("--rounds", type=int, default=101)
    asked = parser.parse_args()
    print(f"milliseconds of CPU time, median of {asked.rounds}; ! is above the goal of {GOAL_MS} ms")
    for row in rows(asked.size, asked.rounds):
        print("".join(f"{text:<19}" if at == 0 else f"{text:>11}" for at, text in enumerate(row)))


if __name__ == "__main__":
    main()
