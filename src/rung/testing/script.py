"""Scripted attempts: a sequence of values to return and exceptions to raise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.core.domain.request import Request


class HttpError(Exception):
    """An error as HTTP clients raise it, with a status, headers and a text."""

    def __init__(self, status: int, text: str = "", headers: dict[str, str] | None = None, code: str = "") -> None:
        self.status_code = status
        self.headers = headers or {}
        self.type = code
        super().__init__(text or f"HTTP {status}")


class Script:
    """A scripted attempt. Each item is returned, raised if it is an exception, or called with the request.

    The last item repeats when the script is exhausted, so `Script(HttpError(529))` always fails.
    `requests` holds the request of each attempt.
    """

    def __init__(self, *items: Any | Callable[[Request], Any]) -> None:
        if not items:
            raise ValueError("a script needs at least one item")
        self.items = items
        self.requests: list[Request] = []

    def __call__(self, request: Request) -> Any:
        """Run the next item as an attempt."""
        item = self.items[min(len(self.requests), len(self.items) - 1)]
        self.requests.append(request)
        if callable(item) and not isinstance(item, type):
            item = item(request)
        if isinstance(item, BaseException):
            raise item.with_traceback(None)
        return item

    async def attempt(self, request: Request) -> Any:
        """Run the next item as a coroutine."""
        return self(request)
