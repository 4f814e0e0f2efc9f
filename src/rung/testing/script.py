"""Attempts that follow a script: return this, raise that, then the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.core.domain.request import Request


class HttpError(Exception):
    """An error as HTTP clients raise it: a status, headers, and a body for its text."""

    def __init__(self, status: int, text: str = "", headers: dict[str, str] | None = None, code: str = "") -> None:
        self.status_code = status
        self.headers = headers or {}
        self.type = code
        super().__init__(text or f"HTTP {status}")


class Script:
    """A scripted attempt. Each item is returned, raised if it is an exception, or called with the request.

    The last item is repeated when the script has run out, so `Script(HttpError(529))` always fails.
    `requests` holds what each attempt was given.
    """

    def __init__(self, *items: Any | Callable[[Request], Any]) -> None:
        if not items:
            raise ValueError("a script needs at least one item")
        self.items = items
        self.requests: list[Request] = []

    def __call__(self, request: Request) -> Any:
        """One attempt."""
        item = self.items[min(len(self.requests), len(self.items) - 1)]
        self.requests.append(request)
        if callable(item) and not isinstance(item, type):
            item = item(request)
        if isinstance(item, BaseException):
            raise item.with_traceback(None)
        return item

    async def attempt(self, request: Request) -> Any:
        """The same, awaited."""
        return self(request)
