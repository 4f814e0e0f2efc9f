"""State shared by all requests of a gateway: settings, policies, sessions, circuits, connections, accounting."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from rung.core.domain.errors import StoreError, StoreUnavailable
from rung.core.policy.breaker import BreakerSettings
from rung.core.policy.spend_estimates import asks_long_context
from rung.core.recovery.handover import with_enough_room, with_windows
from rung.core.recovery.stream_rules import with_accounts
from rung.engine.loop.process_state import BreakerRegistry
from rung.engine.ports.clock import SYSTEM_CLOCK
from rung.gateway.accounting import Accounting
from rung.gateway.call_recording import CallRecording
from rung.gateway.circuit_waits import CircuitWaits
from rung.gateway.detector_port import RequestView, ResponseView, run_detectors
from rung.gateway.fleet import GatewayFleet, retry_budget
from rung.gateway.http.pool import ConnectionPool
from rung.gateway.outbound import Upstreams, outbound_for
from rung.gateway.pinned_models import PinnedModels
from rung.gateway.policy_table import PolicyTable
from rung.gateway.proxied_call import ProxiedCall
from rung.gateway.references import ReferenceTable
from rung.gateway.request_coalescing import InFlightRequests
from rung.gateway.route_probe import RouteProbe
from rung.gateway.sessions import SessionTable, session_id
from rung.gateway.spending.unpriced_calls import UnpricedCalls
from rung.gateway.upstream.headers import check_keys
from rung.gateway.upstream.health import UpstreamHealth
from rung.gateway.upstream.secret_filter import SecretFilter
from rung.gateway.upstream.table import Target, UpstreamTable, has_same_api
from rung.store.project_scope import ProjectJournal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from rung.core.domain import events as ev
    from rung.core.policy.policy import Policy
    from rung.gateway.detector_port import DetectorResult, GatewayDetector
    from rung.gateway.http.port import UpstreamClient
    from rung.gateway.inbound_request import InboundRequest
    from rung.gateway.response_writer import Send
    from rung.gateway.settings import GatewaySettings
    from rung.gateway.spending.paid_attempts import CallSpending
    from rung.gateway.upstream.health import Route
    from rung.store.journal.journal import Journal

# Short pauses: traffic through a gateway is steady, so a probe request is always available. Calls that wait lengthen them.
BREAKER_SETTINGS: Final = BreakerSettings(
    rate=0.75, minimum=30, window=20.0, pause=3.0, probe=60.0, max_pause=8.0, at_handover=True
)
_BACKGROUND_INTERVAL_SECONDS: Final = 1.0
_LAST_LOOKUP_SECONDS: Final = 10.0  # that a gateway which stops waits for the prices of its last calls
MAX_CIRCUITS: Final = 5_000  # clients choose the names of models and credentials


class Gateway:
    """State that outlives one request: connections, circuits, retry budget, sessions, metrics, journal."""

    def __init__(
        self,
        settings: GatewaySettings,
        journal: Journal | None = None,
        detectors: Sequence[GatewayDetector] = (),
        log: Callable[[str], object] = print,
        client: UpstreamClient | None = None,
    ) -> None:
        self.clock = SYSTEM_CLOCK
        self.started_at = self.clock.now()
        self.health = UpstreamHealth()
        self.settings = settings
        self.journal = journal
        self._extra_detectors = tuple(detectors)
        check_keys(settings.upstreams)
        self.upstream_table = UpstreamTable(settings.upstreams)
        self.client: UpstreamClient = SecretFilter(client or ConnectionPool(settings))
        self.references = ReferenceTable(journal, log, self.clock.now)
        self._upstreams = self._make_upstreams()
        self.host_names = settings.host_names()
        self.breakers = BreakerRegistry(BREAKER_SETTINGS, MAX_CIRCUITS)
        self.retry_budget = retry_budget(journal)
        self.sessions = SessionTable(settings.sticky_seconds)
        self.pinned_models = PinnedModels(journal, log)
        self.route_probe = RouteProbe(settings.probe_seconds, self.clock.now)
        self.circuit_waits = CircuitWaits(self.breakers, self.clock.now)
        self.in_flight = InFlightRequests()
        self.call_recording = CallRecording(journal, log)
        self.accounting = Accounting(journal, log, spans=settings.otel)
        self.metrics = self.accounting.metrics
        self.ledger = self.accounting.ledger
        self.unpriced_calls = UnpricedCalls(self.ledger, self._count_late_dollars, log)
        self.active_requests = 0
        self.received_requests = 0
        self.stopped_requests = 0  # while they waited: the gateway stopped
        self.policies = PolicyTable(settings.book, journal, self.clock.now, log)
        self.fleet = GatewayFleet(self, log)
        self._last_error = ""
        self._unpriced_models: set[str] = set()  # that a warning has named
        self._log = log

    def reload(self, settings: GatewaySettings) -> None:
        """Replace the settings; requests in flight keep the settings they started with.

        Raise ConfigError, and change nothing, if an upstream cannot be used.
        """
        check_keys(settings.upstreams)
        table = UpstreamTable(settings.upstreams, self.upstream_table)
        self.client.reload(settings)
        self.settings, self.upstream_table = settings, table
        self._upstreams = self._make_upstreams()
        self.host_names = settings.host_names()
        self.sessions.ttl_seconds = settings.sticky_seconds
        self.route_probe.seconds = settings.probe_seconds
        self.ledger.prices.clear()
        if self.journal is None:
            self.ledger.limits = settings.budgets
        self.policies.use_book(settings.book)
        self._unpriced_models.clear()
        self._request_listed_prices()

    def _make_upstreams(self) -> Upstreams:
        """Build the shared inputs of proxied calls; add the loop guard to the detectors if it is enabled."""
        settings, self.detectors = self.settings, self._extra_detectors
        if settings.loop_guard != "off":
            from rung.gateway.loop_guard import LoopGuard

            self.detectors = (*self._extra_detectors, LoopGuard(settings.loop_guard, settings.loop_settings))
        return Upstreams(
            client=self.client,
            settings=settings,
            table=self.upstream_table,
            inspect=self.run_detectors if self.detectors else None,
            references=self.references,
            health=self.health,
        )

    async def load(self) -> None:
        """Load spend and operator settings from the journal before the first request, and ask for the listed prices."""
        self._request_listed_prices()
        self.ledger.prices.start()
        await self.fleet.exchange()
        try:
            await self._refresh()
        except Exception as error:  # noqa: BLE001  # a failing store must not prevent startup
            self._log(f"rung gateway: {type(error).__name__}: {error}")

    def _request_listed_prices(self) -> None:
        """Look prices and context windows of the policy's models up before they are called, so that no call is booked late."""
        prices, upstreams = self.ledger.prices, self.settings.upstreams
        for model in self.policy("").models if upstreams else ():
            prices.request(self.upstream_table.find(model.name, upstreams[0]).model, "", self.clock.now())

    def _warn_of_unpriced_fallbacks(self) -> None:
        """Log the listed models that calls with a spend limit never reach, because nobody knows their price."""
        is_limited = self.ledger.limits.has_limits or any(key.dollars is not None for key in self.settings.keys)
        upstreams, prices = self.settings.upstreams, self.ledger.prices
        for model in self.policy("").models if is_limited and upstreams else ():
            name = self.upstream_table.find(model.name, upstreams[0]).model
            is_priced = bool(model.cost) or prices.price(name, self.settings.prices) is not None
            if is_priced or not prices.is_unlisted(name) or model.name in self._unpriced_models:
                continue
            self._unpriced_models.add(model.name)
            self._log(
                f"rung gateway: warning: the price of model {model.name!r} is unknown, so calls with a spend limit do not use"
                f" it. Check its name, or set `input` and `output` in [gateway.prices.{name!r}]"
            )

    async def background_loop(self, *more: Callable[[], Awaitable[None]]) -> None:
        """Look up prices, refresh spend and operator settings from the journal, and do `more`, forever."""
        while True:
            await asyncio.sleep(_BACKGROUND_INTERVAL_SECONDS)
            try:
                self.ledger.prices.start()
                self.unpriced_calls.book(self.clock.now())
                self._warn_of_unpriced_fallbacks()
                if self.journal is not None:
                    self.accounting.flush(self.clock.now())
                await self._refresh()
                for task in more:
                    await task()
                self._last_error = ""
            except Exception as error:  # noqa: BLE001  # a failed refresh must not affect requests
                self._log_once(f"rung gateway: {type(error).__name__}: {error}")

    def _log_once(self, text: str) -> None:
        """Log the error of a background task, unless it is the one that was logged last and has not ended since."""
        if text != self._last_error:
            self._log(text)
        self._last_error = text

    async def _refresh(self) -> None:
        await self.ledger.refresh(self.settings, self.clock.now())
        if self.journal is not None:
            await self.references.load()
            await self.policies.refresh()

    async def close(self) -> None:
        """Close the connections and flush pending spend to the journal."""
        await self.client.close()
        await self.call_recording.flush()
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_LOOKUP_SECONDS):
                await self.ledger.prices.look_up()
        self.unpriced_calls.book(self.clock.now(), at_end=True)
        if self.journal is not None:
            await asyncio.to_thread(self._close_journal, self.journal)

    def _count_late_dollars(self, route: Route, dollars: float) -> None:
        self.accounting.count_dollars(dollars)
        self.health.add_cost(route, dollars)

    def _close_journal(self, journal: Journal) -> None:
        self.fleet.leave()
        self.accounting.flush(self.clock.now())
        try:
            self.ledger.flush(self.clock.now())
        except (StoreError, StoreUnavailable) as error:
            self._log(f"rung gateway: the spending of keys since the last second could not be recorded: {error}")
        journal.close()

    # -- for one request ---------------------------------------------------------------------------------

    def new_proxied_call(self, inbound: InboundRequest, send: Send, spending: CallSpending) -> ProxiedCall:
        """Create the proxied call of a request, with the current settings."""
        proxied = ProxiedCall(
            self._upstreams,
            inbound,
            send,
            outbound_for(
                self.upstream_table,
                inbound,
                Target(inbound.upstream, inbound.upstream_model),
                inbound.body,
                is_last_resort=self._has_no_fallback(inbound),
            ),
            spending,
        )
        proxied.attempt_seconds = self.policy(inbound.project).attempt_seconds
        return proxied

    def _has_no_fallback(self, inbound: InboundRequest) -> bool:
        """Return whether neither another model nor another upstream is configured."""
        one_upstream = len(self.settings.of_wire(inbound.wire.upstream)) <= 1
        return one_upstream and all(model.name == inbound.model for model in self.policy(inbound.project).models)

    def policy(self, project: str) -> Policy:
        """Return the policy of a project."""
        return self.policies.get(project)

    def policy_for(self, inbound: InboundRequest, settings: GatewaySettings, spent: float) -> Policy:
        """Return the policy of a request's project, limited to models and upstreams that can serve the request.

        `spent`: US dollars that the request's first attempt has cost.
        """
        policy, table = self.policy(inbound.project), self.upstream_table
        models = with_windows(table.usable_models(policy.models, inbound), partial(self._listed_window, inbound))
        models = with_enough_room(models, inbound.model, inbound.estimated_tokens())
        # An upstream that the model list names has the models that it is named with, and no others.
        named = {model.provider for model in models}
        upstreams = tuple(
            upstream
            for upstream in settings.of_wire(inbound.wire.upstream)
            if not table.loses_history(Target(upstream, inbound.upstream_model), inbound)
        )
        agents = tuple(each.name for each in upstreams if each is inbound.upstream or each.name not in named)
        same_account = tuple(
            upstream.name for upstream in upstreams if upstream.account in ("", inbound.upstream.account)
        )
        policy = policy.replace(models=models, agents=agents if len(agents) > 1 else (), report="")
        policy = with_accounts(policy, same_account)
        return self.ledger.apply_to_policy(
            policy,
            inbound,
            settings,
            spent,
            self.clock.now(),
            lambda model: table.find(model, inbound.upstream).model,
        )

    def _listed_window(self, inbound: InboundRequest, model: str) -> int | None:
        """Return the context window of a model by the price list; None if it is unknown or the client asks for a longer one."""
        target = self.upstream_table.find(model, inbound.upstream)
        betas = inbound.headers.get(b"anthropic-beta", b"").decode("latin-1")
        is_longer = has_same_api(target.upstream, inbound) and asks_long_context({}, betas)
        return None if is_longer else self.ledger.prices.window(target.model)

    def journal_for(self, inbound: InboundRequest, pinned: str) -> ProjectJournal | None:
        """Return the journal, scoped to a request: its project, the models of its key, and the model of its session."""
        if self.journal is None:
            return None
        project = inbound.project or self.journal.project
        return ProjectJournal(self.journal, project, inbound.allowed_models, pinned)

    def breaker_key(self, inbound: InboundRequest, model: str, agent: str) -> str:
        """Return the circuit's key: upstream, model and credential, because quotas belong to a credential."""
        return f"{agent}/{model}/{inbound.caller}"

    def run_detectors(
        self, inbound: InboundRequest, text: str | None, calls: Sequence[tuple[str, object]] = ()
    ) -> DetectorResult | None:
        """Run the detectors on a request (`text` is None) or on the response to it."""
        view = RequestView(
            session_id(inbound),
            inbound.project,
            inbound.wire.name,
            inbound.model,
            inbound.parsed(),
            self.policy(inbound.project),
        )
        return run_detectors(self.detectors, view, None if text is None else ResponseView(text, calls), self._log)

    def incident_context_for(self, inbound: InboundRequest) -> ev.IncidentContext:
        """Return the incident context of a successful request."""
        return self.policies.incident_context(inbound.project, inbound.session)
