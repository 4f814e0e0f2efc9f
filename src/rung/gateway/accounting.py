"""Accounting of finished calls: Prometheus metrics, spend, spans, and journal entries of successful calls."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain import events as ev
from rung.core.domain.request import Request
from rung.engine.loop.ids import INCIDENT_IDS
from rung.gateway.spending.ledger import SpendLedger
from rung.gateway.telemetry import Telemetry

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.core.domain.incident import Incident
    from rung.core.domain.outcome import Outcome
    from rung.core.policy.policy import Policy
    from rung.gateway.inbound_request import InboundRequest
    from rung.gateway.settings import GatewaySettings
    from rung.store.journal.journal import Journal

    _Payer = tuple[ev.IncidentContext, str, str]  # with the model and the upstream

_COUNTER_HELP: Final = {
    "rung_requests_total": "Requests by wire and outcome.",
    "rung_attempts_total": "Upstream attempts.",
    "rung_failures_total": "Failed attempts by kind.",
    "rung_rungs_total": "Rungs taken.",
    "rung_tokens_total": "Input and output tokens, as reported by the upstreams.",
    "rung_dollars_total": "Spend in US dollars, by list price.",
    "rung_probes_total": "Requests that tried the model their session had left, by result.",
    "rung_joined_total": "Requests coalesced with an identical request in flight.",
    "rung_unwritten_total": "Successful calls beyond journaled_per_second: counted here, not journaled.",
    "rung_cancelled_total": "Requests cancelled because the client disconnected.",
}


class Metrics:
    """Counters by name and labels."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()

    def add(self, name: str, labels: str = "", amount: float = 1) -> None:
        """Add to a counter; `labels` is in Prometheus syntax."""
        self.counts[name, labels] += amount  # type: ignore[assignment]  # dollars are fractional

    def text(self, **gauges: float) -> str:
        """Return all counters and these gauges in the Prometheus text format."""
        lines = []
        for name, help_text in _COUNTER_HELP.items():
            lines += [f"# HELP {name} {help_text}", f"# TYPE {name} counter"]
            samples = sorted((labels, value) for (counter, labels), value in self.counts.items() if counter == name)
            lines += [f"{name}{{{labels}}} {value}" if labels else f"{name} {value}" for labels, value in samples]
        for name, value in gauges.items():
            lines += [f"# TYPE rung_{name} gauge", f"rung_{name} {value}"]
        return "\n".join(lines) + "\n"


class Accounting:
    """Accounting of one gateway. The engine itself journals failures and decisions, before it acts on them."""

    def __init__(self, journal: Journal | None, log: Callable[[str], object], *, spans: bool) -> None:
        self.metrics = Metrics()
        self.ledger = SpendLedger(log, journal)
        self._journal = journal
        self._telemetry = Telemetry() if spans else None
        self._second = self._journaled = 0
        self._unjournaled: dict[_Payer, float] = {}

    def record_success(
        self,
        inbound: InboundRequest,
        context: ev.IncidentContext,
        started_at: float,
        ended_at: float,
        tokens: tuple[int, int],
        settings: GatewaySettings,
    ) -> Callable[[float], None]:
        """Record a call whose first attempt succeeded; return what journals it with its cost in US dollars."""
        self.metrics.add("rung_requests_total", f'wire="{inbound.wire.name}",outcome="succeeded"')
        self.metrics.add("rung_attempts_total")
        if self._telemetry is not None:
            self._telemetry.record_span(
                inbound, started_at, ended_at, model=inbound.model, attempts=1, outcome="succeeded", tokens=tokens
            )
        payer = (context, inbound.model, inbound.upstream.name)
        return partial(self._journal_success, payer, started_at, ended_at, settings.journaled_per_second)

    def record_recovery(
        self,
        inbound: InboundRequest,
        incident: Incident,
        outcome: Outcome[Any],
        policy: Policy,
        attempts: int,
        tokens: tuple[int, int],
    ) -> None:
        """Record a call that needed recovery, whether or not it succeeded."""
        self.metrics.add("rung_requests_total", f'wire="{inbound.wire.name}",outcome="{incident.status}"')
        self.metrics.add("rung_attempts_total", "", attempts)
        for failure in incident.failures:
            self.metrics.add("rung_failures_total", f'kind="{failure.kind}"')
        for rung in incident.path:
            self.metrics.add("rung_rungs_total", f'rung="{policy.ladder.rungs[rung].name}"')
        if self._telemetry is not None:
            self._telemetry.record_span(
                inbound,
                incident.opened_at,
                incident.opened_at + outcome.seconds,
                model=incident.request.model if incident.request is not None else inbound.model,
                attempts=attempts,
                outcome=str(incident.status),
                tokens=tokens,
                events=outcome.events,
            )

    def count_usage(self, tokens: tuple[int, int], dollars: float) -> None:
        """Count the tokens and the cost of an attempt."""
        self.metrics.add("rung_tokens_total", 'direction="in"', tokens[0])
        self.metrics.add("rung_tokens_total", 'direction="out"', tokens[1])
        self.count_dollars(dollars)

    def count_dollars(self, dollars: float) -> None:
        """Count a cost."""
        if dollars:
            self.metrics.add("rung_dollars_total", "", dollars)

    def _journal_success(
        self, payer: _Payer, started_at: float, ended_at: float, per_second: int, dollars: float
    ) -> None:
        """Journal a successful call; beyond `journaled_per_second` only add up its cost."""
        if self._journal is None:
            return
        second = int(ended_at)
        if second > self._second:  # a call may wait for its price
            self.flush(ended_at)
            self._second, self._journaled = second, 0
        self._journaled += 1
        if self._journaled <= per_second:
            self._journal.append_lazy(_success_events, *payer, started_at, ended_at, dollars)
            return
        self.metrics.add("rung_unwritten_total")
        self.add_unjournaled(*payer, dollars)

    def charge(self, incident: str, events: int, now: float, dollars: float) -> None:
        """Journal the cost of an incident that ended after so many events, before the price was known."""
        if self._journal is not None and dollars:
            self._journal.append(incident, events, [ev.Charged(now, dollars)])

    def add_unjournaled(self, context: ev.IncidentContext, model: str, upstream: str, dollars: float) -> None:
        """Add the cost of a call that is not journaled itself."""
        if self._journal is not None and dollars:
            payer = (context, model, upstream)
            self._unjournaled[payer] = self._unjournaled.get(payer, 0.0) + dollars

    def flush(self, now: float) -> None:
        """Journal the cost of calls that were not journaled, one entry per context, model and upstream."""
        if self._journal is None:
            return
        unjournaled, self._unjournaled = self._unjournaled, {}
        for payer, dollars in unjournaled.items():
            self._journal.append_lazy(_success_events, *payer, now, now, dollars)


def _success_events(
    context: ev.IncidentContext, model: str, agent: str, started_at: float, ended_at: float, dollars: float
) -> list[ev.Event]:
    """Build the events of a successful call; runs in the journal's writer thread, off the hot path."""
    opened = ev.Opened(started_at, INCIDENT_IDS.next(), context, Request(model=model, agent=agent))
    return [opened, ev.AttemptSucceeded(ended_at, ended_at - started_at, dollars)]
