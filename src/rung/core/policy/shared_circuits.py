"""Circuits that the processes of a fleet share: what one has learned about a service holds for all.

The table in the database has a circuit only while it is open, and for a while after it was closed. One process at a time
may probe it. Processes that want to call the service claim the probe; the one whose probe failed last claims it last, so
that a process with a fault of its own does not keep a circuit open for all. Times are the database's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

CLAIM_SECONDS: Final = 5.0  # a claim that is neither used nor renewed ends
EARLY_SECONDS: Final = 2.0  # before a probe is due, all but the last prober may claim it
CLOSED_SECONDS: Final = 60.0  # for which all are told that a circuit was closed
OPEN_SECONDS: Final = 120.0  # after which an open circuit is forgotten that nobody wants to use
MAX_CIRCUITS: Final = 1_000  # clients choose the names of models; the oldest are forgotten


class SharedCircuit(NamedTuple):
    """A circuit as all processes know it; `at`: when it was opened or closed last, `by` this holder."""

    is_open: bool
    at: float
    by: str
    probe_at: float = 0.0  # when the next probe is due
    prober: str = ""  # the holder that may probe
    claimed_until: float = 0.0
    wanted_at: float = 0.0  # when a process last wanted to use it


@dataclass(frozen=True, slots=True, kw_only=True)
class CircuitReport:
    """Report of a process: changes of circuits since its last one, and the circuits that it wants to use or probes now."""

    opened: Mapping[str, float]  # seconds until a probe is due
    closed: Collection[str] = ()
    wanted: Collection[str] = ()
    probing: Collection[str] = ()

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to tell."""
        return not (self.opened or self.closed or self.wanted or self.probing)


def merge_circuits(
    circuits: Mapping[str, SharedCircuit], holder: str, report: CircuitReport, now: float
) -> dict[str, SharedCircuit]:
    """Return the circuits after the report of a holder; those that nobody needs are forgotten."""
    merged = {key: each for key, each in circuits.items() if not _is_outdated(each, now)}
    for key in report.closed:
        if key in merged and merged[key].is_open:
            merged[key] = SharedCircuit(is_open=False, at=now, by=holder)
    for key, probe_in in report.opened.items():
        merged[key] = _after_opening(merged.get(key), holder, probe_in, now)
    for key in (*report.probing, *report.wanted):
        if key in merged and merged[key].is_open:
            merged[key] = _after_want(merged[key], holder, now, is_probing=key in report.probing)
    return dict(sorted(merged.items(), key=lambda item: item[1].at)[-MAX_CIRCUITS:])


def _is_outdated(circuit: SharedCircuit, now: float) -> bool:
    if not circuit.is_open:
        return now > circuit.at + CLOSED_SECONDS
    return now > max(circuit.at, circuit.probe_at, circuit.wanted_at) + OPEN_SECONDS


def _after_opening(before: SharedCircuit | None, holder: str, probe_in: float, now: float) -> SharedCircuit:
    """Return a circuit that a holder opened. A second process that opens it does not shorten its pause."""
    probe_at = now + max(0.0, probe_in)
    if before is not None and before.is_open and before.prober not in ("", holder) and now < before.claimed_until:
        return before._replace(wanted_at=now)  # the probe that is under way decides
    if before is not None and before.is_open and before.prober != holder:
        probe_at = max(probe_at, before.probe_at)
    return SharedCircuit(is_open=True, at=now, by=holder, probe_at=probe_at, wanted_at=now)


def _after_want(circuit: SharedCircuit, holder: str, now: float, *, is_probing: bool) -> SharedCircuit:
    """Return a circuit that a holder wants to use: with its claim to the probe, if nobody else has one."""
    circuit = circuit._replace(wanted_at=now)
    is_free = circuit.prober in ("", holder) or now >= circuit.claimed_until
    due_at = circuit.probe_at if circuit.by == holder else circuit.probe_at - EARLY_SECONDS
    if is_free and (is_probing or now >= due_at):
        return circuit._replace(prober=holder, claimed_until=now + CLAIM_SECONDS)
    return circuit
