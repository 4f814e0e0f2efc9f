"""Limits that a process shares with its fleet: circuit breakers, retry budget, rates, and keys that rest.

`fleet_limits(journal)` is for programs: pass its `breakers` and `retry_budget` to `recover` or `guarded`. Everything is local
between two exchanges with the journal, about one a second, in a thread. While the journal is out of reach, each process
goes on by limits of its own, which is reported once when it begins and once when it ends.
"""

from __future__ import annotations

import threading
import warnings
from contextlib import suppress
from secrets import token_hex
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Protocol

from rung.core.domain.errors import ConfigError
from rung.core.policy.breaker import BreakerSettings
from rung.core.policy.shared_retry_budget import SharedRetryBudget
from rung.core.policy.slices import exchange as exchange_slice
from rung.core.policy.slices import unused
from rung.engine.loop.process_state import BreakerRegistry
from rung.engine.loop.shared_breakers import SharedBreakers
from rung.engine.ports.clock import EPOCH
from rung.store.fleet import slices

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rung.core.policy.key_pool import KeyStatus
    from rung.core.policy.shared_rate import SharedRate
    from rung.core.policy.slices import Lease, SharedLimit, SharedUse, SliceRequest
    from rung.store.fleet.slices import FleetReport, FleetView
    from rung.store.journal.journal import Journal

EXCHANGE_SECONDS: Final = 1.0
_RETRY: Final = "retry"
_RATE: Final = "rate/"
_SELF: Final = "self"


class Sliced(Protocol):
    """A limit of which this process holds a slice."""

    limit: SharedLimit

    def request(self, now: float) -> SliceRequest:
        """Return what to ask of the shared limit."""
        ...

    def apply(self, lease: Lease) -> None:
        """Use the slice of a lease."""
        ...


class SharedLimits:
    """Limits that one process shares with its fleet. `collect`, `send` and `apply` or `fail` run in turn; only `send` blocks."""

    def __init__(
        self,
        journal: Journal,
        fleet: str,
        retry_budget: SharedRetryBudget,
        breakers: SharedBreakers,
        warn: Callable[[str], object],
        holder: str,
    ) -> None:
        self._journal, self._fleet, self._warn, self.holder = journal, fleet, warn, holder
        self.retry_budget, self.breakers = retry_budget, breakers
        self.rates: dict[str, SharedRate] = {}
        self.holders: frozenset[str] = frozenset()  # all processes of the fleet, as last heard of
        self.away_since: float | None = None
        self.clock_offset: float | None = None  # seconds by which the database's clock is ahead
        self._number = 0
        self._own_retries: SharedUse | None = None

    def collect(self, now: float, rests: Mapping[str, KeyStatus | None] | None = None) -> FleetReport:
        """Return what to tell the others. `rests`: keys that rest, or work again, since the last report."""
        self._number += 1
        limits: dict[str, Sliced] = {
            _RETRY: self.retry_budget,
            **{_RATE + key: rate for key, rate in self.rates.items()},
        }
        return slices.FleetReport(
            number=self._number,
            circuits=self.breakers.collect(now),
            limits={name: slices.LimitRequest(each.limit, each.request(now)) for name, each in limits.items()},
            rests=rests or {},
        )

    def send(self, report: FleetReport) -> FleetView:
        """Exchange a report for what all know. Blocks on the journal."""
        return slices.exchange(self._journal, self._fleet, self.holder, report)

    def leave(self, report: FleetReport) -> None:
        """Return what this process holds. Blocks on the journal."""
        slices.leave(self._journal, self._fleet, self.holder, report)

    def apply(self, view: FleetView, now: float) -> None:
        """Adopt what all know."""
        self.breakers.apply(view.circuits, view.now, now)
        for name, lease in view.leases.items():
            rate = self.rates.get(name.removeprefix(_RATE))
            if name == _RETRY:
                self.retry_budget.apply(lease)
            elif rate is not None:
                rate.apply(lease)
        self.holders, self.clock_offset, self._own_retries = view.holders, view.now - now, None
        if self.away_since is not None:
            self.away_since = None
            self._warn_safely("the fleet's journal is back: breakers, retry budget and rates are shared again")

    def _warn_safely(self, message: str) -> None:
        with suppress(Exception):  # warnings may be errors
            self._warn(message)

    def fail(self, error: Exception, now: float) -> None:
        """Go on with limits of this process's own, because the journal is out of reach."""
        if self.away_since is None:
            self.away_since = now
            reason = " ".join(str(error).split()) or type(error).__name__
            self._warn_safely(
                f"the fleet's journal is out of reach ({reason}): breakers, retry budget and rates are this process's own"
            )
        self.breakers.fail()
        for rate in self.rates.values():
            rate.own(now)
        budget = self.retry_budget
        use = self._own_retries or unused(budget.limit, now)
        self._own_retries, lease = exchange_slice(budget.limit, use, _SELF, budget.request(now), now)
        budget.apply(lease)


class FleetLimits:
    """Breakers and retry budget that this process shares with its fleet: what `rung.policies.fleet_limits` returns.

    Args:
        limits: What is exchanged with the others.
        registry: The circuit breakers.

    Attributes:
        breakers: For the argument `breakers` of a recovery.
        retry_budget: For the argument `retry_budget` of a recovery.
    """

    def __init__(self, limits: SharedLimits, registry: BreakerRegistry) -> None:
        self.breakers, self.retry_budget = registry, limits.retry_budget
        self._limits = limits
        self._wake = threading.Event()
        self._exchange()
        self._thread = threading.Thread(target=self._run, name="rung-fleet-limits", daemon=True)
        self._thread.start()

    @property
    def is_shared(self) -> bool:
        """Whether the fleet was reached at the last exchange; otherwise the limits are this process's own."""
        return self._limits.away_since is None

    def close(self) -> None:
        """Return what this process holds, and end the exchange. The limits go on as this process's own."""
        self._wake.set()
        self._thread.join()

    def __enter__(self) -> FleetLimits:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self) -> None:
        while not self._wake.wait(EXCHANGE_SECONDS):
            self._exchange()
        with suppress(Exception):  # its slices expire
            self._limits.leave(self._limits.collect(_now()))

    def _exchange(self) -> None:
        limits = self._limits
        report = limits.collect(_now())
        try:
            view = limits.send(report)
        except Exception as error:  # noqa: BLE001  # an unavailable store must not stop recoveries
            limits.fail(error, _now())
        else:
            limits.apply(view, _now())


def fleet_limits(
    journal: Journal,
    *,
    name: str = "default",
    breaker: BreakerSettings | None = None,
    retry_budget: Mapping[str, Any] | None = None,
) -> FleetLimits:
    """Share circuit breakers and a retry budget with all processes that use the same journal and name.

    Pass `breakers` and `retry_budget` of the result to `recover` or `guarded`.

    Args:
        journal: Journal of the fleet, from `rung.journal(…)`.
        name: Name of the limits. Default: `default`.
        breaker: Settings of each breaker. Default: `rung.BreakerSettings()`.
        retry_budget: Arguments of `rung.RetryBudget`, for all processes together; they must be the same in each. Default:
            those of `rung.RetryBudget`.

    Raises:
        ConfigError: The name or the journal is not allowed.
    """
    if not isinstance(name, str) or not name or "/" in name:
        raise ConfigError("fleet_limits.name", name, "a text without /")
    if not hasattr(journal, "write"):
        raise ConfigError("fleet_limits.journal", journal, "a journal, as rung.journal(…) opens it")
    registry, holder = BreakerRegistry(breaker or BreakerSettings()), f"process-{token_hex(8)}"
    limits = SharedLimits(
        journal,
        f"library-{name}",
        SharedRetryBudget(**(retry_budget or {})),
        SharedBreakers(registry, holder),
        _warn,
        holder,
    )
    return FleetLimits(limits, registry)


def _warn(message: str) -> None:
    warnings.warn(f"rung: {message}", RuntimeWarning, stacklevel=2)


def _now() -> float:
    return EPOCH + monotonic()
