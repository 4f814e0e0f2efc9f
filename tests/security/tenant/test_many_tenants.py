"""Sixty-four tenants send the same bodies at the same time, leave early and send again: each gets its own answers."""

from __future__ import annotations

import asyncio
import json
import random
from contextlib import suppress
from typing import Any

from tests.gateway.behind import LONG, Behind
from tests.security.tenant.shared import asked

TENANTS, CALLS = 64, 4
CREDENTIALS = ("x-api-key", "authorization", "api-key", "cookie")  # the way in which a tenant identifies itself


async def _answer_with_credentials(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer each request with the credentials that came with it, late enough to be joined."""
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            headers = dict(line.lower().split(": ", 1) for line in head.decode().split("\r\n")[1:] if line)
            await reader.readexactly(int(headers["content-length"]))
            await asyncio.sleep(0.15)
            text = "|".join(headers.get(name, "") for name in CREDENTIALS)
            message: dict[str, Any] = {"id": "m", "type": "message", "role": "assistant", "model": "cheap"}
            message |= {"content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "usage": {}}
            body = json.dumps(message).encode()
            writer.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)
            )
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def _tenant(port: int, number: int, chance: random.Random) -> list[tuple[str, str]]:
    """Send the body of everybody, retried and sometimes abandoned; return the expected and the received answers."""
    credentials = {CREDENTIALS[number % len(CREDENTIALS)]: f"tenant-{number}"}
    expected = "|".join(credentials.get(name, "") for name in CREDENTIALS)
    got = []
    for retry in range(CALLS):
        headers = credentials | {"x-stainless-retry-count": str(retry), "idempotency-key": "same"}
        patience = chance.random() * 0.2 if chance.random() < 0.3 else LONG
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                got.append((expected, await _post(port, headers)))
    return got


async def _post(port: int, headers: dict[str, str]) -> str:
    """Send the body of everybody on a connection of its own; return the text of the answer."""
    body = json.dumps(asked()).encode()
    lines = ["POST /v1/messages HTTP/1.1", "host: 127.0.0.1", "connection: close", f"content-length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        answer = await reader.read()
    finally:
        writer.close()
    return str(json.loads(answer.partition(b"\r\n\r\n")[2])["content"][0]["text"])


async def _storm(behind: Behind) -> list[tuple[str, str]]:
    chance = random.Random(14)
    answers = await asyncio.gather(*(_tenant(behind.served.port, number, chance) for number in range(TENANTS)))
    return [pair for pairs in answers for pair in pairs]


async def _run() -> list[tuple[str, str]]:
    serving: set[asyncio.Task[None]] = set()

    def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.add(asyncio.ensure_future(_answer_with_credentials(reader, writer)))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    upstream = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    behind = await asyncio.to_thread(Behind(anthropic=upstream).__enter__)
    try:
        got = await _storm(behind)
    finally:
        await asyncio.to_thread(behind.__exit__)
        server.close()
    await asyncio.gather(*serving)
    return got


def test_no_answer_reaches_another_tenant() -> None:
    """Every answer carries the credentials of the tenant that asked for it."""
    got = asyncio.run(_run())
    assert len(got) > TENANTS
    assert [pair for pair in got if pair[0] != pair[1]] == []
