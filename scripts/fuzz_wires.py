"""Coverage-guided fuzzing of the wire format parsers.

    python scripts/fuzz_wires.py [SECONDS]

Requires `atheris`; `make fuzz` installs it into a separate environment. Exits with an error at the first input that
makes a parser fail. It complements the property tests in tests/security/input, whose inputs are random.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import atheris

with atheris.instrument_imports():
    from rung.adapters.errors.sse import read_event
    from rung.core.conversation.compaction import compact_messages
    from rung.wires.anthropic_stream import AnthropicStream
    from rung.wires.gemini_stream import GeminiStream
    from rung.wires.openai_chat_stream import ChatStream
    from rung.wires.openai_responses_stream import ResponsesStream
    from rung.wires.registry import CHAT, GEMINI, MESSAGES, RESPONSES
    from rung.wires.sse import EventReader

STREAMS = (AnthropicStream, ChatStream, ResponsesStream, GeminiStream)
WIRES = (MESSAGES, CHAT, RESPONSES, GEMINI)


def fuzz_one_input(data: bytes) -> None:
    """Parse the bytes as a stream in two chunks, as a second attempt of that stream, and as a request body."""
    provider = atheris.FuzzedDataProvider(data)
    wire, split = provider.ConsumeIntInRange(0, 3), provider.ConsumeIntInRange(0, 400)
    payload = provider.ConsumeBytes(provider.remaining_bytes())
    stream = STREAMS[wire]()
    stream.begin_attempt()
    for chunk in (payload[:split], payload[split:]):
        stream.feed(chunk)
    stream.text()
    stream.validate()
    stream.begin_attempt()
    stream.feed(payload)
    stream.native_end()
    stream.finish()
    whole, parts = EventReader(), EventReader()
    if whole.feed(payload) != [*parts.feed(payload[:split]), *parts.feed(payload[split:])]:
        raise AssertionError("the events depend on how the bytes are split")
    stream.error_event(500, "error text")
    read_event("error", payload.decode("utf-8", "replace"))
    try:
        body: Any = json.loads(payload)
    except (ValueError, RecursionError):
        return
    if isinstance(body, dict):
        bodies = WIRES[wire].bodies
        bodies.with_repaired_history(body)
        bodies.with_model(body, "other")
        bodies.with_history(body, compact_messages(bodies.history(body), 50))
        bodies.validate(body)
        bodies.text_of(body)
        WIRES[wire].replay(body)


def main() -> None:
    """Run the fuzzer for the given number of seconds."""
    seconds = sys.argv[1] if len(sys.argv) > 1 else "60"
    atheris.Setup([sys.argv[0], f"-max_total_time={seconds}", "-max_len=2000", "-timeout=10"], fuzz_one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
