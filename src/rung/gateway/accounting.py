"""Accounting of calls once they are over: counts as Prometheus reads them, costs, spans, the journal of good ones."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain import events as ev
from rung.core.domain.request import Request
from rung.engine.loop.ids import INCIDENT_IDS
from rung.gateway.spend_ledger import SpendLedger
from rung.gateway.telemetry import Telemetry

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.core.domain.incident import Incident
    from rung.core.domain.outcome import Outcome
    from rung.core.policy.policy import Policy
    from rung.gateway.inbound_request import InboundRequest
    from rung.gateway.settings import GatewaySettings

_TYPES: Final = {
    "rung_requests_total": "Requests by wire and how they ended.",
    "rung_attempts_total": "Attempts at upstreams.",
    "rung_failures_total": "Failed attempts by kind.",
    "rung_rungs_total": "Rungs that were climbed to.",
    "rung_tokens_total": "Tokens in and out, as the upstreams count them.",
    "rung_dollars_total": "US dollars, by the price list.",
    "rung_joined_total": "Requests that joined one that was running.",
    "rung_unwritten_total": "Good calls beyond journaled_per_second: counted here, not in the journal.",
    "rung_cancelled_total": "Requests whose client left.",
}


class Metrics:
    """One counter by name and labels."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()

    def add(self, name: str, labels: str = "", much: float = 1) -> None:
        """Count; labels are written as they will be read."""
        self.counts[name, labels] += much  # type: ignore[assignment]  # dollars are counted in parts

    def text(self, **gauges: float) -> str:
        """All of them, as Prometheus reads them."""
        lines = []
        for name, about in _TYPES.items():
            lines += [f"# HELP {name} {about}", f"# TYPE {name} counter"]
            found = sorted((labels, value) for (known, labels), value in self.counts.items() if known == name)
            lines += [f"{name}{{{labels}}} {value}" if labels else f"{name} {value}" for labels, value in found]
        for name, value in gauges.items():
            lines += [f"# TYPE rung_{name} gauge", f"rung_{name} {value}"]
        return "\n".join(lines) + "\n"


class Accounting:
    """One for a gateway. Failures and decisions are the engine's to write down, before they are acted on."""

    def __init__(self, journal: Any, tell: Callable[[str], object], *, spans: bool) -> None:
        self.metrics = Metrics()
        self.costs = SpendLedger(tell, journal)
        self._journal = journal
        self._telemetry = Telemetry() if spans else None
        self._second = self._written = 0
        self._owed: dict[tuple[ev.IncidentContext, str, str], float] = {}

    def record_success(
        self,
        call: InboundRequest,
        terms: ev.IncidentContext,
        began: float,
        ended: float,
        tokens: tuple[int, int],
        dollars: float,
        settings: GatewaySettings,
    ) -> None:
        """Record a call whose first attempt succeeded."""
        self.metrics.add("rung_requests_total", f'wire="{call.wire.name}",outcome="succeeded"')
        self.metrics.add("rung_attempts_total")
        if self._telemetry is not None:
            self._telemetry.told(call, began, ended, model=call.model, attempts=1, outcome="succeeded", tokens=tokens)
        if self._journal is not None:
            self._write_down(call, terms, began, ended, dollars, settings)

    def record_recovery(
        self,
        call: InboundRequest,
        incident: Incident,
        outcome: Outcome[Any],
        policy: Policy,
        attempts: int,
        tokens: tuple[int, int],
    ) -> None:
        """Record a call that was recovered, or could not be."""
        self.metrics.add("rung_requests_total", f'wire="{call.wire.name}",outcome="{incident.status}"')
        self.metrics.add("rung_attempts_total", "", attempts)
        for failure in incident.failures:
            self.metrics.add("rung_failures_total", f'kind="{failure.kind}"')
        for rung in incident.path:
            self.metrics.add("rung_rungs_total", f'rung="{policy.ladder.rungs[rung].name}"')
        if self._telemetry is not None:
            self._telemetry.told(
                call,
                incident.opened_at,
                incident.opened_at + outcome.seconds,
                model=incident.request.model if incident.request is not None else call.model,
                attempts=attempts,
                outcome=str(incident.status),
                tokens=tokens,
                events=outcome.events,
            )

    def record_usage(
        self, call: InboundRequest, model: str, tokens: tuple[int, int], settings: GatewaySettings, now: float
    ) -> float:
        """Count the tokens of an answer, and what they cost; the dollars."""
        self.metrics.add("rung_tokens_total", 'direction="in"', tokens[0])
        self.metrics.add("rung_tokens_total", 'direction="out"', tokens[1])
        dollars = self.costs.add(call, model, tokens, settings, now)
        if dollars:
            self.metrics.add("rung_dollars_total", "", dollars)
        return dollars

    def _write_down(
        self,
        call: InboundRequest,
        terms: ev.IncidentContext,
        began: float,
        ended: float,
        dollars: float,
        settings: GatewaySettings,
    ) -> None:
        """Have a good call written down; of very many in one second, of those beyond the limit only what they cost."""
        second = int(ended)
        if second != self._second:
            self.settle(ended)
            self._second, self._written = second, 0
        self._written += 1
        if self._written <= settings.journaled_per_second:
            self._journal.append_lazy(_good, terms, call.model, call.upstream.name, began, ended, dollars)
            return
        self.metrics.add("rung_unwritten_total")
        if dollars:
            whose = (terms, call.model, call.upstream.name)
            self._owed[whose] = self._owed.get(whose, 0.0) + dollars

    def settle(self, now: float) -> None:
        """Write down what calls have cost that were only counted, in one row for each who pays: no dollar is lost."""
        owed, self._owed = self._owed, {}
        for whose, dollars in owed.items():
            self._journal.append_lazy(_good, *whose, now, now, dollars)


def _good(
    terms: ev.IncidentContext, model: str, agent: str, began: float, ended: float, dollars: float
) -> list[ev.Event]:
    """The events of a call that went well; made when they are written, in the journal's own thread."""
    opened = ev.Opened(began, INCIDENT_IDS.next(), terms, Request(model=model, agent=agent))
    return [opened, ev.AttemptSucceeded(ended, ended - began, dollars)]
