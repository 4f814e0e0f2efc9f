"""Circuit breakers of one process as part of a fleet's: reports what they learned, and adopts what others learned.

A circuit that another process opened is held open here, and not probed, as long as this process hears of it. When it does
not for `HOLD_SECONDS`, the breakers go on by themselves: then the fleet is out of reach, and each process probes alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.core.policy.breaker import CircuitState
from rung.core.policy.shared_circuits import CircuitReport

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rung.core.policy.breaker import Breaker
    from rung.core.policy.shared_circuits import SharedCircuit
    from rung.engine.loop.process_state import BreakerRegistry

HOLD_SECONDS: Final = 4.0  # for which a circuit is held open without news of it
WANTED_SECONDS: Final = 3.0  # for which a rejected call says that its circuit is wanted
OWN_SECONDS: Final = 60.0  # for which an opening is kept to itself that another process contradicted
_CLOSED: Final = CircuitState.CLOSED


class SharedBreakers:
    """Connects the breakers of a registry with the circuits of a fleet. `collect` and `apply` run in turn, in one thread."""

    def __init__(
        self,
        registry: BreakerRegistry,
        holder: str,
        is_waited_for: Callable[[str], bool] = lambda _key: False,
        on_close: Callable[[str], object] = lambda _key: None,
    ) -> None:
        self._registry, self._holder = registry, holder
        self._is_waited_for = is_waited_for  # whether calls wait for a circuit without asking its breaker
        self._on_close = on_close
        self._generations: dict[str, int] = {}  # of each breaker, as last reported or adopted
        self._shared: dict[str, SharedCircuit] = {}  # open ones, as last heard of
        self._opened: set[str] = set()  # by this process
        self._own_until: dict[str, float] = {}
        self._closings: dict[str, float] = {}  # when each closing that was adopted happened
        self._reported: list[str] = []  # openings of the last report

    def may_probe(self, key: str, now: float) -> bool:
        """Return whether no other process has the probe of a circuit; if one has, note that this one wants it."""
        shared = self._shared.get(key)
        if shared is None or shared.prober == self._holder:
            return True
        breaker = self._registry.get(key)
        if breaker.circuit is _CLOSED or (breaker.circuit is CircuitState.OPEN and now >= breaker.reopens_at):
            return True  # the fleet is out of reach
        breaker.wanted_at = now
        return False

    def collect(self, now: float) -> CircuitReport:
        """Return what this process has learned since it last reported."""
        opened: dict[str, float] = {}
        closed, wanted, probing = [], [], []
        for key, breaker in self._registry.items():
            if breaker.circuit is _CLOSED:
                if key in self._shared and self._generations.get(key) != breaker.generation:
                    closed.append(key)
                continue
            if now < self._own_until.get(key, 0.0):
                continue
            if breaker.circuit is CircuitState.OPEN and self._is_news(key, breaker):
                opened[key] = breaker.reopens_at - now
                self._opened.add(key)
            if breaker.is_probed(now):
                probing.append(key)
            elif breaker.wanted_at > now - WANTED_SECONDS or self._is_waited_for(key):
                wanted.append(key)
            self._generations[key] = breaker.generation
        self._reported = list(opened)
        return CircuitReport(opened=opened, closed=closed, wanted=wanted, probing=probing)

    def fail(self) -> None:
        """Report again next time what the last report said: it was not received."""
        for key in self._reported:
            self._generations.pop(key, None)

    def _is_news(self, key: str, breaker: Breaker) -> bool:
        return key not in self._shared or self._generations.get(key) != breaker.generation

    def apply(self, circuits: Mapping[str, SharedCircuit], database_now: float, now: float) -> None:
        """Adopt the circuits of the fleet; times in them are the database's."""
        for key, circuit in circuits.items():
            if circuit.is_open:
                self._adopt_open(key, circuit, circuit.probe_at - database_now, now)
            elif self._closings.get(key) != circuit.at:
                self._closings[key] = circuit.at
                self._adopt_closed(key, circuit, now)
        for key in self._shared.keys() - circuits.keys():  # forgotten by all: this process goes on by itself
            if self._registry.get(key).circuit is not _CLOSED:
                self._registry.get(key).hold_open(now, 0.0)
        self._shared = {key: circuit for key, circuit in circuits.items() if circuit.is_open}
        self._closings = {key: at for key, at in self._closings.items() if key in circuits}
        self._generations = {key: number for key, number in self._generations.items() if key in self._shared}
        self._own_until = {key: until for key, until in self._own_until.items() if until > now}
        self._opened &= self._shared.keys()

    def _adopt_open(self, key: str, circuit: SharedCircuit, probe_in: float, now: float) -> None:
        breaker = self._registry.get(key)
        if self._has_changed(key, breaker):
            return  # it changed while the circuits were exchanged: that is reported next time
        is_prober = circuit.prober == self._holder
        breaker.hold_open(now, max(0.0, probe_in) if is_prober else max(probe_in, HOLD_SECONDS))
        self._generations[key] = breaker.generation

    def _adopt_closed(self, key: str, circuit: SharedCircuit, now: float) -> None:
        breaker = self._registry.get(key)
        if circuit.by == self._holder or self._has_changed(key, breaker):
            return
        if key in self._opened:
            self._own_until[key] = now + OWN_SECONDS
        breaker.close(now)
        self._on_close(key)

    def _has_changed(self, key: str, breaker: Breaker) -> bool:
        return key in self._generations and self._generations[key] != breaker.generation
