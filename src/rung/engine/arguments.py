"""Misuse of a recovery's arguments: a TypeError in one line, before anything runs."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.request import Request
from rung.engine.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_CALLABLE: Final = ("check", "ask", "jitter")


def check_attempt(attempt: Any, *, blocking: bool) -> None:
    """Refuse an attempt that is not a function of a request, or a coroutine function in a blocking recovery."""
    if not callable(attempt):
        raise TypeError(f"attempt: must be a function of the request, not {_name(attempt)}")
    if blocking and inspect.iscoroutinefunction(attempt):
        raise TypeError(f"attempt: {_name(attempt)} is async; use `recover`, which awaits it")
    if inspect.isfunction(attempt) and not attempt.__code__.co_argcount and not attempt.__code__.co_flags & 0x04:
        raise TypeError(f"attempt: {_name(attempt)} takes no argument; it must take the request")


def check_ports(request: Any, ports: Mapping[str, Any]) -> None:
    """Refuse a request or a port of another type."""
    _require(isinstance(request, Request | str), "request", "a rung.Request or a string", request)
    for name in _CALLABLE:
        if ports.get(name) is not None:
            _require(callable(ports[name]), name, "a function", ports[name])
    session, journal = ports.get("session"), ports.get("journal")
    _require(session is None or isinstance(session, Session), "session", "a rung.Session", session)
    has_append = callable(getattr(journal, "append", None))
    _require(journal is None or has_append, "journal", "a journal, such as rung.journal(PATH)", journal)
    breakers = ports.get("breakers")
    has_get = callable(getattr(breakers, "get", None))
    _require(breakers is None or has_get, "breakers", "a rung.BreakerRegistry, or None for no breaker", breakers)


def _require(holds: bool, name: str, allowed: str, value: object) -> None:  # noqa: FBT001  # a private assertion
    if not holds:
        raise TypeError(f"{name}: must be {allowed}, not {_name(value)}")


def _name(value: Callable[..., Any] | object) -> str:
    return getattr(value, "__qualname__", None) or type(value).__name__
