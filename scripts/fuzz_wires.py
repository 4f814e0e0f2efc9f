"""Bytes that a fuzzer makes up, through every reader of a wire, guided by coverage.

    python scripts/fuzz_wires.py [SECONDS]

Wants `atheris` (`make fuzz` gives it an environment of its own). Ends with an error at the first input that breaks a
reader; what the properties in tests/gateway draw by chance, this looks for on purpose.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import atheris

with atheris.instrument_imports():
    from rung.adapters.anthropic_stream import AnthropicStream
    from rung.adapters.openai_chat_stream import ChatStream
    from rung.adapters.openai_responses_stream import ResponsesStream
    from rung.adapters.sse import read_event
    from rung.core.compaction import compacted
    from rung.gateway.wires import CHAT, MESSAGES, RESPONSES

STREAMS = (AnthropicStream, ChatStream, ResponsesStream)
WIRES = (MESSAGES, CHAT, RESPONSES)


def one(data: bytes) -> None:
    """A stream in two pieces and a second attempt; and the same bytes as a body."""
    made = atheris.FuzzedDataProvider(data)
    which, cut = made.ConsumeIntInRange(0, 2), made.ConsumeIntInRange(0, 400)
    rest = made.ConsumeBytes(made.remaining_bytes())
    stream = STREAMS[which]()
    stream.begin()
    for piece in (rest[:cut], rest[cut:]):
        stream.take(piece)
    stream.text()
    stream.found()
    stream.begin()
    stream.take(rest)
    stream.finish()
    stream.failed(500, "words")
    read_event("error", rest.decode("utf-8", "replace"))
    try:
        body: Any = json.loads(rest)
    except (ValueError, RecursionError):
        return
    if isinstance(body, dict):
        bodies = WIRES[which].bodies
        bodies.repaired(body)
        bodies.with_model(body, "other")
        bodies.with_history(body, compacted(bodies.history(body), 50))
        bodies.found(body)
        bodies.said(body)


def main() -> None:
    """Look for as long as it was told."""
    seconds = sys.argv[1] if len(sys.argv) > 1 else "60"
    atheris.Setup([sys.argv[0], f"-max_total_time={seconds}", "-max_len=2000", "-timeout=10"], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
