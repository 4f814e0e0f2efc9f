"""Retry budget of a fleet: its tokens are a slice of a budget that all processes share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rung.core.policy.budget import RetryBudget
from rung.core.policy.slices import SharedLimit, SliceHolder

if TYPE_CHECKING:
    from rung.core.policy.slices import Lease, SliceRequest

_MINIMUM_SHARE = 8  # a process keeps at least one in so many of the first tokens, if they are there


class SharedRetryBudget(RetryBudget):
    """Retry budget whose tokens come from a shared one. Calls add tokens here; those that are not used go to the others.

    Settings are those of `RetryBudget`, for all processes together. Time refills the shared budget, not this slice.
    """

    __slots__ = ("_slice", "limit")

    def __init__(self, capacity: int = 500, price: int = RetryBudget.COST, **settings: Any) -> None:
        super().__init__(capacity, price, **settings)
        self.limit = SharedLimit(amount=capacity, per_second=self.per_second, initial=self.initial)
        self._slice = SliceHolder(max(self.price, self.initial / _MINIMUM_SHARE))
        self._show()

    def affords(self, now: float | None = None) -> bool:  # noqa: ARG002  # the shared budget is refilled with time
        """Whether the slice has tokens for one more retry."""
        return self.tokens >= self.price

    def charge(self) -> None:
        """Take the tokens of a scheduled retry."""
        self._slice.add(min(self.price, self.tokens))
        self._show()

    def credit(self, tokens: float | None = None) -> None:
        """Add the tokens of a call that begins, or return those of a retry that was not made."""
        more = self.per_call if tokens is None else tokens
        self._slice.add(-min(more, self.capacity - self.tokens))
        self._show()

    def request(self, now: float) -> SliceRequest:
        """Return what to tell the shared budget: tokens that were taken and added, and how many more are wanted."""
        request = self._slice.request(now)
        self._show()
        return request

    def apply(self, lease: Lease) -> None:
        """Use the tokens of a lease."""
        self._slice.apply(lease, self.limit.lease_seconds)
        self._show()

    def _show(self) -> None:
        self.tokens = self._slice.slack
        self.is_below_capacity = self.tokens < self.capacity
