"""The gateway: what all its requests share, and the way of one through it."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import orjson

from rung.core import events as ev
from rung.core.breaker import BreakerSettings, Circuit, Vote
from rung.core.budget import RetryBudget
from rung.core.compaction import SUMMARISE
from rung.core.errors import AttemptError
from rung.core.ladder import Action
from rung.core.outcome import GOOD
from rung.core.presets import CALL
from rung.engine.recover import acarry, equipment
from rung.engine.run import SYSTEM_CLOCK, Run
from rung.engine.shared import Breakers
from rung.gateway.books import Books, next_name
from rung.gateway.call import NotJson, passed_headers
from rung.gateway.changes import CHARACTERS_PER_TOKEN, CannotChange, Changes
from rung.gateway.joining import Joining
from rung.gateway.seam import Answered, Passing, look
from rung.gateway.sessions import Sessions
from rung.gateway.upstream import Pool, held_key
from rung.wiring.policies import Policies

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rung.core.failures import Failure
    from rung.core.policy import Policy
    from rung.core.request import Request
    from rung.engine.session import Session
    from rung.gateway.answer import Answer
    from rung.gateway.call import Call
    from rung.gateway.exchange import Exchange
    from rung.gateway.seam import Detector, Notice
    from rung.gateway.settings import Settings, Upstream

# Quick to close again: behind a gateway there is always somebody who wants to know.
BREAKER: Final = BreakerSettings(rate=0.75, minimum=30, window=20.0, pause=3.0, probe=60.0)
RETRY_PRICE: Final = 2
RESUMES: Final = 10  # as many as repeats: at 30 % of calls failing, six would still lose one stream in some thousands
_SUMMARY_TOKENS: Final = 2_000
_NOW_AND_THEN: Final = 1.0
_CLOSED: Final = Circuit.CLOSED
_BREAKERS_LIMIT: Final = 10_000


class Gateway:
    """What outlives one request: connections, circuits, the retry budget, sessions, counts, the journal."""

    def __init__(
        self,
        settings: Settings,
        journal: Any = None,
        detectors: Sequence[Detector] = (),
        tell: Callable[[str], object] = print,
    ) -> None:
        self.settings = settings
        self.journal = journal
        self._given = tuple(detectors)
        self.detectors = self._detectors(settings)
        self.pool = Pool(settings)
        self.breakers = Breakers(BREAKER)
        self.retry_budget = RetryBudget(price=RETRY_PRICE)
        self.sessions = Sessions(settings.sticky_seconds)
        self.joining = Joining()
        self.books = Books(journal, tell, spans=settings.otel)
        self.metrics = self.books.metrics
        self.costs = self.books.costs
        self.running = 0
        self._tell = tell
        self.clock = SYSTEM_CLOCK
        self._policies: dict[str, Policy] = {}
        self._terms: dict[str, ev.Terms] = {}

    def use(self, settings: Settings) -> None:
        """Go on with other settings; requests that are under way keep theirs."""
        self.settings = settings
        self.detectors = self._detectors(settings)
        self.sessions.seconds = settings.sticky_seconds
        self.costs.forget_prices()
        if self.journal is None:
            self.costs.allowance = settings.budgets
        self._policies.clear()
        self._terms.clear()

    def _detectors(self, settings: Settings) -> tuple[Detector, ...]:
        """Those that were given, and the loop guard where it is wanted."""
        if settings.loop_guard == "off":
            return self._given
        from rung.gateway.loop_guard import LoopGuard

        return (*self._given, LoopGuard(settings.loop_guard, settings.watching))

    async def begin(self) -> None:
        """Know what there is to know before the first request: what was spent, what people have said."""
        try:
            await self._read()
        except Exception as error:  # noqa: BLE001  # a store in trouble must not keep us from serving
            self._tell(f"rung gateway: {type(error).__name__}: {error}")

    async def attend(self) -> None:
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
            self.sessions.told(await asyncio.to_thread(_models_told, self.journal))
            self._policies.update(await asyncio.to_thread(self._set_in_the_service, list(self._policies)))

    def _set_in_the_service(self, projects: list[str]) -> dict[str, Policy]:
        """The policies of these projects with what people have set over the file."""
        policies = Policies(self.journal, self.settings.book)
        return {project: _patient(policies.effective(project, "gateway")) for project in projects}

    async def close(self) -> None:
        """Close the connections, and write down what is left."""
        await self.pool.close()
        if self.journal is not None:
            await asyncio.to_thread(self._close_books)

    def _close_books(self) -> None:
        self.books.settle(self.clock.now())
        self.costs.settle(self.clock.now())
        self.journal.close()

    # -- lookups -----------------------------------------------------------------------------------------

    def upstream(self, name: str) -> Upstream:
        """The upstream of this name."""
        return next(upstream for upstream in self.settings.upstreams if upstream.name == name)

    def headers_for(self, call: Call, upstream: Upstream) -> list[tuple[bytes, bytes]]:
        """The headers of a call, with the key for another upstream."""
        return passed_headers(list(call.headers.items()), held_key(upstream))

    def policy(self, project: str) -> Policy:
        """The policy of a project."""
        policy = self._policies.get(project)
        if policy is None:
            if len(self._policies) > _BREAKERS_LIMIT:
                self._policies.clear()
            policy = self._policies[project] = _patient(self.settings.book.pick(project=project, tool="gateway"))
        return policy

    def policy_for(self, call: Call) -> Policy:
        """The same with only those models and upstreams that could take this very call."""
        policy = self.policy(call.project)
        of_wire = {upstream.name for upstream in self.settings.of_wire(call.wire.upstream)}
        tokens = len(call.body) // CHARACTERS_PER_TOKEN
        models = tuple(
            model
            for model in policy.models
            if (not model.provider or model.provider in of_wire)
            and (not model.window or model.window > tokens)
            and (not call.models or model.name in call.models)
        )
        agents = tuple(upstream.name for upstream in self.settings.of_wire(call.wire.upstream))
        policy = policy.but(models=models, agents=agents if len(agents) > 1 else ())
        return self.costs.within(policy, call, self.settings, self.clock.now())

    def is_last(self, exchange: Exchange) -> bool:
        """Is there nobody else to turn to than the one that is asked now?"""
        if exchange.changes is not None and exchange.changes.handed_over:
            return True
        policy = self.policy(exchange.call.project)
        return len(policy.models) <= 1 and len(self.settings.of_wire(exchange.call.wire.upstream)) <= 1

    def breaker_key(self, call: Call, model: str, agent: str) -> str:
        """One circuit for each upstream, model and purse: what one client may not have another may."""
        return f"{agent}/{model}/{call.credential:x}"

    def look(self, call: Call, text: str | None, calls: Sequence[tuple[str, object]] = ()) -> Notice | None:
        """What the detectors find in a request, or in what was answered to it."""
        passing = Passing(
            self.sessions.name(call), call.project, call.wire.name, call.model, call.parsed(), self.policy(call.project)
        )
        return look(self.detectors, passing, None if text is None else Answered(text, calls), self._tell)

    # -- one request -------------------------------------------------------------------------------------

    async def handle(self, call: Call, exchange: Exchange) -> Exchange:
        """Take a call through to its end."""
        now = self.clock.now()
        session = self.sessions.known(call, now)
        key = self.breaker_key(call, call.model, call.upstream.name)
        breaker = self.breakers.get(key)
        pinned = session is not None and session.model != call.model
        notice = self._look(exchange) if self.detectors else None
        if notice is not None and notice.evidence is not None:
            await self._recover(exchange, AttemptError.of(notice.evidence), now, session)
            return exchange
        nudge = notice.nudge if notice is not None else ""
        if pinned or nudge or breaker.circuit is not _CLOSED:
            await self._recover(exchange, None, now, session, nudge)
            return exchange
        try:
            answer = await exchange.attempt(None)
        except Exception as error:  # noqa: BLE001  # an attempt's failure is what we are for
            await self._recover(exchange, error, now, session)
            return exchange
        ended = self.clock.now()
        breaker.ended(None, now, ended, Vote.GOOD)
        if self.retry_budget.low:
            self.retry_budget.credit()
        if answer is not None:
            await exchange.reply(answer)
        self.books.went_well(exchange, self._terms_of(call), now, ended, self.settings)
        return exchange

    def _look(self, exchange: Exchange) -> Notice | None:
        """What the detectors find in a request, its warning noted; what is no JSON is the upstream's to refuse."""
        try:
            notice = self.look(exchange.call, None)
        except NotJson:
            return None
        if notice is not None and notice.warning:
            exchange.notes["warning"] = notice.warning
        return notice

    async def _recover(
        self, exchange: Exchange, error: Exception | None, began: float, session: Session | None, nudge: str = ""
    ) -> None:
        """Take a call up the ladder, from its first failure or from its beginning."""
        call = exchange.call
        session = session or self.sessions.get(call, began)
        run = self._run(exchange, session, began, nudge)
        failure: Failure | None = None
        decision: ev.Decision | None = None
        if error is not None:
            run.breaker = self.breakers.get(run.breaker_key)
            failure = run.failed(error)
            exchange.notes["incident"] = run.incident.id
            decision = run.decide(failure)
        exchange.notes["incident"] = run.incident.id
        await acarry(run, self._attempt_of(exchange, run), failure, decision)
        await self._conclude(exchange, run)

    def _attempt_of(self, exchange: Exchange, run: Run) -> Any:
        """The engine's attempt: it says in the headers what has been done before it."""

        async def attempt(request: Request) -> Answer | None:
            exchange.notes.update(_done(run, exchange.call))
            answer = await exchange.attempt(request)
            run.spent += self.books.account(exchange, request.model, self.settings, self.clock.now())
            return answer

        return attempt

    def _run(self, exchange: Exchange, session: Session, began: float, nudge: str = "") -> Run:
        call = exchange.call
        policy = self.policy_for(call)
        changes = exchange.changes = Changes(call, policy, exchange.said, taken=exchange.taken)
        request = changes.first
        if session.model and session.model != call.model:
            request = changes.on_model(session.model)
        if nudge:
            request = changes.nudged(request, nudge)
        if self.settings.summary_model:
            changes.summarise = partial(self._summarise, call)
        run = Run()
        ports = {
            "changes": changes.by_action(),
            "session": session,
            "journal": self.journal,
            "breakers": self.breakers,
            "retry_budget": self.retry_budget,
        }
        run.__dict__.update(equipment(policy, ports, idempotent=False))
        run.terms = run.terms._replace(project=call.project or run.terms.project)
        run.breaker_key = self.breaker_key(call, request.model, request.agent)
        changes.moved = lambda made: setattr(run, "breaker_key", self.breaker_key(call, made.model, made.agent))
        run.open(request, began, next_name())
        return run

    async def _summarise(self, call: Call, body: dict[str, Any]) -> dict[str, Any]:
        """The body with its middle summarised by the model that is there for it."""
        bodies, settings = call.wire.bodies, self.settings
        words = SUMMARISE + bodies.between(body)
        asked = orjson.dumps(bodies.asking(settings.summary_model, words, _SUMMARY_TOKENS))
        async with asyncio.timeout(settings.timeouts.total):
            path = call.target.partition("?")[0]
            response = await self.pool.send(call.upstream, "POST", path, call.passed, asked)
            try:
                said = bodies.said(orjson.loads(await response.read())) if response.ok else ""
            finally:
                response.close()
        if not said:
            raise CannotChange(f"{settings.summary_model} gave no summary")
        return bodies.condensed(body, said)

    async def _conclude(self, exchange: Exchange, run: Run) -> None:
        incident, call = run.incident, exchange.call
        good = incident.status in GOOD
        exchange.notes.update(_done(run, call), outcome=str(incident.status))
        self.books.concluded(exchange, run, self.clock.now())
        run.error = None  # its traceback holds the frames that hold the run: a cycle
        if not good:
            assert incident.failure is not None  # noqa: S101  # what did not end well has failed
            await exchange.surface(incident.failure)
            return
        if run.value is not None and not exchange.over:
            await exchange.reply(run.value)

    def _terms_of(self, call: Call) -> ev.Terms:
        """What holds for every call of a project and a session that goes well."""
        session = call.session
        terms = self._terms.get(call.project)
        if terms is None:
            policy = self.policy(call.project)
            rungs = tuple(rung.name for rung in policy.ladder.rungs)
            terms = ev.Terms(policy.ladder.name, policy.name, False, False, rungs, call.project)
            self._terms[call.project] = terms
        return terms._replace(session=session) if session else terms


def _patient(policy: Policy) -> Policy:
    """A stream may break more often than an answer is cut: going on costs little, giving up loses all of it."""
    return policy.with_tries(Action.RESUME, RESUMES) if policy.ladder.name == CALL.name else policy


def _models_told(journal: Any) -> dict[str, str]:
    """The models people have put sessions on, from the service or the command line."""
    rows = journal.read("SELECT topic, body FROM message WHERE topic LIKE 'model/%'")
    told = {topic.removeprefix("model/"): json.loads(body) for topic, body in rows}
    return {session: str(word.get("model", "")) for session, word in told.items() if isinstance(word, dict)}


def _done(run: Run, call: Call) -> dict[str, Any]:
    """What has been done so far, in the words of the headers."""
    incident = run.incident
    climbed = ",".join(run.policy.ladder.rungs[rung].name for rung in incident.path)
    request = incident.request
    other = request is not None and request.model != call.model
    return {
        "path": climbed,
        "failure": str(incident.failure.kind) if incident.failure is not None else "",
        "model": request.model if request is not None and other else "",
    }
