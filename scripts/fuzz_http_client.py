"""Coverage-guided fuzzing of the gateway's HTTP client: response heads, framing, compression, secret filter, URLs.

    PYTHONPATH=. python scripts/fuzz_http_client.py [SECONDS]

Requires `atheris`; `make fuzz` installs it into a separate environment. Exits with an error at the first input that
makes a reader fail. It complements the property tests in tests/security/input, whose inputs are random.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys

import atheris

with atheris.instrument_imports():
    from tests.security.input.http_reader import read_response

    from rung.gateway.http.url import parse_url

LOOP = asyncio.new_event_loop()
SEEDS = (
    b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}",
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nx: 1\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 429 No\r\ncontent-encoding: gzip\r\n\r\n\x1f\x8b\x08\x00",
)


def fuzz_one_input(data: bytes) -> None:
    """Read the bytes as a response, whole and in two pieces, which must give the same; and as a URL."""
    provider = atheris.FuzzedDataProvider(data)
    is_head_request, seed = provider.ConsumeBool(), provider.ConsumeIntInRange(0, 3 * len(SEEDS) - 1)
    at, split = provider.ConsumeIntInRange(0, 120), provider.ConsumeIntInRange(0, 200)
    payload = provider.ConsumeBytes(provider.remaining_bytes())
    with contextlib.suppress(ValueError):
        parse_url("http://" + payload.decode("latin-1")).target(payload.decode("latin-1"))
    if seed < len(SEEDS):
        payload = SEEDS[seed][:at] + payload + SEEDS[seed][at:]
    whole = LOOP.run_until_complete(read_response([payload], is_head_request=is_head_request))
    cut = LOOP.run_until_complete(read_response([payload[:split], payload[split:]], is_head_request=is_head_request))
    assert cut == whole, "the result depends on how the bytes are cut"  # noqa: S101  # this is what is tested


def main() -> None:
    """Run the fuzzer for the given number of seconds."""
    seconds = sys.argv[1] if len(sys.argv) > 1 else "60"
    atheris.Setup([sys.argv[0], f"-max_total_time={seconds}", "-max_len=2000", "-timeout=10"], fuzz_one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
