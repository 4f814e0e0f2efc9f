"""Scripted attempts: a sequence of values to return and exceptions to raise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.core.domain.request import Request


class HttpError(Exception):
    """An error as HTTP clients raise it.

    Args:
        status: HTTP status.
        text: Message. Default: empty.
        headers: Response headers. Default: none.
        code: Error type or code of the provider. Default: empty.
    """

    def __init__(self, status: int, text: str = "", headers: dict[str, str] | None = None, code: str = "") -> None:
        self.status_code = status
        self.headers = headers or {}
        self.type = code
        super().__init__(text or f"HTTP {status}")


class Script:
    """A scripted attempt. Each item is returned, raised if it is an exception, or called with the request.

    The last item repeats when the script is exhausted, so `Script(HttpError(529))` always fails.

    Args:
        *items: What each attempt does.

    Attributes:
        requests: The request of each attempt.

    Raises:
        ValueError: There is no item.

    Example:
        >>> import rung
        >>> script = rung.testing.Script(rung.testing.HttpError(400, "bad"), "done")
        >>> rung.recover_sync(script, "go", clock=rung.testing.FakeClock()).value, len(script.requests)
        ('done', 2)
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
        """Run the next item as a coroutine.

        Args:
            request: The request.
        """
        return self(request)
