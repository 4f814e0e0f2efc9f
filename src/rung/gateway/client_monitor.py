"""Client monitor: detects a disconnected client and sends pings while a request takes long.

Monitoring starts only after a short delay, so fast requests do not pay for it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from rung.gateway.client_timeout import headers_within

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from rung.gateway.proxied_call import ProxiedCall
    from rung.gateway.request_coalescing import InFlightRequests, ResponseRecorder

    Receive = Callable[[], Awaitable[dict[str, Any]]]

_START_DELAY_SECONDS: Final = 0.05
_PING_INTERVAL_SECONDS: Final = 15.0


class ClientMonitor:
    """Cancels a request's task when its client disconnects; sends pings at an interval while a stream is silent."""

    __slots__ = (
        "_disconnect_task",
        "_holds_until",
        "_in_flight",
        "_loop",
        "_ping_interval",
        "_ping_task",
        "_proxied",
        "_receive",
        "_recorder",
        "_task",
        "_timer",
        "client_left",
    )

    def __init__(
        self,
        proxied: ProxiedCall,
        receive: Receive,
        in_flight: InFlightRequests,
        recorder: ResponseRecorder,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  # runs inside a task
        self._task = task
        self._proxied = proxied
        self._receive = receive
        self._in_flight = in_flight
        self._recorder = recorder
        self._ping_interval = _PING_INTERVAL_SECONDS
        self._holds_until = 0.0  # the headers of a stream are held until then, so that an error can have a status
        self._disconnect_task: asyncio.Task[None] | None = None
        self._ping_task: asyncio.Task[None] | None = None
        self.client_left = False
        self._timer = self._loop.call_later(_START_DELAY_SECONDS, self._start)

    def stop(self) -> None:
        """Stop monitoring."""
        self._timer.cancel()
        for task in (self._disconnect_task, self._ping_task):
            if task is not None:
                task.cancel()

    def _start(self) -> None:
        self._in_flight.register(self._proxied.inbound, self._recorder)
        self._disconnect_task = self._loop.create_task(self._wait_for_disconnect())
        settings = self._proxied.upstreams.settings
        hold = settings.header_hold_seconds
        if hold is None:
            hold = headers_within(self._proxied.inbound.headers, settings.client_timeout_seconds)
        self._holds_until = self._loop.time() + hold
        self._ping_interval = max(_START_DELAY_SECONDS, min(hold, _PING_INTERVAL_SECONDS))
        self._schedule_ping()

    def _schedule_ping(self) -> None:
        """Call `_ping` after the interval, or when the hold ends: an interval later, the client may have left."""
        held = self._holds_until - self._loop.time()
        self._timer = self._loop.call_later(
            min(self._ping_interval, held) if held > 0 else self._ping_interval, self._ping
        )

    async def _wait_for_disconnect(self) -> None:
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                if self._recorder.followers:
                    self._recorder.detach_client(self._cancel_request)
                else:
                    self._cancel_request()
                return

    def _cancel_request(self) -> None:
        """Cancel the request because no client waits for it."""
        if not self._proxied.writer.finished:
            self.client_left = True
            self._task.cancel()

    def _ping(self) -> None:
        if self._proxied.writer.headers_sent or self._loop.time() >= self._holds_until:
            self._ping_task = self._loop.create_task(self._proxied.ping())
        self._schedule_ping()


async def run_while_connected(work: Coroutine[Any, Any, object], receive: Receive) -> bool:
    """Run a coroutine until it ends or the client disconnects; return whether it ended, or raise its error."""
    working = asyncio.ensure_future(work)
    disconnect = asyncio.ensure_future(_wait_for_disconnect(receive))
    try:
        await asyncio.wait({working, disconnect}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
        return working.done()
    finally:
        working.cancel()
        disconnect.cancel()


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
