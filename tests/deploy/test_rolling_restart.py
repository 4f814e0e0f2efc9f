"""A rolling restart of two gateways behind a load balancer: no request fails, and no stream is cut."""

from __future__ import annotations

import asyncio
import http.client
import json
import signal
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any

import aiohttp

from rung.testing.provider import Lab
from tests.deploy.balancer import Balancer, Server
from tests.deploy.servers import Running, started

if TYPE_CHECKING:
    from pathlib import Path

CLIENTS = 8
WORDS = 30
WHOLE = " ".join(f"word{n}" for n in range(1, WORDS + 1))
SETTINGS = """
[gateway]
anthropic = "{url}"
[gateway.limits]
shutdown_delay = 3
drain = 60
"""


class Clients:
    """Clients that send without a pause over connections that they keep, every other one streamed."""

    def __init__(self, url: str) -> None:
        self.url = f"{url}/v1/messages"
        self.failures: list[str] = []
        self.served = 0
        self._stopped = False
        self._answered = asyncio.Condition()

    async def run(self) -> None:
        """Send until stopped."""
        connector, timeout = aiohttp.TCPConnector(limit=0), aiohttp.ClientTimeout(total=120)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
            await asyncio.gather(*(self._client(session, number) for number in range(CLIENTS)))

    def stop(self) -> None:
        """Send nothing more; what is under way is finished."""
        self._stopped = True

    async def more(self, number: int) -> None:
        """Wait for this many more answers."""
        goal = self.served + number
        async with self._answered:
            await self._answered.wait_for(lambda: self.served >= goal or bool(self.failures))

    async def _client(self, session: aiohttp.ClientSession, number: int) -> None:
        asked = {"role": "user", "content": f"hello, I am {number}"}
        body = {"model": "m", "max_tokens": 4_000, "messages": [asked], "stream": number % 2 == 0}
        while not self._stopped:
            try:
                async with session.post(self.url, json=body, headers={"x-api-key": "k"}) as answer:
                    text = _text(answer.status, await answer.read())
            except (aiohttp.ClientError, OSError) as error:
                text = repr(error)
            async with self._answered:
                self.served += 1
                if text != WHOLE:
                    self.failures.append(text)
                self._answered.notify_all()


def _text(status: int, data: bytes) -> str:
    """Return the text of a whole answer, or what is wrong with it."""
    if status != 200:
        return f"{status}: {data.decode()}"
    if data.startswith(b"{"):
        return "".join(block["text"] for block in json.loads(data)["content"])
    events: list[dict[str, Any]] = [json.loads(line[6:]) for line in data.split(b"\n") if line.startswith(b"data: ")]
    text = "".join(event["delta"].get("text", "") for event in events if event["type"] == "content_block_delta")
    return text if events and events[-1]["type"] == "message_stop" else f"cut: {text}"


class Rollout:
    """Two gateways that are replaced one after the other while clients send."""

    def __init__(self, home: Path, stack: ExitStack, balancer: Balancer) -> None:
        self._home, self._stack, self._balancer = home, stack, balancer

    async def begin(self) -> tuple[Running, Server]:
        """Start a gateway, and wait until the balancer uses it."""
        words = ("gateway", "--config", "rung.toml", "--port", "0", "--no-journal")
        running = await asyncio.to_thread(lambda: self._stack.enter_context(started(self._home, *words)))
        server = self._balancer.add(running.port)
        await self._balancer.until_ready(server)
        return running, server

    async def end(self, running: Running, server: Server) -> int:
        """Send SIGTERM to a gateway; return its exit code."""
        assert server.open, "no request was in flight: this would prove nothing"
        running.process.send_signal(signal.SIGTERM)
        await self._balancer.until_ready(server, ready=False)
        return await asyncio.to_thread(running.process.wait, 120)


def test_a_rolling_restart_fails_no_request(tmp_path: Path) -> None:
    """Both gateways are replaced while clients send: every answer and every stream is whole."""

    async def roll(stack: ExitStack) -> None:
        async with Balancer() as balancer:
            rollout = Rollout(tmp_path, stack, balancer)
            gateways = [await rollout.begin(), await rollout.begin()]
            clients = Clients(balancer.url)
            sending = asyncio.create_task(clients.run())
            for old in tuple(gateways):
                await clients.more(3 * CLIENTS)
                assert await rollout.end(*old) == 0
                gateways.append(await rollout.begin())
                await clients.more(3 * CLIENTS)
            clients.stop()
            await sending
            assert clients.failures == []
            assert all(server.connections for _, server in gateways[:3]), "a gateway was not used"

    with Lab(words=WORDS, gap=0.02, delay=0.05) as lab, ExitStack() as stack:
        (tmp_path / "rung.toml").write_text(SETTINGS.format(url=lab.url))
        asyncio.run(roll(stack))


def test_a_connection_that_outlives_its_stream(tmp_path: Path) -> None:
    """SIGTERM in mid-stream: the stream ends whole, and the next request on its connection is served and is the last."""
    with Lab(words=WORDS, gap=0.02) as lab, ExitStack() as stack:
        (tmp_path / "rung.toml").write_text(f'[gateway]\nanthropic = "{lab.url}"\n')
        with started(tmp_path, "gateway", "--config", "rung.toml", "--port", "0", "--no-journal") as gateway:
            client = stack.enter_context(closing(http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=120)))
            stream = _send(client, stream=True)
            head = stream.readline()
            gateway.process.send_signal(signal.SIGTERM)
            assert _text(stream.status, head + stream.read()) == WHOLE
            assert stream.getheader("connection") is None, "it was not known when the headers were sent"
            last = _send(client, stream=False)
            assert (_text(last.status, last.read()), last.getheader("connection")) == (WHOLE, "close")
            assert gateway.process.wait(120) == 0


def _send(client: http.client.HTTPConnection, *, stream: bool) -> http.client.HTTPResponse:
    body = {"model": "m", "max_tokens": 4_000, "messages": [{"role": "user", "content": "hello"}], "stream": stream}
    client.request("POST", "/v1/messages", json.dumps(body), {"x-api-key": "k", "content-type": "application/json"})
    return client.getresponse()
