"""Spend of the gateway: each attempt reserves its estimate under the limits of its call and settles with its usage.

Spend is the journal's total plus what was added since, so that it matches the service and survives a restart.
Without a journal it is what this process has counted. Processes that share a journal lease slices of the limits there, and
reserve from those. While the journal is out of reach, such a process spends what it has leased, and no more.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import replace
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.errors import StoreError, StoreUnavailable
from rung.core.policy.call_costs import SessionUsage
from rung.core.policy.purses import Purses, Reservation, refusal
from rung.core.policy.spend_limits import ALERT_PERCENTS, SpendLimit, SpendLimits, month_of, renewal
from rung.gateway.keys import RequestRejected
from rung.gateway.sessions import session_id
from rung.gateway.spending.leased_spend import LeasedSpend
from rung.gateway.spending.session_averages import SessionAverages
from rung.store.queries.spend import charge_keys, spend_limits, spent_by_keys, spent_by_sessions, spent_in_month
from rung.store.session_usage import add_usage
from rung.store.spend_holds import HOLD_SECONDS, OtherHolders, held_by_others, publish, release
from rung.wiring.prices import PriceTable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rung.core.domain.usage import Usage
    from rung.core.policy.model_prices import ModelPrice
    from rung.core.policy.policy import Policy
    from rung.gateway.inbound_request import InboundRequest
    from rung.gateway.settings import GatewaySettings
    from rung.store.journal.journal import Journal

_MAX_SESSIONS: Final = 10_000
_JOURNALED_SECONDS: Final = 60.0  # after this time a session's spend is certainly in the journal
_SESSION_PREFIX: Final = "budget/session/"
_IN_FLIGHT_SECONDS: Final = 1  # after which a call may be tried again that others' reservations forbid
_AWAY_SECONDS: Final = 5  # after which a call may be tried again that only the journal can grant
_UNAVAILABLE: Final = (StoreError, StoreUnavailable, TimeoutError)


class SpendLedger:
    """Spend by key, session, project and month."""

    def __init__(self, log: Callable[[str], object] = print, journal: Journal | None = None) -> None:
        self.limits = SpendLimits()
        self.purses = Purses()
        self.prices = PriceTable()
        self._journal = journal
        self._sessions: OrderedDict[str, float] = OrderedDict()  # when each loaded session last spent, by purse
        self.averages = SessionAverages()
        self._reported_alerts: set[tuple[str, int]] = set()
        self._charges: dict[str, float] = {}  # by key hash, not yet in the journal
        self._batch: tuple[int, dict[str, float]] = (0, {})  # charges that are being written, and their number
        self._used: dict[str, SessionUsage] = {}  # by session, not yet in the journal
        self._holder = f"gateway-{token_hex(8)}"
        self.is_shared = False  # other processes spend from the same journal
        self._published: tuple[dict[str, float], float] = ({}, 0.0)  # what others know to be held, and since when
        self._settled: tuple[dict[str, float], dict[str, float]] = ({}, {})  # before and since the last refresh
        self.leased = None if journal is None else LeasedSpend(journal, self._holder, self._held, self._held_of)
        self.away_since: float | None = None  # when the journal went out of reach
        self._is_loaded = False
        self._log = log
        self._hour, self._month = -1, ""

    @property
    def spent(self) -> Mapping[str, float]:
        """Return the US dollars spent, by the id of a spend limit or the hash of a key."""
        return self.purses.spent

    # -- journal -----------------------------------------------------------------------------------------

    async def refresh(self, settings: GatewaySettings, now: float) -> None:
        """Reload limits and the spend of all processes that share the journal."""
        if self._journal is None:
            self.limits = settings.budgets
            return
        try:
            await self._write_spend(self._journal, now)
            self.limits, recorded, others = await asyncio.to_thread(
                self._exchange, self._journal, settings, list(self._sessions)[-100:], now
            )
            if self.leased is not None and self.is_leasing and (settings.keys or self.limits.has_limits):
                await self._renew(self.leased, now)
            await self._write_usage(self._journal, now)
        except _UNAVAILABLE as error:
            if not self._is_loaded:
                self.limits = settings.budgets
            self._note_away(error, now)
            return
        self.purses.reserved_elsewhere, self.is_shared, self._is_loaded = others.held, others.present, True
        for name, dollars in recorded.items():
            self._apply_recorded(name, dollars + self._charges.get(name, 0.0))
        if self.away_since is not None:
            self.away_since = None
            self._log("rung gateway: the journal is back: spending is recorded and leased again")

    @property
    def is_leasing(self) -> bool:
        """Return whether this process spends only what it has leased, because others may spend from the same journal."""
        return self.leased is not None and (self.leased.is_fleet or self.is_shared)

    def _note_away(self, error: Exception, now: float) -> None:
        """Warn once that the journal is out of reach, and what that means for spending."""
        if self.away_since is not None:
            return
        self.away_since = now
        means = "spending goes on, as counted here"
        if self.leased is not None and self.is_leasing:
            seconds = max(0.0, self.leased.valid_until - now)
            means = f"calls with a spend limit spend what is leased, for {seconds:.0f} s at most, and are then refused"
        reason = " ".join(str(error).split()) or type(error).__name__
        self._log(f"rung gateway: the journal is out of reach ({reason}): {means}")

    async def _renew(self, leased: LeasedSpend, now: float) -> None:
        if leased.leased or self._held() or now - self._published[1] > HOLD_SECONDS / 3:
            await leased.renew(now)
            self._published = ({}, now)

    async def _write_spend(self, journal: Journal, now: float) -> None:
        """Write what was spent, and stop holding what was spent before the last refresh: the journal has it then."""
        if any(self._settled) and not await asyncio.to_thread(journal.flush, _AWAY_SECONDS):
            raise StoreUnavailable(journal.last_error or "spending could not be written in time")
        for _ in range(2):  # what could not be written before, and what was spent since
            number, charges = self._take_charges()
            if charges:
                await asyncio.to_thread(charge_keys, journal, charges, now, (self._holder, number))
                self._batch = (number, {})
        if self.leased is None:
            return
        async with self.leased.turn:
            recorded, self._settled = self._settled[0], (self._settled[1], {})
            self.leased.forget(recorded)

    def _take_charges(self) -> tuple[int, dict[str, float]]:
        """Return the charges to write, and their number. What could not be written keeps its number, so as to count once."""
        if not self._batch[1]:
            self._batch, self._charges = (self._batch[0] + 1, self._charges), {}
        return self._batch

    async def _write_usage(self, journal: Journal, now: float) -> None:
        used, self._used = self._used, {}
        try:
            await asyncio.to_thread(add_usage, journal, used, now)
        except _UNAVAILABLE:
            for name, usage in used.items():
                self._used[name] = usage.plus(self._used.get(name, SessionUsage()))
            raise

    def _held_of(self, name: str) -> float:
        return self.purses.reserved.get(name, 0.0) + sum(settled.get(name, 0.0) for settled in self._settled)

    def _held(self) -> dict[str, float]:
        """Return what other processes must leave alone: reservations, and spend that may not be in the journal yet."""
        held = self.purses.reserved.copy()
        for settled in self._settled:
            for name, dollars in settled.copy().items():
                held[name] = held.get(name, 0.0) + dollars
        return held

    def _exchange(
        self, journal: Journal, settings: GatewaySettings, sessions: list[str], now: float
    ) -> tuple[SpendLimits, dict[str, float], OtherHolders]:
        """Write what this process holds, unless it leases; return the limits, the recorded spend and what others hold.

        Blocks on the journal; runs beside the requests.
        """
        held, (published, at) = self._held(), self._published
        has_limits = settings.keys or settings.budgets.has_limits or self.limits.has_limits
        if has_limits and not self.is_leasing and (held != published or now - at > HOLD_SECONDS / 3):
            publish(journal, self._holder, self._held, now)
            self._published = (held, now)
        others = held_by_others(journal, self._holder, now)
        recorded = spent_by_keys(journal) if settings.keys else {}
        limits = spend_limits(journal, settings.budgets)
        if limits.has_limits:
            by_project, month = spent_in_month(journal, now), month_of(now)
            recorded |= {f"budget/project/{project}/{month}": dollars for project, dollars in by_project.items()}
            recorded[f"budget/month/{month}"] = sum(by_project.values())
        if limits.session is not None:
            names = [name.removeprefix(_SESSION_PREFIX) for name in sessions]
            by_session = spent_by_sessions(journal, names)
            recorded |= {_SESSION_PREFIX + session: dollars for session, dollars in by_session.items()}
        return limits, recorded, others

    def flush(self, now: float) -> None:
        """Write the spend of keys since the last flush to the journal and free all holds. Blocks on the journal."""
        if self._journal is None:
            return
        for _ in range(2):
            number, charges = self._take_charges()
            if charges:
                charge_keys(self._journal, charges, now, (self._holder, number))
                self._batch = (number, {})
        used, self._used = self._used, {}
        add_usage(self._journal, used, now)
        if self._published[1] or (self.leased is not None and self.leased.was_used):
            release(self._journal, self._holder)

    async def _load_session(self, session: str, now: float) -> None:
        """Load the earlier spend of a session when this process first sees it.

        Sessions that have not spent for a while are forgotten again: their spend is in the journal. Without a journal
        nothing is forgotten, or a client could reopen its budget with made-up sessions.
        """
        name = _SESSION_PREFIX + session
        if self._journal is None or not session or name in self._sessions:
            return
        try:
            before = (await asyncio.to_thread(spent_by_sessions, self._journal, [session]))[session]
        except _UNAVAILABLE as error:
            if not self.is_leasing:
                raise
            raise _unavailable("session") from error
        self._apply_recorded(name, before)
        self._sessions[name] = now - _JOURNALED_SECONDS
        while len(self._sessions) > _MAX_SESSIONS:
            oldest, spent_at = next(iter(self._sessions.items()))
            if now - spent_at < _JOURNALED_SECONDS or oldest in self.purses.reserved:
                break
            del self._sessions[oldest]
            self.purses.spent.pop(oldest, None)

    def _apply_recorded(self, name: str, dollars: float) -> None:
        """Apply a total from the journal; thresholds reached before a restart were already reported."""
        if name not in self.purses.spent:
            limit = next((spend_limit.limit for spend_limit in self._limits_named(name) if spend_limit.id == name), 0.0)
            self._reported_alerts.update(
                (name, percent) for percent in ALERT_PERCENTS if limit and 100 * dollars >= percent * limit
            )
        self.purses.record(name, dollars)

    def _limits_named(self, name: str) -> list[SpendLimit]:
        scope, _, rest = name.removeprefix("budget/").partition("/")
        project, _, month = rest.rpartition("/")
        return self.limits.limits_for(rest if scope == "session" else "", project, month)

    # -- reservations ------------------------------------------------------------------------------------

    async def admit(self, inbound: InboundRequest, now: float) -> Reservation:
        """Return an empty reservation under the limits of a call; reject the call if one of them is exhausted."""
        if self.limits.session is not None:
            inbound.session = session_id(inbound)  # named, or recognized by how the conversation began
            await self._load_session(inbound.session, now)
        reservation = Reservation(limits=self._limits_for(inbound, now))
        exhausted = self.purses.exhausted(reservation.limits)
        if exhausted is not None:
            raise self._rejection(exhausted, self.purses.left(exhausted), now)
        return reservation

    async def find_price(
        self, inbound: InboundRequest, model: str, known: Mapping[str, Mapping[str, Any]], now: float
    ) -> ModelPrice:
        """Look up the price of a model for a call with limits; reject the call if it is unknown."""
        self.prices.request(model, inbound.key_hash, now)
        await self.prices.look_up()
        price = self.prices.price(model, known)
        if price is None:
            raise RequestRejected(
                403,
                f"the price of model {model[:200]!r} is unknown, and this call has a spend limit: set `input` and `output`"
                f" (US dollars for a million tokens, 0 if it is free) in [gateway.prices.{model[:200]!r}]",
            )
        return price

    async def reserve(self, reservation: Reservation, dollars: float, now: float) -> None:
        """Reserve the estimate of an attempt; reject it if a limit of its call is exhausted.

        Where others may spend from the same journal, it is reserved from what is leased, and else by the journal.
        """
        before = reservation.held
        exhausted = self.purses.reserve(reservation, dollars)
        if exhausted is not None:
            raise self._rejection(exhausted, self.purses.left(exhausted), now)
        more = reservation.held - before
        if self.leased is None or not self.is_leasing or more <= 0:
            return
        self.leased.note(reservation.limits, more)
        if self.leased.covers(reservation.limits, now):
            return
        try:
            await self._lease(self.leased, reservation.limits, more, now)
        except BaseException:
            self.purses.release(reservation)
            raise

    async def _lease(self, leased: LeasedSpend, limits: Sequence[SpendLimit], more: float, now: float) -> None:
        """Have the journal grant a reservation that the slices do not cover."""
        if self.away_since is not None:
            raise _unavailable(limits[0].scope)
        try:
            refused = await leased.reserve(limits, more, now)
        except _UNAVAILABLE as error:
            self._note_away(error, now)
            raise _unavailable(limits[0].scope) from error
        if refused is not None:
            raise self._rejection(refused.limit, refused.left, now)

    @staticmethod
    def _rejection(limit: SpendLimit, left: float, now: float) -> RequestRejected:
        at = renewal(limit, now)
        if left > 0:
            return RequestRejected(429, refusal(limit, left, now), retry_after=_IN_FLIGHT_SECONDS, should_retry=True)
        return RequestRejected(429, refusal(limit, left, now), retry_after=None if at is None else int(at - now) + 1)

    def settle(
        self,
        reservation: Reservation,
        inbound: InboundRequest,
        model: str,
        price: ModelPrice | None,
        usage: Usage,
        now: float,
    ) -> float:
        """Count the tokens of an attempt; return their cost in US dollars. An unknown price is looked up."""
        self.averages.add(inbound.session, usage)
        if inbound.session and self._journal is not None:
            used = self._used.get(inbound.session, SessionUsage())
            self._used[inbound.session] = used.plus(SessionUsage.of(usage))
        if price is None:
            self.prices.request(model, inbound.key_hash, now)
            self.prices.start()
            return 0.0
        dollars = price.cost(usage)
        self.purses.settle(reservation, dollars)
        for spend_limit in reservation.limits:
            settled = self._settled[1]
            settled[spend_limit.id] = settled.get(spend_limit.id, 0.0) + dollars
            if spend_limit.scope == "session" and self._journal is not None:
                self._sessions[spend_limit.id] = now
                self._sessions.move_to_end(spend_limit.id)
            if spend_limit.scope != "key":
                self._alert(spend_limit)
        if inbound.key_hash:
            if inbound.key_dollars is None:
                self.purses.add(inbound.key_hash, dollars)
            self._charge(inbound.key_hash, dollars)
        return dollars

    def charge_unlimited(self, key_hash: str, dollars: float) -> None:
        """Count the cost of a call without limits after its end."""
        if key_hash:
            self.purses.add(key_hash, dollars)
            self._charge(key_hash, dollars)

    def _charge(self, key_hash: str, dollars: float) -> None:
        self._charges[key_hash] = self._charges.get(key_hash, 0.0) + dollars

    def apply_to_policy(
        self,
        policy: Policy,
        inbound: InboundRequest,
        settings: GatewaySettings,
        spent: float,
        now: float,
        listed_name: Callable[[str], str] = str,
    ) -> Policy:
        """Return the policy with the remaining budget as its cap and the estimated cost of a call on each model.

        `spent`: US dollars that the call has spent; its incident counts them again. `listed_name` gives the name under
        which a model of the policy has its price.
        """
        remaining = [self.purses.left(spend_limit) + spent for spend_limit in self._limits_for(inbound, now)]
        if policy.budget.dollars is not None:
            remaining.append(policy.budget.dollars)
        if remaining:
            policy = policy.replace(budget=replace(policy.budget, dollars=min(remaining)))
        return self.averages.apply_to_policy(
            policy, inbound, lambda model: self.prices.price(listed_name(model), settings.prices)
        )

    def _limits_for(self, inbound: InboundRequest, now: float) -> list[SpendLimit]:
        limits = []
        if self.limits.has_limits:
            hour = int(now // 3_600)
            if self._hour != hour:
                self._hour, self._month = hour, month_of(now)
            limits = self.limits.limits_for(inbound.session, inbound.project, self._month)
        if inbound.key_dollars is not None:
            limits.append(SpendLimit("key", "", inbound.key_dollars, inbound.key_hash))
        return limits

    def _alert(self, spend_limit: SpendLimit) -> None:
        for percent in ALERT_PERCENTS:
            if (
                100 * self.spent[spend_limit.id] >= percent * spend_limit.limit
                and (spend_limit.id, percent) not in self._reported_alerts
            ):
                self._reported_alerts.add((spend_limit.id, percent))
                what = f"{spend_limit.scope} {spend_limit.name}".strip()
                self._log(f"rung gateway: {what} budget: {percent} % of ${spend_limit.limit:.2f} spent")


def _unavailable(scope: str) -> RequestRejected:
    return RequestRejected(
        503,
        f"the budget of this {scope} cannot be checked: the journal is out of reach, and what this gateway had leased of it"
        " is used up or has expired; try again later",
        retry_after=_AWAY_SECONDS,
        should_retry=True,
    )
