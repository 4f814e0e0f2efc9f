"""Circuit breaker: when it opens, one probe at a time, and what a transition resets."""

from __future__ import annotations

import json
import math
import sys
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Barrier
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from rung.core.domain.errors import ConfigError
from rung.core.policy.breaker import Breaker, BreakerSettings, CallVerdict, CircuitState, Permit

if TYPE_CHECKING:
    from collections.abc import Iterator

SETTINGS = st.builds(
    BreakerSettings,
    rate=st.sampled_from([0.25, 0.5, 0.75, 1.0]),
    minimum=st.integers(1, 5),
    window=st.integers(5, 60),
    pause=st.integers(1, 30),
    probe=st.integers(1, 30),
    slow=st.none() | st.integers(1, 20),
)
VOTES = st.sampled_from(list(CallVerdict))
SMALL = BreakerSettings(minimum=4, window=60, pause=30, probe=20)


def state(breaker: Breaker) -> CircuitState:
    return breaker.circuit


def opened(breaker: Breaker, now: float) -> Breaker:
    """The breaker after as many bad calls as it takes."""
    for _ in range(breaker.settings.minimum):
        breaker.record(None, now, now, CallVerdict.BAD)
    assert state(breaker) is CircuitState.OPEN
    return breaker


def probe_of(breaker: Breaker, now: float) -> Permit:
    permit = breaker.admit(now)
    assert isinstance(permit, Permit)
    assert permit.probe
    return permit


@dataclass
class RunningCall:
    permit: Permit
    began: int


class BreakerMachine(RuleBasedStateMachine):
    """Whatever calls begin and end, in any order and on any clock, the breaker does what this plain account says."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0
        self.offset = 1_000_000
        self.running: list[RunningCall] = []
        self.circuit = CircuitState.CLOSED
        self.calls: list[tuple[int, bool]] = []
        self.reopens_at = 0
        self.probe: RunningCall | None = None

    @initialize(chosen=SETTINGS)
    def build(self, chosen: BreakerSettings) -> None:
        self.settings = chosen
        self.breaker = Breaker(chosen)

    @rule(seconds=st.integers(0, 40))
    def time_passes(self, seconds: int) -> None:
        self.now += seconds

    @rule()
    def call_begins(self) -> None:
        answer = self.breaker.admit(self.now + self.offset)
        wait = self.expected_wait()
        if wait:
            assert answer == wait
            return
        assert isinstance(answer, Permit)
        assert answer.probe is (self.circuit is not CircuitState.CLOSED)
        call = RunningCall(answer, self.now)
        self.running.append(call)
        if answer.probe:
            self.circuit = CircuitState.HALF_OPEN
            self.probe = call

    def expected_wait(self) -> float:
        if self.circuit is CircuitState.OPEN:
            return max(0, self.reopens_at - self.now)
        if self.circuit is CircuitState.HALF_OPEN and self.probe is not None:
            return max(0, self.probe.began + self.settings.probe - self.now)
        return 0

    @precondition(lambda self: self.running)
    @rule(data=st.data(), vote=VOTES)
    def call_ends(self, data: st.DataObject, vote: CallVerdict) -> None:
        call = self.running.pop(data.draw(st.integers(0, len(self.running) - 1)))
        self.breaker.record(call.permit, call.began + self.offset, self.now + self.offset, vote)
        slow = self.settings.slow is not None and self.now - call.began > self.settings.slow
        self.account_for(call, CallVerdict.BAD if slow and vote is CallVerdict.GOOD else vote)

    def account_for(self, call: RunningCall, vote: CallVerdict) -> None:
        if call.permit.probe:
            if call is self.probe:
                self.probe = None
                if vote is not CallVerdict.NEUTRAL:
                    self.turn(CircuitState.OPEN if vote is CallVerdict.BAD else CircuitState.CLOSED)
        elif vote is not CallVerdict.NEUTRAL and self.circuit is CircuitState.CLOSED:
            self.calls.append((self.now, vote is CallVerdict.BAD))
            recent = [bad for at, bad in self.calls if self.now - at <= self.settings.window]
            enough = len(recent) >= self.settings.minimum and sum(recent) / len(recent) >= self.settings.rate
            if vote is CallVerdict.BAD and enough:
                self.turn(CircuitState.OPEN)

    def turn(self, circuit: CircuitState) -> None:
        self.circuit = circuit
        self.calls = []
        self.reopens_at = self.now + int(self.settings.pause)

    @rule(offset=st.integers(1_000_000, 2_000_000_000))
    def another_clock(self, offset: int) -> None:
        saved = json.loads(json.dumps(self.breaker.snapshot(self.now + self.offset)))
        self.offset = offset
        self.breaker = Breaker(self.settings)
        self.breaker.restore(saved, self.now + self.offset)

    @invariant()
    def agrees(self) -> None:
        if hasattr(self, "breaker"):
            assert self.breaker.circuit is self.circuit


BreakerMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)


TestModel = BreakerMachine.TestCase


@given(SETTINGS, st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=250))
def test_opens_exactly_when_the_rate_is_reached(chosen: BreakerSettings, calls: list[tuple[int, bool]]) -> None:
    """It opens with the first bad call at which, of enough recent calls, the rate has failed, and never before."""
    breaker = Breaker(chosen)
    now = 1000
    ring: deque[tuple[int, bool]] = deque(maxlen=100)
    for seconds, bad in calls:
        now += seconds
        breaker.record(None, now, now, CallVerdict.BAD if bad else CallVerdict.GOOD)
        ring.append((now, bad))
        recent = [was_bad for at, was_bad in ring if now - at <= chosen.window]
        due = bad and len(recent) >= chosen.minimum and sum(recent) / len(recent) >= chosen.rate
        assert (breaker.circuit is CircuitState.OPEN) is due
        if due:
            return
        assert breaker.rate(now) == (sum(recent) / len(recent), len(recent))


def test_few_calls_prove_nothing() -> None:
    """Fewer calls than the minimum never open it, even if all are bad; by default the hundredth does."""
    breaker = Breaker()
    for _ in range(99):
        breaker.record(None, 10, 10, CallVerdict.BAD)
    assert state(breaker) is CircuitState.CLOSED
    breaker.record(None, 10, 10, CallVerdict.BAD)
    assert state(breaker) is CircuitState.OPEN


def test_a_rate_that_floats_cannot_hold() -> None:
    """Seven bad calls of a hundred are seven percent, although 0.07 * 100 is a little more than 7 in floats."""
    breaker = Breaker(BreakerSettings(rate=0.07, minimum=100))
    for _ in range(93):
        breaker.record(None, 10, 10, CallVerdict.GOOD)
    for _ in range(6):
        breaker.record(None, 10, 10, CallVerdict.BAD)
    assert state(breaker) is CircuitState.CLOSED
    breaker.record(None, 10, 10, CallVerdict.BAD)
    assert state(breaker) is CircuitState.OPEN


def test_a_quiet_breaker_has_no_rate() -> None:
    """Without a recent call the rate is zero of zero."""
    breaker = Breaker()
    assert breaker.rate(5) == (0.0, 0)
    breaker.record(None, 0, 0, CallVerdict.BAD)
    assert breaker.rate(0) == (1.0, 1)
    assert breaker.rate(61) == (0.0, 0)


def test_at_the_very_beginning_of_a_clock() -> None:
    """At time zero a good call is good and a bad one bad, also after it was saved; a call just as old as the window counts."""
    breaker = Breaker(BreakerSettings(minimum=3, window=60))
    for vote in (CallVerdict.GOOD, CallVerdict.GOOD, CallVerdict.GOOD, CallVerdict.BAD):
        breaker.record(None, 0, 0, vote)
    other = Breaker(breaker.settings)
    other.restore(breaker.snapshot(0), 0)
    for each in (breaker, other):
        assert each.rate(0) == each.rate(60 - 1e-6) == (0.25, 4)
    breaker = Breaker(BreakerSettings(minimum=2, window=60, rate=1.0))
    breaker.record(None, 100, 100, CallVerdict.BAD)
    breaker.record(None, 160, 160, CallVerdict.BAD)
    assert state(breaker) is CircuitState.OPEN


def test_slow_calls_count_as_bad() -> None:
    """A good call that took longer than allowed counts as a failed one, also when it was the probe."""
    breaker = Breaker(BreakerSettings(minimum=2, slow=5))
    breaker.record(None, 100, 105, CallVerdict.GOOD)
    assert breaker.rate(110) == (0.0, 1)
    breaker.record(None, 100, 105.1, CallVerdict.GOOD)
    assert state(breaker) is CircuitState.OPEN
    permit = probe_of(breaker, 200)
    breaker.record(permit, 200, 206, CallVerdict.GOOD)
    assert state(breaker) is CircuitState.OPEN


def test_neutral_calls_count_for_nothing() -> None:
    """A cancelled call, however slow, says nothing about the service."""
    breaker = Breaker(BreakerSettings(minimum=1, slow=1))
    breaker.record(breaker.admit(0), 0, 100, CallVerdict.NEUTRAL)  # type: ignore[arg-type]  # it is closed: a permit
    assert breaker.rate(100) == (0.0, 0)
    assert state(breaker) is CircuitState.CLOSED


def test_a_refusal_says_when_to_come_back() -> None:
    """While it is open, and while a probe runs, a refusal holds the seconds after which there is a place."""
    breaker = opened(Breaker(SMALL), 100)
    assert breaker.admit(100) == 30
    assert breaker.admit(112) == 18
    probe_of(breaker, 130)
    assert breaker.admit(130) == 20
    assert breaker.admit(149) == 1
    assert isinstance(breaker.admit(150), Permit)


def test_a_good_probe_closes() -> None:
    """A good probe closes the circuit and the old calls are forgotten."""
    breaker = opened(Breaker(SMALL), 100)
    breaker.record(probe_of(breaker, 130), 130, 131, CallVerdict.GOOD)
    assert state(breaker) is CircuitState.CLOSED
    assert breaker.rate(131) == (0.0, 0)
    permit = breaker.admit(131)
    assert isinstance(permit, Permit)
    assert not permit.probe


def test_a_bad_probe_opens_again() -> None:
    """A bad probe opens the circuit for another full pause."""
    breaker = opened(Breaker(SMALL), 100)
    breaker.record(probe_of(breaker, 130), 130, 135, CallVerdict.BAD)
    assert state(breaker) is CircuitState.OPEN
    assert breaker.admit(135) == 30


def test_a_cancelled_probe_gives_its_place_back() -> None:
    """When a probe is cancelled the next caller may probe at once."""
    breaker = opened(Breaker(SMALL), 100)
    breaker.record(probe_of(breaker, 130), 130, 131, CallVerdict.NEUTRAL)
    assert state(breaker) is CircuitState.HALF_OPEN
    breaker.record(probe_of(breaker, 131), 131, 132, CallVerdict.GOOD)
    assert state(breaker) is CircuitState.CLOSED


@pytest.mark.parametrize("late", list(CallVerdict))
def test_a_hung_probe_is_replaced(late: CallVerdict) -> None:
    """After its lease a hung probe's place is given to another, and its late result, good or bad, is ignored."""
    breaker = opened(Breaker(SMALL), 100)
    hung = probe_of(breaker, 130)
    assert isinstance(breaker.admit(149.9), float)
    second = probe_of(breaker, 150)
    breaker.record(hung, 130, 151, late)
    assert state(breaker) is CircuitState.HALF_OPEN
    assert breaker.admit(151) == 19
    breaker.record(second, 150, 152, CallVerdict.GOOD)
    assert state(breaker) is CircuitState.CLOSED
    breaker.record(hung, 130, 153, late)
    assert state(breaker) is CircuitState.CLOSED


def test_late_calls_do_not_disturb() -> None:
    """Calls that began before it opened and end badly while it is open move nothing, and are forgotten on closing."""
    breaker = opened(Breaker(SMALL), 100)
    for now in range(101, 111):
        breaker.record(Permit(0, probe=False), 99, now, CallVerdict.BAD)
    assert breaker.admit(111) == 19
    breaker.record(probe_of(breaker, 130), 130, 131, CallVerdict.GOOD)
    for _ in range(3):
        breaker.record(None, 131, 131, CallVerdict.BAD)
    assert state(breaker) is CircuitState.CLOSED


@pytest.mark.parametrize("now", [0.0, 5.0, 59.0])
def test_restored_on_a_young_clock(now: float) -> None:
    """On a clock younger than the saved calls (a machine just booted), good ones stay good and bad ones bad."""
    breaker = Breaker(BreakerSettings(minimum=10, window=60))
    for vote in (CallVerdict.GOOD, CallVerdict.GOOD, CallVerdict.GOOD, CallVerdict.BAD):
        breaker.record(None, 1000, 1000, vote)
    other = Breaker(breaker.settings)
    other.restore(breaker.snapshot(1059), now)
    assert other.rate(now) == (0.25, 4)


def test_restored_open_and_half_open() -> None:
    """A restored breaker refuses for just as long as the saved one would have."""
    breaker = opened(Breaker(SMALL), 100)
    other = Breaker(SMALL)
    other.restore(breaker.snapshot(110), 5)
    assert other.admit(5) == 20
    probe_of(breaker, 130)
    other.restore(breaker.snapshot(140), 1)
    assert other.admit(1) == 10


@pytest.fixture
def hurried_threads() -> Iterator[None]:
    """Threads that are switched as often as can be."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


class SwitchingTime(float):
    """A time whose every comparison is a place where threads may be switched."""

    def __lt__(self, other: float) -> bool:
        for _ in range(500):
            pass
        return float(self) < other


@pytest.mark.usefixtures("hurried_threads")
def test_one_probe_among_twenty_threads() -> None:
    """Of twenty threads that come at the same moment exactly one may probe, and the others are told to wait."""
    rounds, threads = 60, 20
    breaker = opened(Breaker(SMALL), 100)
    barrier = Barrier(threads)
    now = SwitchingTime(130.0)

    def race() -> Permit | float:
        barrier.wait()
        return breaker.admit(now)

    with ThreadPoolExecutor(threads) as pool:
        for _ in range(rounds):
            answers = [future.result() for future in [pool.submit(race) for _ in range(threads)]]
            permits = [answer for answer in answers if isinstance(answer, Permit)]
            assert len(permits) == 1
            assert permits[0].probe
            assert sorted(answer for answer in answers if isinstance(answer, float)) == [20.0] * (threads - 1)
            breaker.record(permits[0], now, now, CallVerdict.BAD)
            now = SwitchingTime(now + 30)


@pytest.mark.usefixtures("hurried_threads")
def test_calls_may_end_in_many_threads_at_once() -> None:
    """While some threads report good calls, others may report bad ones, ask for the rate and save the state."""
    breaker = Breaker(BreakerSettings(rate=1.0, minimum=1))
    barrier = Barrier(8)

    def report(number: int) -> None:
        barrier.wait()
        for turn in range(400):
            now = 1000.0 + turn
            if number < 4:
                breaker.record(None, now, now, CallVerdict.GOOD)
            elif number < 6:
                breaker.rate(now)
            else:
                breaker.record(None, now, now, CallVerdict.BAD)
                breaker.snapshot(now)

    with ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(report, number) for number in range(8)]:
            future.result()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("rate", 0),
        ("rate", 1.1),
        ("rate", -0.5),
        ("rate", math.nan),
        ("minimum", 0),
        ("minimum", 2.5),
        ("minimum", math.nan),
        ("minimum", True),
        ("window", 0),
        ("window", -1),
        ("pause", 0),
        ("pause", math.nan),
        ("probe", 0),
        ("slow", 0),
        ("slow", -1),
        ("slow", math.nan),
    ],
)
def test_what_settings_cannot_be(key: str, value: Any) -> None:
    """A setting that cannot be used is refused at once, with its key and its value."""
    with pytest.raises(ConfigError) as raised:
        BreakerSettings(**{key: value})
    assert raised.value.key == f"breaker.{key}"
    assert raised.value.value is value


def test_calls_in_flight_count_as_not_failed() -> None:
    """Quick failures among slow calls that still run do not open the circuit; failures alone do, whatever runs."""
    running = [40]
    breaker = Breaker(BreakerSettings(minimum=10))
    breaker.counters["test"] = lambda: running[0]
    for at in range(1, 10):
        breaker.record(None, at, at, CallVerdict.BAD if at % 2 else CallVerdict.GOOD)
    breaker.record(None, 10, 10, CallVerdict.BAD)  # 6 of 10 failed, and as many are in flight: 6 of 20
    assert breaker.circuit.value == "closed"
    running[0] = 0
    for at in range(11, 16):
        breaker.record(None, at, at, CallVerdict.BAD)
    assert breaker.circuit.value == "open"
    dead = Breaker(BreakerSettings(minimum=10))
    dead.counters["test"] = lambda: 1_000_000
    for at in range(1, 11):
        dead.record(None, at, at, CallVerdict.BAD)
    assert dead.circuit.value == "open"


def test_the_pause_doubles_while_probes_fail() -> None:
    """With `max_pause`, each failed probe doubles the pause up to it; a successful one resets it."""
    breaker = opened(Breaker(BreakerSettings(minimum=4, window=60, pause=3, probe=20, max_pause=30)), 0.0)
    now, pauses = 0.0, []
    for _ in range(6):
        pauses.append(breaker.seconds_until_probe(now))
        now += pauses[-1]
        breaker.record(probe_of(breaker, now), now, now, CallVerdict.BAD)
    assert pauses == [3, 6, 12, 24, 30, 30]
    now += 30
    permit = probe_of(breaker, now)
    assert breaker.seconds_until_probe(now) == 20  # until the running probe is replaced
    breaker.record(permit, now, now, CallVerdict.GOOD)
    assert breaker.seconds_until_probe(now) == 0
    assert opened(breaker, now).seconds_until_probe(now) == 3


def test_a_call_out_of_retries_opens_the_circuit_of_a_full_outage() -> None:
    """It opens for the given pause if no call has succeeded since the failing one began; otherwise it stays closed."""
    breaker = Breaker(SMALL)
    breaker.record(None, 8.0, 10.0, CallVerdict.GOOD)
    breaker.open_if_failing(9.0, 12.0, 5.0)
    assert state(breaker) is CircuitState.CLOSED
    breaker.open_if_failing(11.0, 12.0, 5.0)
    assert state(breaker) is CircuitState.OPEN
    assert breaker.seconds_until_probe(12.0) == 5.0
    breaker.record(probe_of(breaker, 17.0), 17.0, 18.0, CallVerdict.GOOD)
    breaker.open_if_failing(11.0, 19.0, 5.0)  # the probe was a success
    assert state(breaker) is CircuitState.CLOSED
    off = Breaker(BreakerSettings(enabled=False))
    off.open_if_failing(0.0, 1.0, 5.0)
    assert state(off) is CircuitState.CLOSED


def test_a_probe_is_postponed_and_never_moved_forward() -> None:
    """A failed call that knows when to ask again postpones the probe of an open circuit, and does not open a closed one."""
    breaker = opened(Breaker(SMALL), 0.0)
    pause = breaker.seconds_until_probe(0.0)
    breaker.postpone_probe(0.0, pause / 2)
    assert breaker.seconds_until_probe(0.0) == pause
    breaker.postpone_probe(0.0, 3 * pause)
    assert breaker.seconds_until_probe(0.0) == 3 * pause
    closed = Breaker(SMALL)
    closed.postpone_probe(0.0, 60.0)
    assert state(closed) is CircuitState.CLOSED


@pytest.mark.parametrize("key", ["slow", "max_pause"])
def test_optional_seconds_are_positive(key: str) -> None:
    """A value that is not more than 0 is refused with its key."""
    with pytest.raises(ConfigError, match=rf"breaker\.{key}"):
        BreakerSettings(**{"rate": 0.5, key: 0})  # type: ignore[arg-type]  # one of two keys
