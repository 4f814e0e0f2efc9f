"""The lab: a provider on loopback that answers, records, and fails as its script says."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from dataclasses import replace
from email.utils import formatdate
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import parse_qs, urlsplit

from rung.core.domain.errors import ConfigError
from rung.testing.provider import errors, messages
from rung.testing.provider.connection import HttpRequest, LabConnection
from rung.testing.provider.fault_selector import FaultSelector
from rung.testing.provider.faults import FAULTS
from rung.testing.provider.parsed_request import LabWire
from rung.testing.provider.reply import LabReply, refused, reply_to
from rung.testing.provider.request_log import RequestLog, RequestRecord
from rung.testing.provider.routes import PreparedReply, aside, prepare, wire_of
from rung.testing.provider.script import LabScript, script_from

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

MARK: Final = messages.MARK.encode()
PREPARED: Final = 512  # requests whose answers are kept ready
PREPARED_BYTES: Final = 1 << 20  # no larger ones


class Lab:
    """A provider that fails as told. Use it as a context manager, `with` or `async with`.

    `url` is where it listens; `requests` what it was asked; `attempts` how often a model was asked.
    """

    def __init__(
        self,
        script: LabScript | dict[str, Any] | list[Any] | str | Path | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        clock: Callable[[], float] = time.monotonic,
        **settings: Any,
    ) -> None:
        self.host = host
        self.port = port
        self.clock = clock
        self.records = RequestLog()
        self._prepared: dict[tuple[str, bytes], PreparedReply] = {}
        self._connections: set[LabConnection] = set()
        self._server: asyncio.Server | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._date = (0, b"")
        self.use(script, **settings)

    def use(self, script: Any = None, **settings: Any) -> None:
        """Go by another script from now on; numbers, records and rules start anew."""
        self.script = script_from(script, **settings)
        self.forget()

    def forget(self) -> None:
        """Start counting anew: no requests so far, no rule spent."""
        self.records = RequestLog()
        self.began = self.clock()
        self._prepared = {}
        self._chooser = FaultSelector(self.script, self.began)
        self._choosing = bool(self.script.rules or self.script.rate)

    @property
    def url(self) -> str:
        """Where it listens; the Anthropic SDK takes this, OpenAI's `url + "/v1"`."""
        return f"http://{self.host}:{self.port}"

    @property
    def env(self) -> dict[str, str]:
        """The environment that sends an agent here."""
        return {
            "ANTHROPIC_BASE_URL": self.url, "ANTHROPIC_API_KEY": "sk-ant-lab",
            "OPENAI_BASE_URL": f"{self.url}/v1", "OPENAI_API_KEY": "sk-lab",
        }  # fmt: skip

    @property
    def requests(self) -> list[RequestRecord]:
        """What it was asked, the last 20,000 of it."""
        return list(self.records.kept)

    @property
    def calls(self) -> list[RequestRecord]:
        """Those of the requests that asked a model."""
        return [record for record in self.requests if record.number]

    @property
    def attempts(self) -> int:
        """How often a model was asked."""
        return self.records.attempts

    # Answering

    def take(self, request: HttpRequest, connection: LabConnection) -> None:
        """Answer one request; a fault of our own is told, not hung on."""
        try:
            self._take(request, connection)
        except Exception as error:  # noqa: BLE001  # whatever it is, the client shall know
            reply = LabReply(status=500, parts=(json.dumps({"error": f"the lab itself failed: {error!r}"}).encode(),))
            connection.write_whole(reply.head_bytes() + self.date() + reply.parts[0])

    def _take(self, request: HttpRequest, connection: LabConnection) -> None:
        path = urlsplit(request.target).path
        if path.startswith("/lab/"):
            self._control(request, path, connection)
            return
        wire = wire_of(path)
        record = RequestRecord(
            number=0, at=self.clock() - self.began, method=request.method, path=request.target,
            headers=request.headers, body=request.body,
        )  # fmt: skip
        records = self.records
        if wire is None or request.method != "POST":
            records.add(record)
            self._send(aside(request, path, self.script), record, connection)
            return
        prepared = self._prepare(wire, request)
        records.attempts += 1
        record.number = records.attempts
        record.wire = wire.value
        records.add(record)
        self._answer(prepared, record, connection)

    def _answer(self, prepared: PreparedReply, record: RequestRecord, connection: LabConnection) -> None:
        asked = prepared.asked
        rule = None
        if asked is not None:
            record.model, record.stream = asked.model, asked.stream
            refusal = prepared.refusal or self._unwelcome(record)
            if self._choosing:
                rule = self._chooser.choose(record.number, asked, record.headers, self.clock())
        else:
            refusal = prepared.refusal
        if rule is not None and asked is not None:
            record.fault = rule.fault.name
            self.records.faults[record.fault] += 1
            self._send(reply_to(asked, rule, self.script), record, connection)
        elif refusal is not None:
            self._send(refusal, record, connection)
        elif self.script.delay or self.script.gap:
            assert prepared.reply is not None  # noqa: S101  # made when nothing was refused
            self._send(prepared.reply, record, connection)
        else:
            record.status = 200
            record.tokens = sum(prepared.reply.counts) if prepared.reply else 0
            record.ended = "complete"
            number = b"%019d" % record.number
            connection.write_whole(
                prepared.head.replace(MARK, number) + self.date() + prepared.body.replace(MARK, number)
            )

    def _send(self, reply: LabReply, record: RequestRecord, connection: LabConnection) -> None:
        record.status = reply.status
        if self.script.delay or self.script.gap:
            reply = replace(reply, delay=max(reply.delay, self.script.delay), gap=self.script.gap)
        number = b"%019d" % record.number
        if not reply.at_once:
            connection.deliver(reply, (MARK, number), record, self._finished)
            return
        record.tokens = sum(reply.counts)
        record.ended = "complete"
        body = b"".join(reply.framed()) + reply.end_bytes
        head = reply.head_bytes().replace(MARK, number) + self.date()
        connection.write_whole(head if record.method == "HEAD" else head + body.replace(MARK, number))

    def _finished(self, record: RequestRecord, ended: str) -> None:
        record.ended = ended
        record.seconds = self.clock() - self.began - record.at

    def _unwelcome(self, record: RequestRecord) -> LabReply | None:
        """The answer to a key that is not among those known."""
        if not self.script.keys or _key(record) in self.script.keys:
            return None
        wire = LabWire(record.wire)
        return refused(errors.error(wire, "unauthorized", {}), wire)

    def _prepare(self, wire: LabWire, request: HttpRequest) -> PreparedReply:
        key = (wire.value, request.body)
        found = self._prepared.get(key)
        if found is None:
            found = prepare(wire, request, self.script)
            if len(self._prepared) < PREPARED and len(request.body) <= PREPARED_BYTES and not request.too_large:
                self._prepared[key] = found
        return found

    def date(self) -> bytes:
        """The date's header and the end of the headers, made once a second."""
        now = int(time.time())
        if self._date[0] != now:
            self._date = (now, f"date: {formatdate(now, usegmt=True)}\r\n\r\n".encode())
        return self._date[1]

    # What a test in another process asks for

    def _control(self, request: HttpRequest, path: str, connection: LabConnection) -> None:
        status, body = self._controlled(request, path)
        reply = LabReply(status=status, parts=(json.dumps(body).encode(),))
        connection.write_whole(reply.head_bytes() + self.date() + reply.parts[0])

    def _controlled(self, request: HttpRequest, path: str) -> tuple[int, Any]:
        match request.method, path:
            case "GET", "/lab/requests":
                return 200, self.table(_last(request.target))
            case "DELETE", "/lab/requests":
                self.forget()
                return 200, {"attempts": 0}
            case "GET", "/lab/faults":
                return 200, {fault.name: fault.about for fault in FAULTS.values()}
            case "PUT" | "POST", "/lab/script":
                try:
                    self.use(json.loads(request.body or b"{}"))
                except ValueError as error:
                    return 400, {"error": str(error)}
                return 200, {"rules": len(self.script.rules)}
        allowed = "GET or DELETE /lab/requests, GET /lab/faults, PUT /lab/script"
        return 404, {"error": f"{request.method} {path}: allowed is {allowed}"}

    def table(self, last: int | None = None) -> dict[str, Any]:
        """What was asked so far, as JSON; only so many of the last."""
        records = self.records
        return {
            "attempts": records.attempts,
            "faults": dict(records.faults),
            "requests": [record.table() for record in list(records.kept)[-last if last else None :]],
        }

    # Starting and stopping

    def opened(self, connection: LabConnection) -> None:
        """Somebody connected."""
        self._connections.add(connection)

    def closed(self, connection: LabConnection) -> None:
        """Somebody left."""
        self._connections.discard(connection)

    async def start(self) -> None:
        """Listen, on the loop that runs."""
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(lambda: LabConnection(self), self.host, self.port, backlog=1024)
        except OSError as error:
            raise ConfigError("port", self.port, f"one that is free ({error.strerror or error})") from None
        self.port = self._server.sockets[0].getsockname()[1]
        self.began = self._chooser.began = self.clock()

    async def stop(self) -> None:
        """Stop listening and leave everybody."""
        if self._server is None:
            return
        self._server.close()
        tasks = [connection.task for connection in self._connections if connection.task is not None]
        for connection in list(self._connections):
            connection.transport.abort()
        await asyncio.gather(*tasks, return_exceptions=True)
        while self._connections:  # noqa: ASYNC110  # each says so itself, on the next turn of the loop
            await asyncio.sleep(0)
        await self._server.wait_closed()
        self._server = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def __enter__(self) -> Self:
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, name="rung-lab", daemon=True)
        self._loop, self._thread = loop, thread
        thread.start()
        try:
            self._there(self.start())
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._loop is None or self._thread is None:
            return
        self._there(self.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._loop = self._thread = None

    def _there(self, work: Coroutine[Any, Any, None]) -> None:
        assert self._loop is not None  # noqa: S101  # set just before
        asyncio.run_coroutine_threadsafe(work, self._loop).result()


def _last(target: str) -> int | None:
    said = parse_qs(urlsplit(target).query).get("last", [""])[0]
    return int(said) if said.isdecimal() else None


def _key(record: RequestRecord) -> str:
    given = record.headers.get("x-api-key") or record.headers.get("authorization", "")
    return given.removeprefix("Bearer ")
