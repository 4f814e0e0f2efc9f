"""Guard of a function without a policy of its own: it follows the policy of its journal's project, read before each call."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from rung.core.policy.parser import policy as make_policy
from rung.engine.guarded import fast_path, generators

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.core.policy.policy import Policy
    from rung.engine.guarded.guard import GuardedFunction
    from rung.engine.ports.journal import StoredPolicies

    _Current = tuple[
        Policy, GuardedFunction, Callable[..., Any] | None
    ]  # with the wrapped function, once it was called


class FollowedPolicy:
    """The guard of a function under the policy that holds now. Circuits and budgets outlive a change of the policy."""

    def __init__(
        self, function: Any, build: Callable[[Policy], GuardedFunction], journal: StoredPolicies, ladder: str
    ) -> None:
        self._function, self._build, self._journal, self._ladder = function, build, journal, ladder
        self._default = make_policy(ladder)
        # Replaced as a whole: calls in other threads see one policy and its guard.
        self._current: _Current = (self._default, build(self._default), None)

    def guard(self) -> GuardedFunction:
        """Return the guard under the policy that holds now."""
        return self._now()[1]

    def wrapper(self) -> Callable[..., Any]:
        """Return the wrapped function under the policy that holds now."""
        policy, guard, wrapper = self._now()
        if wrapper is None:
            is_async = inspect.iscoroutinefunction(self._function)
            wrapper = (fast_path.wrap_async if is_async else fast_path.wrap_sync)(self._function, guard)
            self._current = (policy, guard, wrapper)
        return wrapper

    def _now(self) -> _Current:
        policy = self._journal.stored_policy(self._ladder) or self._default
        current = self._current
        if policy is not current[0] and policy != current[0]:
            current = self._current = (policy, self._build(policy), None)
        return current

    def recover_call(self, *args: Any) -> Any:
        """Run a call with recovery."""
        return self.guard().recover_call(*args)

    async def arecover_call(self, *args: Any) -> Any:
        """Run a call with recovery, awaiting."""
        return await self.guard().arecover_call(*args)


def wrap(function: Any, followed: FollowedPolicy) -> Callable[..., Any]:
    """Wrap a function, coroutine function or (async) generator function."""
    if inspect.isasyncgenfunction(function):
        return generators.wrap_async_generator(function, followed)
    if inspect.isgeneratorfunction(function):
        return generators.wrap_generator(function, followed)
    if inspect.iscoroutinefunction(function):

        async def awaiting(*args: Any, **kwargs: Any) -> Any:
            return await followed.wrapper()(*args, **kwargs)

        return awaiting

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return followed.wrapper()(*args, **kwargs)

    return wrapper
