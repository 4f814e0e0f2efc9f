"""State shared by all requests of a gateway: settings, policies, sessions, circuits, connections, accounting."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain import events as ev
from rung.core.policy.breaker import BreakerSettings
from rung.core.policy.budget import RetryBudget
from rung.core.recovery.stream_rules import for_streams
from rung.engine.loop.process_state import BreakerRegistry
from rung.engine.loop.run import SYSTEM_CLOCK
from rung.gateway.accounting import Accounting
from rung.gateway.body_rewriter import CHARACTERS_PER_TOKEN
from rung.gateway.detector_port import RequestView, ResponseView, look
from rung.gateway.http.pool import ConnectionPool
from rung.gateway.outbound import Outbound, Upstreams
from rung.gateway.proxied_call import ProxiedCall
from rung.gateway.request_coalescing import InFlightRequests
from rung.gateway.sessions import SessionTable
from rung.store.messages import session_models
from rung.store.project_scope import ProjectJournal
from rung.wiring.policies import PolicyStore

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rung.core.policy.policy import Policy
    from rung.gateway.detector_port import DetectorResult, GatewayDetector
    from rung.gateway.http.port import UpstreamClient
    from rung.gateway.inbound_request import InboundRequest
    from rung.gateway.response_writer import Send
    from rung.gateway.settings import GatewaySettings

# Quick to close again: behind a gateway there is always somebody who wants to know.
BREAKER: Final = BreakerSettings(rate=0.75, minimum=30, window=20.0, pause=3.0, probe=60.0)
RETRY_PRICE: Final = 2
_NOW_AND_THEN: Final = 1.0
_POLICIES_LIMIT: Final = 10_000


class Gateway:
    """What outlives one request: connections, circuits, the retry budget, sessions, counts, the journal."""

    def __init__(
        self,
        settings: GatewaySettings,
        journal: Any = None,
        detectors: Sequence[GatewayDetector] = (),
        tell: Callable[[str], object] = print,
        client: UpstreamClient | None = None,
    ) -> None:
        self.settings = settings
        self.journal = journal
        self._given = tuple(detectors)
        self.client: UpstreamClient = client or ConnectionPool(settings)
        self._upstreams = self._make_upstreams()
        self.breakers = BreakerRegistry(BREAKER)
        self.retry_budget = RetryBudget(price=RETRY_PRICE)
        self.sessions = SessionTable(settings.sticky_seconds)
        self.joining = InFlightRequests()
        self.books = Accounting(journal, tell, spans=settings.otel)
        self.metrics = self.books.metrics
        self.costs = self.books.costs
        self.running = 0
        self._tell = tell
        self.clock = SYSTEM_CLOCK
        self._policies: dict[str, Policy] = {}
        self._terms: dict[str, ev.IncidentContext] = {}

    def reload(self, settings: GatewaySettings) -> None:
        """Go on with other settings; requests that are under way keep theirs."""
        self.settings = settings
        self._upstreams = self._make_upstreams()
        self.sessions.seconds = settings.sticky_seconds
        self.costs.forget_prices()
        if self.journal is None:
            self.costs.allowance = settings.budgets
        self._policies.clear()
        self._terms.clear()

    def _make_upstreams(self) -> Upstreams:
        """What exchanges need; the loop guard beside the detectors that were given, where it is on."""
        settings, self.detectors = self.settings, self._given
        if settings.loop_guard != "off":
            from rung.gateway.loop_guard import LoopGuard

            self.detectors = (*self._given, LoopGuard(settings.loop_guard, settings.watching))
        return Upstreams(client=self.client, settings=settings, inspect=self.run_detectors if self.detectors else None)

    async def begin(self) -> None:
        """Know what there is to know before the first request: what was spent, what people have said."""
        try:
            await self._read()
        except Exception as error:  # noqa: BLE001  # a store in trouble must not keep us from serving
            self._tell(f"rung gateway: {type(error).__name__}: {error}")

    async def background_loop(self) -> None:
        """What is done beside requests, now and then: prices looked up, the journal read for what others say."""
        while True:
            await asyncio.sleep(_NOW_AND_THEN)
            try:
                await self.costs.look_up()
                await self._read()
            except Exception as error:  # noqa: BLE001  # neither is worth a request
                self._tell(f"rung gateway: {type(error).__name__}: {error}")

    async def _read(self) -> None:
        await asyncio.to_thread(self.costs.read, self.settings, self.clock.now())
        if self.journal is not None:
            self.sessions.told(await asyncio.to_thread(session_models, self.journal))
            self._policies.update(await asyncio.to_thread(self._set_in_the_service, list(self._policies)))

    def _set_in_the_service(self, projects: list[str]) -> dict[str, Policy]:
        """The policies of these projects with what people have set over the file."""
        policies = PolicyStore(self.journal, self.settings.book)
        return {project: for_streams(policies.effective(project, "gateway")) for project in projects}

    async def close(self) -> None:
        """Close the connections, and write down what is left."""
        await self.client.close()
        if self.journal is not None:
            await asyncio.to_thread(self._close_books)

    def _close_books(self) -> None:
        self.books.settle(self.clock.now())
        self.costs.flush(self.clock.now())
        self.journal.close()

    # -- for one request ---------------------------------------------------------------------------------

    def exchange(self, call: InboundRequest, send: Send) -> ProxiedCall:
        """The exchange of a call, with the settings of this moment."""
        return ProxiedCall(
            self._upstreams, call, send, Outbound(call.upstream, call.passed, call.body, self._is_only(call))
        )

    def _is_only(self, call: InboundRequest) -> bool:
        """Whether there is no other model or upstream than those that the call names."""
        one_upstream = len(self.settings.of_wire(call.wire.upstream)) <= 1
        return one_upstream and len(self.policy(call.project).models) <= 1

    def policy(self, project: str) -> Policy:
        """The policy of a project."""
        policy = self._policies.get(project)
        if policy is None:
            if len(self._policies) > _POLICIES_LIMIT:
                self._policies.clear()
            policy = self._policies[project] = for_streams(
                self.settings.book.policy_for(project=project, tool="gateway")
            )
        return policy

    def policy_for(self, call: InboundRequest, settings: GatewaySettings) -> Policy:
        """The policy of a call's project with only those models and upstreams that could take this very call."""
        policy = self.policy(call.project)
        of_wire = {upstream.name for upstream in settings.of_wire(call.wire.upstream)}
        tokens = len(call.body) // CHARACTERS_PER_TOKEN
        models = tuple(
            model
            for model in policy.models
            if (not model.provider or model.provider in of_wire)
            and (not model.window or model.window > tokens)
            and (not call.models or model.name in call.models)
        )
        agents = tuple(upstream.name for upstream in settings.of_wire(call.wire.upstream))
        policy = policy.replace(models=models, agents=agents if len(agents) > 1 else (), report="")
        return self.costs.apply_to_policy(policy, call, settings, self.clock.now())

    def journal_of(self, call: InboundRequest) -> Any:
        """The journal as the project of a call sees it."""
        return ProjectJournal(self.journal, call.project) if self.journal is not None and call.project else self.journal

    def breaker_key(self, call: InboundRequest, model: str, agent: str) -> str:
        """One circuit for each upstream, model and purse: what one client may not have another may."""
        return f"{agent}/{model}/{call.credential:x}"

    def run_detectors(
        self, call: InboundRequest, text: str | None, calls: Sequence[tuple[str, object]] = ()
    ) -> DetectorResult | None:
        """What the detectors find in a request, or in what was answered to it."""
        passing = RequestView(
            self.sessions.name(call), call.project, call.wire.name, call.model, call.parsed(), self.policy(call.project)
        )
        return look(self.detectors, passing, None if text is None else ResponseView(text, calls), self._tell)

    def terms_of(self, call: InboundRequest) -> ev.IncidentContext:
        """What holds for every call of a project and a session that goes well."""
        session = call.session
        terms = self._terms.get(call.project)
        if terms is None:
            policy = self.policy(call.project)
            rungs = tuple(rung.name for rung in policy.ladder.rungs)
            terms = ev.IncidentContext(policy.ladder.name, policy.name, False, False, rungs, call.project)
            self._terms[call.project] = terms
        return terms._replace(session=session) if session else terms
