"""Whether a guarded function can receive a changed request: checked when it is decorated, as far as that is certain."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.core.policy.policy import Policy

# Annotations of a first parameter that is no request. Others may be an alias, a base class or a protocol.
_NO_REQUEST: Final = (bool, bytes, dict, float, int, list, set, str, tuple)
_NAMES: Final = frozenset(each.__name__ for each in _NO_REQUEST)
_POSITIONAL: Final = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.VAR_POSITIONAL,
)


def check_models(function: Callable[..., Any], policy: Policy) -> None:
    """Raise ConfigError if the policy lists models or agents that no call of this function can change to."""
    listed = [name for name, values in (("models", policy.models), ("agents", policy.agents)) if values]
    if listed and _takes_no_request(function):
        raise ConfigError(
            f"policy.{listed[0]}",
            getattr(function, "__qualname__", repr(function)),
            "used with a function whose first parameter is a rung.Request, which carries the model and the agent;"
            " a call of any other function is only repeated, so leave them out or use rung.recover",
        )


def _takes_no_request(function: Callable[..., Any]) -> bool:
    """Whether the function certainly takes no request as its first argument."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    first = next((each for each in parameters if each.kind in _POSITIONAL), None)
    if first is None:
        return True
    annotation = first.annotation
    return annotation in _NAMES if isinstance(annotation, str) else annotation in _NO_REQUEST
