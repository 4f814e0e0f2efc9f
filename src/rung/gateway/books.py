"""What is written down about calls once they are over: counts, costs, spans, and the journal for good ones."""

from __future__ import annotations

from itertools import count
from os import urandom
from typing import TYPE_CHECKING, Any, Final

from rung.core import events as ev
from rung.core.request import Request
from rung.gateway.costs import Costs
from rung.gateway.metrics import Metrics
from rung.gateway.telemetry import Telemetry

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.engine.run import Run
    from rung.gateway.call import Call
    from rung.gateway.exchange import Exchange
    from rung.gateway.settings import Settings

_PROCESS: Final = urandom(4).hex()
_NUMBERS: Final = count(1)


def next_name() -> str:
    """What an incident is called."""
    return f"{_PROCESS}-g{next(_NUMBERS)}"


class Books:
    """One for a gateway. Failures and decisions are the engine's to write down, before they are acted on."""

    def __init__(self, journal: Any, tell: Callable[[str], object], *, spans: bool) -> None:
        self.metrics = Metrics()
        self.costs = Costs(tell, journal)
        self._journal = journal
        self._telemetry = Telemetry() if spans else None
        self._second = self._written = 0
        self._owed: dict[tuple[ev.Terms, str, str], float] = {}

    def went_well(self, exchange: Exchange, terms: ev.Terms, began: float, ended: float, settings: Settings) -> None:
        """A call went well at once."""
        call = exchange.call
        self.metrics.add("rung_requests_total", f'wire="{call.wire.name}",outcome="succeeded"')
        self.metrics.add("rung_attempts_total")
        dollars = self.account(exchange, call.model, settings, ended)
        if self._telemetry is not None:
            told = {"model": call.model, "attempts": 1, "outcome": "succeeded", "tokens": exchange.tokens}
            self._telemetry.told(call, began, ended, **told)  # type: ignore[arg-type]  # each is what it should be
        if self._journal is not None:
            self._write_down(call, terms, began, ended, dollars, settings)

    def concluded(self, exchange: Exchange, run: Run, now: float) -> None:
        """A call has come to the end of its recovery."""
        call, incident = exchange.call, run.incident
        self.metrics.add("rung_requests_total", f'wire="{call.wire.name}",outcome="{incident.status}"')
        self.metrics.add("rung_attempts_total", "", exchange.attempts)
        for failure in incident.failures:
            self.metrics.add("rung_failures_total", f'kind="{failure.kind}"')
        for rung in incident.path:
            self.metrics.add("rung_rungs_total", f'rung="{run.policy.ladder.rungs[rung].name}"')
        if self._telemetry is not None:
            self._telemetry.told(
                call,
                incident.opened_at,
                now,
                model=incident.request.model if incident.request is not None else call.model,
                attempts=exchange.attempts,
                outcome=str(incident.status),
                tokens=exchange.tokens,
                events=run.log,
            )

    def account(self, exchange: Exchange, model: str, settings: Settings, now: float) -> float:
        """Count the tokens of an answer, and what they cost; the dollars."""
        usage, exchange.usage = exchange.usage, {}
        if not usage:
            return 0.0
        tokens = exchange.tokens = exchange.call.wire.bodies.tokens(usage)
        self.metrics.add("rung_tokens_total", 'direction="in"', tokens[0])
        self.metrics.add("rung_tokens_total", 'direction="out"', tokens[1])
        dollars = self.costs.add(exchange.call, model, tokens, settings, now)
        if dollars:
            self.metrics.add("rung_dollars_total", "", dollars)
        return dollars

    def _write_down(
        self, call: Call, terms: ev.Terms, began: float, ended: float, dollars: float, settings: Settings
    ) -> None:
        """Have a good call written down; of very many in one second, of those beyond the limit only what they cost."""
        second = int(ended)
        if second != self._second:
            self.settle(ended)
            self._second, self._written = second, 0
        self._written += 1
        if self._written <= settings.journaled_per_second:
            self._journal.append_later(_good, terms, call.model, call.upstream.name, began, ended, dollars)
            return
        self.metrics.add("rung_unwritten_total")
        if dollars:
            whose = (terms, call.model, call.upstream.name)
            self._owed[whose] = self._owed.get(whose, 0.0) + dollars

    def settle(self, now: float) -> None:
        """Write down what calls have cost that were only counted, in one row for each who pays: no dollar is lost."""
        owed, self._owed = self._owed, {}
        for whose, dollars in owed.items():
            self._journal.append_later(_good, *whose, now, now, dollars)


def _good(terms: ev.Terms, model: str, agent: str, began: float, ended: float, dollars: float) -> list[ev.Event]:
    """The events of a call that went well; made when they are written, in the journal's own thread."""
    opened = ev.Opened(began, next_name(), terms, Request(model=model, agent=agent))
    return [opened, ev.AttemptSucceeded(ended, ended - began, dollars)]
