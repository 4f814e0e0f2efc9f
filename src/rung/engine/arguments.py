"""Misuse of a recovery's arguments: a TypeError in one line, before anything runs."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterable, Mapping
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final, NoReturn

from rung.core.domain.ladder import Action
from rung.core.domain.request import Request
from rung.core.policy.budget import RetryBudget
from rung.core.policy.policy import Policy
from rung.core.recovery.interventions import Intervention
from rung.engine.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable

_ACTIONS: Final = frozenset(action.value for action in Action)
_AWAITED: Final = ("check", "ask", "investigate", "on_park")  # functions that an async recovery awaits


def check_attempt(attempt: Any, *, blocking: bool) -> None:
    """Refuse an attempt that is not a function of a request, or a coroutine function in a blocking recovery."""
    if not callable(attempt):
        raise TypeError(f"attempt: must be a function of the request, not {_name(attempt)}")
    if blocking and is_coroutine_function(attempt):
        raise TypeError(f"attempt: {_name(attempt)} is async; use `recover`, which awaits it")
    if inspect.isgeneratorfunction(attempt) or inspect.isasyncgenfunction(attempt):
        raise TypeError(
            f"attempt: {_name(attempt)} is a generator, which nothing iterates; use @rung.guarded, or return the whole result"
        )
    if inspect.isfunction(attempt) and not attempt.__code__.co_argcount and not attempt.__code__.co_flags & 0x04:
        raise TypeError(f"attempt: {_name(attempt)} takes no argument; it must take the request")


def check_request(request: Any) -> None:
    """Refuse a request of another type."""
    _require(isinstance(request, Request | str), "request", "a rung.Request or a string", request)


def check_policy(policy: Any) -> None:
    """Refuse a policy of another type."""
    _require(isinstance(policy, Policy | str), "policy", "a rung.Policy or the name of a ladder", policy)


def check_ports(ports: Mapping[str, Any], *, blocking: bool) -> None:
    """Refuse a port of another type, and an async function where nothing awaits it. Unknown names are not checked here."""
    for name, value in ports.items():
        check = _CHECKS.get(name)
        if check is not None and (value is not None or name in _REQUIRED):
            check(name, value)
        if blocking and name in _AWAITED and is_coroutine_function(value):
            raise TypeError(f"{name}: {_name(value)} is async; use `recover`, which awaits it")
    handlers = ports.get("rung_handlers")
    for action, handler in (handlers or {}).items() if blocking else ():
        if is_coroutine_function(handler):
            raise TypeError(f"rung_handlers[{action!r}]: {_name(handler)} is async; use `recover`, which awaits it")


def refuse_argument(name: str, allowed: Iterable[str]) -> NoReturn:
    """Raise TypeError for an unknown keyword argument. A setting of a policy is sent to its place."""
    from rung.core.domain.settings_schema import suggest_names
    from rung.core.policy.parser import POLICY_KEYS

    names = list(allowed)
    if name in POLICY_KEYS:
        raise TypeError(f"unknown argument {name!r}; it is a setting of the policy: rung.policy(..., {name}=...)")
    if name == "policy":
        raise TypeError("unknown argument 'policy'; it is the first argument: @rung.guarded(rung.policy(...))")
    near = suggest_names(name, ["policy", *names])
    raise TypeError(f"unknown argument {name!r}{near}; must be one of: {', '.join(names)}")


def refuse_coroutine(value: Any, what: str) -> None:
    """Raise TypeError for a coroutine that a function returned where nothing awaits it: it has done nothing yet."""
    if type(value) is CoroutineType:
        value.close()
        raise TypeError(
            f"{what}: returned a coroutine, which nothing awaits; use an `async def` function and `recover`"
        )


def is_coroutine_function(function: Any) -> bool:
    """Return whether calling this returns a coroutine: an async function, a partial of one, or an async `__call__`."""
    while isinstance(function, functools.partial):
        function = function.func
    if inspect.isfunction(function):
        return inspect.iscoroutinefunction(function)
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004  # an object with an async __call__


def _function(name: str, value: Any) -> None:
    _require(callable(value), name, "a function", value)


def _listeners(name: str, value: Any) -> None:
    is_list = isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)
    _require(is_list, name, "a list of functions", value)
    for listener in value:
        _require(callable(listener), name, "a list of functions", listener)
        if is_coroutine_function(listener):
            raise TypeError(f"{name}: {_name(listener)} is async; a listener is called, never awaited")
        if not _takes_two_arguments(listener):
            raise TypeError(f"{name}: {_name(listener)} cannot be called with an event and the incident")


def _takes_two_arguments(function: Any) -> bool:
    try:
        inspect.signature(function).bind(None, None)
    except TypeError:
        return False
    except ValueError:  # a builtin without a signature
        return True
    return True


def _handlers(name: str, value: Any) -> None:
    _require(isinstance(value, Mapping), name, 'a table of functions: {"replan": plan}', value)
    for action, handler in value.items():
        if action not in _ACTIONS:
            raise TypeError(f"{name}: {action!r} is no action; must be one of: {', '.join(sorted(_ACTIONS))}")
        _require(callable(handler), f"{name}[{action!r}]", "a function", handler)


def _object(allowed: str, *methods: str) -> Callable[[str, Any], None]:
    """Return the check of an object with these methods."""

    def check(name: str, value: Any) -> None:
        is_object = not inspect.isclass(value) and all(callable(getattr(value, method, None)) for method in methods)
        _require(is_object, name, allowed, value)

    return check


def _instance(allowed: str, *types: type) -> Callable[[str, Any], None]:
    return lambda name, value: _require(isinstance(value, types), name, allowed, value)


def _key(name: str, value: Any) -> None:
    _require(isinstance(value, str) or callable(value), name, "a string or a function of the request", value)


def _journal(name: str, value: Any) -> None:
    cls: Any = type(value)
    takes_events = _class_takes_events(cls) or _takes_events(getattr(value, "append", None))
    _require(takes_events, name, "a journal, such as rung.journal(PATH)", value)


@functools.lru_cache(maxsize=64)
def _class_takes_events(cls: type) -> bool:
    return _takes_events(getattr(cls, "append", None), None)


def _takes_events(append: Any, *instance: None) -> bool:
    """Return whether a function takes what `EventLog.append` takes: an incident, a position and events."""
    try:
        inspect.signature(append).bind(*instance, "", 0, ())
    except (TypeError, ValueError):
        return False
    return True


_CHECKS: Final[dict[str, Callable[[str, Any], None]]] = {
    **dict.fromkeys(("check", "ask", "jitter", "investigate", "on_park"), _function),
    "listeners": _listeners,
    "rung_handlers": _handlers,
    "clock": _object("a clock with `now`, `sleep` and `asleep`", "now", "sleep", "asleep"),
    "checkpoint": _object("a checkpoint with `take` and `restore`", "take", "restore"),
    "notes": _object("notes of a project with `read`, and a listener", "read", "__call__"),
    "service_waits": _object("an object with `wait`", "wait"),
    "session": _instance("a rung.Session", Session),
    "journal": _journal,
    "breakers": _object("a rung.BreakerRegistry, or None for no breaker", "get"),
    "retry_budget": _instance("a rung.RetryBudget, or None for no limit", RetryBudget),
    "incident_id": _instance("a string", str),
    "intervention": _instance("an Intervention", Intervention),
    "key": _key,
}
_REQUIRED: Final = frozenset({"clock", "jitter", "incident_id", "key"})  # a given None is a mistake


def _require(holds: bool, name: str, allowed: str, value: object) -> None:  # noqa: FBT001  # a private assertion
    if not holds:
        raise TypeError(f"{name}: must be {allowed}, not {_name(value)}")


def _name(value: Callable[..., Any] | object) -> str:
    return getattr(value, "__qualname__", None) or type(value).__name__
