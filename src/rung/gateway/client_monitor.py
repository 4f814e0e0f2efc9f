"""Watching a client while its request takes time: whether it is still there, and that it hears something.

Begun only when a request has taken a moment: most of what is fast needs no watching.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from rung.gateway.proxied_call import ProxiedCall
    from rung.gateway.request_coalescing import InFlightRequests, ResponseRecorder

    Receive = Callable[[], Awaitable[dict[str, Any]]]

_A_MOMENT: Final = 0.05


class ClientMonitor:
    """Cancels the task of a request when its client has left; sends pings in its silences."""

    __slots__ = (
        "_beat",
        "_copy",
        "_exchange",
        "_joining",
        "_loop",
        "_pinging",
        "_receive",
        "_task",
        "_timer",
        "_watch",
        "left",
    )

    def __init__(
        self, exchange: ProxiedCall, receive: Receive, beat: float, joining: InFlightRequests, copy: ResponseRecorder
    ) -> None:
        self._loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  # we are in one
        self._task = task
        self._exchange = exchange
        self._receive = receive
        self._joining = joining
        self._copy = copy
        self._beat = beat
        self._watch: asyncio.Task[None] | None = None
        self._pinging: asyncio.Task[None] | None = None
        self.left = False
        self._timer = self._loop.call_later(_A_MOMENT, self._begin)

    def end(self) -> None:
        """The request is over."""
        self._timer.cancel()
        for task in (self._watch, self._pinging):
            if task is not None:
                task.cancel()

    def _begin(self) -> None:
        self._joining.begin(self._exchange.call, self._copy)
        self._watch = self._loop.create_task(self._wait())
        self._timer = self._loop.call_later(self._beat, self._ping)

    async def _wait(self) -> None:
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                if self._copy.followers:
                    self._copy.leave(self._let_go)
                else:
                    self._let_go()
                return

    def _let_go(self) -> None:
        """Nobody wants it any more."""
        if not self._exchange.writer.over:
            self.left = True
            self._task.cancel()

    def _ping(self) -> None:
        self._pinging = self._loop.create_task(self._exchange.ping())
        self._timer = self._loop.call_later(self._beat, self._ping)
