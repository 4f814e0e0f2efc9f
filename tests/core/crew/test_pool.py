"""Rules of a pool: when it closes, when it is probed, when it opens."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from rung.core.classify.classifier import classify
from rung.core.crew.pool import (
    MAX_CLOSINGS,
    Pool,
    PoolLimits,
    PoolState,
    after_failure,
    after_lost_probe,
    after_progress,
    after_start,
    describe,
    is_probe_due,
    is_spreading,
    may_start,
    wake,
)
from rung.core.crew.service_trouble import Trouble, hand_back_text, parked_until, parse_hand_back, trouble_of
from rung.core.domain.failures import Evidence, Failure, Phase

NOW = 1_800_000_000.0
LIMITS = PoolLimits()
WORKERS = 8
OVERLOAD = Trouble(reason="overloaded")
jitters = st.floats(0, 1, exclude_max=True)
waits = st.floats(0, 40_000)
tasks = st.sampled_from(["a", "b", "c", "d"])


def failure(text: str, *, exit_code: int | None = 1, phase: Phase = Phase.CALL) -> Failure:
    return classify(Evidence(text=text, exit_code=exit_code, phase=phase), NOW)


def closed(trouble: Trouble = OVERLOAD, *, task: str = "a", now: float = NOW) -> Pool:
    pool, absorbed = after_failure(Pool(), task, trouble, now, 0.5, LIMITS)
    assert absorbed
    return pool


def limit(seconds: float) -> Trouble:
    return Trouble(reason="limit", until=NOW + seconds)


class PoolMachine(RuleBasedStateMachine):
    """Failures, probes and progress in any order, at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.now = NOW
        self.pool = Pool()
        self.probes: list[float] = []

    @rule(seconds=st.floats(0, 4_000))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(task=tasks, wait=st.none() | waits, jitter=jitters)
    def fail(self, task: str, wait: float | None, jitter: float) -> None:
        trouble = Trouble(reason="x", until=None if wait is None else self.now + wait)
        self.pool, _ = after_failure(self.pool, task, trouble, self.now, jitter, LIMITS)

    @rule(task=tasks, jitter=jitters)
    def need_a_person(self, task: str, jitter: float) -> None:
        self.pool, _ = after_failure(self.pool, task, Trouble(reason="x", needs_person=True), self.now, jitter, LIMITS)

    @precondition(lambda self: may_start(self.pool, self.now, WORKERS))
    @rule(task=tasks, jitter=jitters)
    def start(self, task: str, jitter: float) -> None:
        if not self.pool.is_open:
            assert not self.pool.probe, "a second probe"
            assert not self.probes or self.now - self.probes[-1] >= LIMITS.probe_interval - 1e-3
            self.probes.append(self.now)
        self.pool = after_start(self.pool, task, self.now, jitter, LIMITS)

    @rule(task=tasks)
    def progress(self, task: str) -> None:
        was_probe = self.pool.probe == task and not self.pool.is_open
        before, self.pool = self.pool, after_progress(self.pool, task, self.now)
        assert self.pool.is_open == (before.is_open or was_probe)

    @rule(task=tasks)
    def lose_probe(self, task: str) -> None:
        self.pool = after_lost_probe(self.pool, task, self.now, LIMITS)

    @rule()
    def wake(self) -> None:
        self.pool = wake(self.pool, self.now)
        assert self.pool.is_open

    @invariant()
    def a_waiting_pool_has_a_next_probe(self) -> None:
        if self.pool.state in (PoolState.PARKED, PoolState.BACKING_OFF):
            assert self.pool.next_probe is not None
        else:
            assert not self.pool.probe
            assert self.pool.next_probe is None

    @invariant()
    def a_waiting_pool_is_probed_after_its_limit(self) -> None:
        if self.pool.state is PoolState.PARKED and not self.pool.probe:
            assert (self.pool.next_probe or 0.0) >= min(self.pool.until or 0.0, self.now)

    @invariant()
    def it_survives_its_storage(self) -> None:
        assert Pool.from_json(json.loads(json.dumps(self.pool.to_json()))) == self.pool

    @invariant()
    def a_closed_pool_says_why(self) -> None:
        assert bool(describe(self.pool)) != self.pool.is_open


TestPoolMachine = PoolMachine.TestCase


@given(st.integers(0, 10_000), jitters)
def test_backoff_grows_and_is_capped(failed: int, jitter: float) -> None:
    """The wait for the next probe never shrinks with more failed probes, and stays under 450 s."""
    assert LIMITS.backoff(failed, jitter) <= LIMITS.backoff(failed + 1, jitter) <= 450
    assert failed == 0 or LIMITS.backoff(failed, jitter) >= LIMITS.probe_interval


def test_a_limit_parks_until_its_end() -> None:
    """A limit with a known end: no probe before, one at the end, and the pool opens when the probe gets further."""
    pool = closed(limit(18_000))
    assert (pool.state, pool.until) == (PoolState.PARKED, NOW + 18_000)
    assert not is_probe_due(pool, NOW + 17_999)
    end = NOW + 18_000 + LIMITS.probe_interval
    assert is_probe_due(pool, end)
    pool = after_start(pool, "b", end, 0.5, LIMITS)
    assert not is_probe_due(pool, end + 3_600), "one probe at a time"
    assert after_progress(pool, "a", end).probe == "b", "only the probe opens it"
    assert after_progress(pool, "b", end).is_open


@pytest.mark.parametrize("workers", [1, 8, 30])
def test_as_many_starts_are_spread_as_the_crew_has_workers(workers: int) -> None:
    """After the pool opens, tasks start 5 to 15 s apart until one has started for each worker, however long that takes."""
    pool = after_progress(after_start(closed(), "a", NOW + 60, 0.5, LIMITS), "a", NOW + 100)
    now = NOW + 100
    for _ in range(workers):
        assert may_start(pool, now, workers)
        assert is_spreading(pool, workers)
        pool = after_start(pool, "x", now, 0.9, LIMITS)
        now += 14
    assert not is_spreading(pool, workers)
    assert may_start(pool, now - 14, workers), "the crew is full, or its tasks are short: nobody starts together"


def test_a_lost_probe_is_replaced_after_a_limit_that_became_known_meanwhile() -> None:
    """While a probe runs, another worker meets a limit with a later end: no probe starts before it."""
    probing = after_start(closed(limit(60)), "a", NOW + 70, 0.5, LIMITS)
    extended, _ = after_failure(probing, "b", limit(3_600), NOW + 80, 0.5, LIMITS)
    assert after_lost_probe(extended, "a", NOW + 90, LIMITS).next_probe == NOW + 3_600


def test_spread_starts_have_a_distance() -> None:
    """Two starts after the pool has opened are at least half of `spread` apart, and the first waits for nothing."""
    pool = wake(closed(), NOW)
    assert may_start(pool, NOW, 8)
    pool = after_start(pool, "a", NOW, 0.0, LIMITS)
    assert not may_start(pool, NOW + 4.9, 8)
    assert may_start(pool, NOW + 5, 8)


def test_starts_of_a_pool_that_never_closed_are_not_spread() -> None:
    """A pool that was always open neither counts nor spreads its starts."""
    assert after_start(Pool(), "a", NOW, 0.5, LIMITS) == Pool()
    assert not is_spreading(Pool(), 8)


def test_the_trouble_of_one_task_is_its_own() -> None:
    """A task that closes the pool three times, with good probes by others between, is left to the ladder; progress clears it."""
    pool, now = Pool(), NOW
    for _ in range(MAX_CLOSINGS):
        pool, absorbed = after_failure(pool, "bad", OVERLOAD, now, 0.5, LIMITS)
        assert absorbed
        now += 600
        pool = after_progress(after_start(pool, "good", now, 0.5, LIMITS), "good", now)
    assert after_failure(pool, "bad", OVERLOAD, now, 0.5, LIMITS) == (pool, False)
    assert after_failure(pool, "good", OVERLOAD, now, 0.5, LIMITS)[1]
    assert after_failure(after_progress(pool, "bad", now), "bad", OVERLOAD, now, 0.5, LIMITS)[1]


def test_the_failures_of_each_task_are_counted_until_the_pool_opens() -> None:
    """A pool counts by task who met its trouble, so that the next probe can be another task."""
    pool = closed(task="a")
    for now in (NOW + 600, NOW + 1_200):
        pool, _ = after_failure(after_start(pool, "a", now, 0.5, LIMITS), "a", OVERLOAD, now + 1, 0.5, LIMITS)
    assert pool.failed_by == {"a": 3}
    opened = after_progress(after_start(pool, "b", NOW + 2_000, 0.5, LIMITS), "b", NOW + 2_001)
    assert opened.is_open
    assert opened.failed_by == {}


def test_patience_ends() -> None:
    """Trouble without a known end is waited out for the patience; after it the failures are the tasks', until progress."""
    pool, now = closed(), NOW
    absorbed = True
    while absorbed:
        assert pool.next_probe is not None
        now = pool.next_probe
        pool = after_start(pool, "a", now, 0.5, LIMITS)
        pool, absorbed = after_failure(pool, "a", OVERLOAD, now + 5, 0.5, LIMITS)
    assert LIMITS.patience <= now - NOW <= LIMITS.patience + 450
    assert pool.is_open
    assert not after_failure(pool, "b", OVERLOAD, now + 60, 0.5, LIMITS)[1]
    assert after_failure(pool, "b", limit(now - NOW + 600), now + 60, 0.5, LIMITS)[1], "a known end is waited for"
    assert after_failure(after_progress(pool, "b", now), "b", OVERLOAD, now, 0.5, LIMITS)[1]


def test_a_promised_wait_costs_no_patience() -> None:
    """Five hours of a limit leave the patience whole for an overload at its end."""
    pool = closed(limit(LIMITS.patience * 2))
    end = NOW + LIMITS.patience * 2 + 60
    pool = after_start(pool, "a", end, 0.5, LIMITS)
    pool, absorbed = after_failure(pool, "a", OVERLOAD, end + 5, 0.5, LIMITS)
    assert (absorbed, pool.state) == (True, PoolState.BACKING_OFF)


def test_switches() -> None:
    """`patience = 0` leaves passing trouble to the ladder; `park = 0` leaves every limit to a person."""
    assert not after_failure(Pool(), "a", OVERLOAD, NOW, 0.5, PoolLimits(patience=0))[1]
    pool, absorbed = after_failure(Pool(), "a", limit(60), NOW, 0.5, PoolLimits(park=0))
    assert (absorbed, pool.state) == (True, PoolState.BLOCKED)


def test_a_quota_without_an_end_blocks_until_a_person_wakes_it() -> None:
    """No probe is due however long it takes; a worker that knows the end turns the block into a park."""
    pool = closed(Trouble(reason="quota", needs_person=True))
    assert pool.state is PoolState.BLOCKED
    assert not is_probe_due(pool, NOW + 1e7)
    assert after_failure(pool, "b", OVERLOAD, NOW, 0.5, LIMITS) == (pool, True)
    assert after_failure(pool, "b", limit(600), NOW, 0.5, LIMITS)[0].state is PoolState.PARKED
    assert wake(pool, NOW).is_open


@pytest.mark.parametrize(
    ("text", "exit_code", "until", "needs_person"),
    [
        ("API Error: 529 Overloaded", 1, None, False),
        ("You've hit your limit · resets 1pm (Europe/Lisbon)", 1, 18_000.0, False),
        ("try later", 75, None, False),
        ('{"status": "partial", "parked_until": "2027-01-15T09:00:00Z"}', 75, 3_600.0, False),
        ("exit code 75; parked_until 2027-01-15T10:30:00+01:00: quota_exhausted", 75, 5_400.0, False),
        ("You exceeded your current quota, please check your plan and billing details", 1, None, True),
        ("pytest: 3 tests passed\nAPI Error: 529 Overloaded", 1, None, False),
        ("API Error: 529 Overloaded\nwhile editing src/app.py", 1, None, False),
        ("File app.py, line 3\nopenai.APIConnectionError: Connection error.", 1, None, False),
    ],
)
def test_what_a_failure_says(text: str, exit_code: int, until: float | None, needs_person: bool) -> None:
    """Overload, limits and exit code 75 are trouble of the pool, with the time they name."""
    trouble = trouble_of(failure(text, exit_code=exit_code), NOW)
    assert trouble is not None
    assert (None if trouble.until is None else trouble.until - NOW, trouble.needs_person) == (until, needs_person)


@pytest.mark.parametrize(
    "text",
    [
        "ImportError: No module named foo",
        "3 tests failed",
        "invalid x-api-key",
        "exit code 2",
        "socket test fails: AssertionError: 3 != 4",
        "FAILED tests/test_retry.py::test_connection_reset - assert 2 == 3",
        "curl: (7) Failed to connect to localhost port 3000: Connection refused",
        "psycopg.OperationalError: connection to server at 127.0.0.1, port 5432 failed: Connection refused",
        "the rate limit middleware returns 500 instead of 429 in test_ratelimit",
        "quota calculation wrong: AssertionError: quota exceeded, expected False",
        "the upload quota of a user is exceeded although nothing was uploaded",
    ],
)
def test_what_is_not_the_pools(text: str) -> None:
    """Errors of the work and of its configuration go up the ladder."""
    assert trouble_of(failure(text), NOW) is None


def test_an_error_of_a_tool_is_not_the_pools() -> None:
    """A network error or a quota that a tool of the agent met says nothing about the agent's account."""
    for text in ("Connection refused", "disk quota exceeded", "You exceeded your current quota"):
        assert trouble_of(failure(text, phase=Phase.TOOL), NOW) is None


@given(
    st.text(alphabet=st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp"))),
    st.none() | st.integers(0, 4_000_000_000),
    st.booleans(),
)
def test_a_hand_back_is_read_as_it_was_written(reason: str, until: int | None, needs_person: bool) -> None:
    """Reason, end and whether a person is needed survive the hand-over's text."""
    trouble = Trouble(reason=reason, until=None if needs_person else until, needs_person=needs_person)
    assert parse_hand_back(f"PoolUnavailable: {hand_back_text(trouble)}") == trouble
    assert parse_hand_back("LeaseExpired: s1 no longer owns task-01") is None


@given(st.text())
def test_any_text_can_be_searched_for_a_time(text: str) -> None:
    """No text raises, and the last time wins."""
    assert parked_until(f"parked_until: 2027-01-15T08:00:00Z {text} parked_until=2027-01-15T08:00:01Z") == NOW + 1
    parked_until(f"parked_until {text}")


@pytest.mark.parametrize("stored", [None, [], "open", {}, {"state": "gone"}, {"state": "parked", "next_probe": "soon"}])
def test_a_state_that_cannot_be_read_is_open(stored: object) -> None:
    """A foreign value in the table opens the pool instead of stopping the crew."""
    assert Pool.from_json(stored) == Pool()
