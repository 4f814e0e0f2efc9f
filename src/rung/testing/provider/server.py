"""Lab server: a local provider that answers, records requests, and injects faults by script."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from dataclasses import replace
from email.utils import formatdate
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import parse_qs, urlsplit

from rung.core.domain.errors import AddressUnavailable
from rung.testing.provider import errors, messages
from rung.testing.provider.connection import HttpRequest, LabConnection
from rung.testing.provider.fault_selector import FaultSelector
from rung.testing.provider.faults import FAULTS
from rung.testing.provider.parsed_request import LabWire
from rung.testing.provider.reply import LabReply, error_reply, reply_to
from rung.testing.provider.request_log import RequestLog, RequestRecord
from rung.testing.provider.routes import PreparedReply, other_reply, prepare, wire_for_path
from rung.testing.provider.script import LabScript, script_from

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

ID_PLACEHOLDER: Final = messages.ID_PLACEHOLDER.encode()
MAX_PREPARED: Final = 512  # replies cached by request body
MAX_PREPARED_BYTES: Final = 1 << 20  # larger bodies are not cached


class Lab:
    """Local provider with fault injection, which speaks the wires of Anthropic, OpenAI and Gemini.

    Use it as a context manager, `with` or `async with`.

    Args:
        script: What it does: rules with faults, turns, or the path of a file with them. Default: it answers.
        host: Address to listen on. Default: 127.0.0.1.
        port: Port to listen on. Default: 0, any free one.
        clock: Clock in seconds, for limits. Default: `time.monotonic`.
        **settings: Keys of a script, such as `limits`.

    Example:
        >>> import rung.testing
        >>> with rung.testing.lab(script=[{"fault": "overloaded", "request": 1}]) as lab:
        ...     lab.url.startswith("http://127.0.0.1:")
        True
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
        self._former_attempts = 0  # before the last reset: ids stay unique
        self._prepared: dict[tuple[str, bytes], PreparedReply] = {}
        self._connections: set[LabConnection] = set()
        self._server: asyncio.Server | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._date = (0, b"")
        self.use(script, **settings)

    def use(self, script: Any = None, **settings: Any) -> None:
        """Switch to another script; reset request numbers, records and rules.

        Args:
            script: The script. Default: it answers.
            **settings: Keys of the script.
        """
        self.script = script_from(script, **settings)
        self.reset()

    def reset(self) -> None:
        """Reset request numbers, records and rules."""
        self._former_attempts += self.records.attempts
        self.records = RequestLog()
        self.started_at = self.clock()
        self._prepared = {}
        self._selector = FaultSelector(self.script, self.started_at)
        self._has_faults = bool(self.script.rules or self.script.rate)

    @property
    def url(self) -> str:
        """Return the base URL for the Anthropic SDK; the OpenAI SDK takes `url + "/v1"`."""
        return f"http://{self.host}:{self.port}"

    @property
    def env(self) -> dict[str, str]:
        """Return the environment variables that point an agent at the lab."""
        return {
            "ANTHROPIC_BASE_URL": self.url, "ANTHROPIC_API_KEY": "sk-ant-lab",
            "OPENAI_BASE_URL": f"{self.url}/v1", "OPENAI_API_KEY": "sk-lab",
            "GOOGLE_GEMINI_BASE_URL": self.url, "GEMINI_API_KEY": "lab",
        }  # fmt: skip

    @property
    def requests(self) -> list[RequestRecord]:
        """Return the last 20,000 requests."""
        return list(self.records.entries)

    @property
    def calls(self) -> list[RequestRecord]:
        """Return the recorded model requests."""
        return [record for record in self.requests if record.number]

    @property
    def attempts(self) -> int:
        """Return the number of model requests."""
        return self.records.attempts

    # -- requests ----------------------------------------------------------------------------------------

    def handle(self, request: HttpRequest, connection: LabConnection) -> None:
        """Answer one request; an error in the lab itself becomes a 500 response instead of a hang.

        Args:
            request: The request.
            connection: Where it came from.
        """
        try:
            self._handle(request, connection)
        except Exception as error:  # noqa: BLE001  # reported to the client
            reply = LabReply(status=500, parts=(json.dumps({"error": f"internal lab error: {error!r}"}).encode(),))
            connection.write_reply(reply.head_bytes() + self.date() + reply.parts[0])

    def _handle(self, request: HttpRequest, connection: LabConnection) -> None:
        path = urlsplit(request.target).path
        if path.startswith("/lab/"):
            self._control(request, path, connection)
            return
        wire = wire_for_path(path)
        record = RequestRecord(
            number=0, at=self.clock() - self.started_at, method=request.method, path=request.target,
            headers=request.headers, body=request.body,
        )  # fmt: skip
        records = self.records
        if wire is None or request.method != "POST":
            records.add(record)
            self._send(other_reply(request, path, self.script), record, connection)
            return
        prepared = self._prepare(wire, request)
        records.attempts += 1
        record.number = records.attempts
        record.wire = wire.value
        records.add(record)
        self._answer(prepared, record, connection)

    def _answer(self, prepared: PreparedReply, record: RequestRecord, connection: LabConnection) -> None:
        parsed = prepared.parsed
        rule = None
        if parsed is not None:
            record.model, record.stream = parsed.model, parsed.stream
            rejection = prepared.rejection or self._key_error(record)
            if self._has_faults:
                rule = self._selector.select(record.number, parsed, record.headers, self.clock())
        else:
            rejection = prepared.rejection
        if rule is not None and parsed is not None:
            record.fault = rule.fault.name
            self.records.faults[record.fault] += 1
            self._send(reply_to(parsed, rule, self.script), record, connection)
        elif rejection is not None:
            self._send(rejection, record, connection)
        elif self.script.delay or self.script.gap:
            assert prepared.reply is not None  # noqa: S101  # set unless the request is rejected
            self._send(prepared.reply, record, connection)
        else:
            record.status = 200
            record.tokens = sum(prepared.reply.counts) if prepared.reply else 0
            record.ended = "complete"
            number = self._unique_number(record)
            connection.write_reply(
                prepared.head.replace(ID_PLACEHOLDER, number)
                + self.date()
                + prepared.body.replace(ID_PLACEHOLDER, number)
            )

    def _send(self, reply: LabReply, record: RequestRecord, connection: LabConnection) -> None:
        record.status = reply.status
        if self.script.delay or self.script.gap:
            reply = replace(reply, delay=max(reply.delay, self.script.delay), gap=self.script.gap)
        number = self._unique_number(record)
        if not reply.is_immediate:
            connection.deliver(reply, (ID_PLACEHOLDER, number), record, self._record_end)
            return
        record.tokens = sum(reply.counts)
        record.ended = "complete"
        body = b"".join(reply.framed()) + reply.end_bytes
        head = reply.head_bytes().replace(ID_PLACEHOLDER, number) + self.date()
        connection.write_reply(head if record.method == "HEAD" else head + body.replace(ID_PLACEHOLDER, number))

    def _unique_number(self, record: RequestRecord) -> bytes:
        """Return the number that makes the ids of an answer unique, also in a conversation that spans a reset."""
        return b"%019d" % (self._former_attempts + record.number)

    def _record_end(self, record: RequestRecord, ended: str) -> None:
        record.ended = ended
        record.seconds = self.clock() - self.started_at - record.at

    def _key_error(self, record: RequestRecord) -> LabReply | None:
        """Return the error reply if the API key is not accepted."""
        if not self.script.keys or _key(record) in self.script.keys:
            return None
        wire = LabWire(record.wire)
        return error_reply(errors.error_response(wire, "unauthorized", {}), wire)

    def _prepare(self, wire: LabWire, request: HttpRequest) -> PreparedReply:
        # The path of a request to Gemini says its model, and whether it streams.
        key = (request.target if wire is LabWire.GEMINI else wire.value, request.body)
        prepared = self._prepared.get(key)
        if prepared is None:
            prepared = prepare(wire, request, self.script)
            if len(self._prepared) < MAX_PREPARED and len(request.body) <= MAX_PREPARED_BYTES and not request.too_large:
                self._prepared[key] = prepared
        return prepared

    def date(self) -> bytes:
        """Return the date header and the end of the headers, cached for a second."""
        now = int(time.time())
        if self._date[0] != now:
            self._date = (now, f"date: {formatdate(now, usegmt=True)}\r\n\r\n".encode())
        return self._date[1]

    # -- control API for tests in other processes --------------------------------------------------------

    def _control(self, request: HttpRequest, path: str, connection: LabConnection) -> None:
        status, body = self._control_response(request, path)
        reply = LabReply(status=status, parts=(json.dumps(body).encode(),))
        connection.write_reply(reply.head_bytes() + self.date() + reply.parts[0])

    def _control_response(self, request: HttpRequest, path: str) -> tuple[int, Any]:
        match request.method, path:
            case "GET", "/lab/requests":
                return 200, self.to_dict(_last(request.target))
            case "DELETE", "/lab/requests":
                self.reset()
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
        return 404, {"error": f"{request.method} {path}: not found; allowed: {allowed}"}

    def to_dict(self, last: int | None = None) -> dict[str, Any]:
        """Return counts and the last requests for JSON; all requests by default.

        Args:
            last: Number of requests. Default: all.
        """
        records = self.records
        return {
            "attempts": records.attempts,
            "faults": dict(records.faults),
            "requests": [record.to_dict() for record in list(records.entries)[-last if last else None :]],
        }

    # -- lifecycle ---------------------------------------------------------------------------------------

    def opened(self, connection: LabConnection) -> None:
        """Register a new connection.

        Args:
            connection: The connection.
        """
        self._connections.add(connection)

    def closed(self, connection: LabConnection) -> None:
        """Unregister a closed connection.

        Args:
            connection: The connection.
        """
        self._connections.discard(connection)

    async def start(self) -> None:
        """Start listening on the running event loop."""
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(lambda: LabConnection(self), self.host, self.port, backlog=1024)
        except OSError as error:
            raise AddressUnavailable("port", self.host, self.port, error) from None
        self.port = self._server.sockets[0].getsockname()[1]
        self.started_at = self._selector.started_at = self.clock()

    async def stop(self) -> None:
        """Stop listening and close all connections."""
        if self._server is None:
            return
        self._server.close()
        tasks = [connection.task for connection in self._connections if connection.task is not None]
        for connection in list(self._connections):
            connection.transport.abort()
        await asyncio.gather(*tasks, return_exceptions=True)
        while self._connections:  # noqa: ASYNC110  # each unregisters itself on the next loop iteration
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
            self._run_in_loop(self.start())
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._loop is None or self._thread is None:
            return
        self._run_in_loop(self.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._loop = self._thread = None

    def _run_in_loop(self, work: Coroutine[Any, Any, None]) -> None:
        assert self._loop is not None  # noqa: S101  # set just before
        asyncio.run_coroutine_threadsafe(work, self._loop).result()


def _last(target: str) -> int | None:
    value = parse_qs(urlsplit(target).query).get("last", [""])[0]
    return int(value) if value.isdecimal() else None


def _key(record: RequestRecord) -> str:
    headers = record.headers
    presented = headers.get("x-api-key") or headers.get("x-goog-api-key") or headers.get("authorization", "")
    return presented.removeprefix("Bearer ") or parse_qs(urlsplit(record.path).query).get("key", [""])[0]
