"""Slices of shared limits: used and leased amounts never exceed the limit, whatever happens to messages and clocks."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rung.core.domain.errors import ConfigError
from rung.core.policy.slices import (
    MAX_CLOCK_DRIFT,
    Lease,
    SharedLimit,
    SharedUse,
    SliceHolder,
    SliceRequest,
    exchange,
    slice_size,
    unused,
    use_as_of,
    without,
)

HOLDERS = ("a", "b", "c")
ROUNDING = 1e-6


@dataclass
class World:
    """A limit, its table in the database, holders with clocks of their own, and messages that are lost or repeated."""

    limit: SharedLimit
    skew: dict[str, float]
    drift: dict[str, float]
    now: float = 1_000.0
    holders: dict[str, SliceHolder] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)  # of the holder's present process
    old: list[tuple[str, SliceRequest]] = field(default_factory=list)
    total: float = 0.0
    deaths: int = 0

    def __post_init__(self) -> None:
        self.use = unused(self.limit, self.now)
        for name in HOLDERS:
            self.start(name)

    def start(self, name: str) -> None:
        self.holders[name], self.names[name] = SliceHolder(1.0), f"{name}{self.deaths}"

    def clock(self, name: str) -> float:
        return self.skew[name] + self.now * (1 - self.drift[name])

    def ask(self, name: str, need: float, fate: str) -> None:
        holder = self.holders[name]
        request = holder.request(self.clock(name), need)
        self.old.append((self.names[name], request))
        if fate == "lost":
            return
        self.use, lease = exchange(self.limit, self.use, self.names[name], request, self.now)
        if fate != "unanswered":
            holder.apply(lease, self.limit.lease_seconds)

    def repeat(self, which: int) -> None:
        if self.old:
            name, request = self.old[which % len(self.old)]
            self.use, _ = exchange(self.limit, self.use, name, request, self.now)

    def act(self, step: tuple[str, str, float]) -> None:
        what, name, number = step
        match what:
            case "take":
                self.total += number if self.holders[name].take(number, self.clock(name)) else 0.0
            case "ask" | "lost" | "unanswered":
                self.ask(name, number, what)
            case "repeat":
                self.repeat(int(number * 7))
            case "wait":
                self.now += number
            case _:
                self.deaths += 1
                self.start(name)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["take", "take", "take", "ask", "ask", "lost", "unanswered", "repeat", "wait", "die"]),
        st.sampled_from(HOLDERS),
        st.floats(0.0, 9.0),
    ),
    max_size=80,
)
SKEWS = st.fixed_dictionaries({name: st.floats(-1e5, 1e5) for name in HOLDERS})
DRIFTS = st.fixed_dictionaries({name: st.floats(-MAX_CLOCK_DRIFT, MAX_CLOCK_DRIFT * 0.99) for name in HOLDERS})


@given(STEPS, SKEWS, DRIFTS, st.floats(0.0, 40.0))
@settings(max_examples=300, deadline=None)
def test_dollars_are_never_overspent(
    steps: list[tuple[str, str, float]], skew: dict[str, float], drift: dict[str, float], amount: float
) -> None:
    """Lost and repeated messages, deaths and skewed clocks: what is used and leased stays within the limit."""
    world = World(SharedLimit(amount=amount, doubt_seconds=1e9), skew, drift)
    for step in steps:
        world.act(step)
        assert world.use.used + world.use.out <= amount + ROUNDING
        assert world.total <= amount + ROUNDING
        assert world.total <= world.use.used + world.use.out + ROUNDING  # all of it is known, or leased


@given(STEPS, SKEWS, DRIFTS, st.floats(1.0, 40.0), st.floats(0.1, 5.0))
@settings(max_examples=300, deadline=None)
def test_a_rate_is_never_exceeded(
    steps: list[tuple[str, str, float]], skew: dict[str, float], drift: dict[str, float], amount: float, rate: float
) -> None:
    """All holders together use no more than the burst and what was refilled since."""
    world = World(SharedLimit(amount=amount, per_second=rate), skew, drift)
    for step in steps:
        world.act(step)
        assert world.use.used + world.use.out <= amount + ROUNDING
        assert world.total <= amount + (world.now - 1_000.0) * rate + ROUNDING


@given(st.floats(0.0, 100.0), st.integers(1, 50), st.floats(0.0, 100.0), st.floats(0.0, 100.0))
def test_a_slice_fits(left: float, holders: int, need: float, want: float) -> None:
    """A slice is never more than is left, never less than needed, and never more than a share beyond that."""
    size = slice_size(left, holders, need, want)
    assert 0.0 <= size <= left
    assert size == 0.0 or size >= need
    assert size <= max(need, left / (2 * holders))


def test_slices_follow_the_use() -> None:
    """A busy holder gets more, an idle one returns it, and near the end nobody holds more than it needs."""
    limit = SharedLimit(amount=1_000.0, doubt_seconds=60.0)
    use, busy, idle = unused(limit, 0.0), SliceHolder(1.0), SliceHolder(1.0)

    def ask(use: SharedUse, name: str, holder: SliceHolder, now: float, need: float = 0.0) -> SharedUse:
        use, lease = exchange(limit, use, name, holder.request(now, need), now)
        holder.apply(lease, limit.lease_seconds)
        return use

    use = ask(ask(use, "busy", busy, 0.0), "idle", idle, 0.0)
    assert busy.left(0.0) == idle.left(0.0) == 1.0
    assert not busy.take(50.0, 0.0)
    use = ask(use, "busy", busy, 1.0)
    assert busy.left(1.0) == pytest.approx(150.0)
    assert busy.take(100.0, 1.0)
    for now in (2.0, 3.0, 4.0):
        use = ask(use, "busy", busy, now)
    assert use.used == 100.0
    assert busy.left(4.0) == pytest.approx(1.0)  # the rest was returned
    use = ask(use, "idle", idle, 5.0, need=890.0)
    assert idle.take(890.0, 5.0)
    use = ask(use, "busy", busy, 6.0, need=20.0)
    assert not busy.take(20.0, 6.0)


def test_a_dead_holder() -> None:
    """The slice of a dead holder counts as used where the limit refills, and else is free when the doubt ends."""
    dollars = SharedLimit(amount=10.0, lease_seconds=10.0, doubt_seconds=60.0)
    use, lease = exchange(dollars, unused(dollars, 0.0), "dead", SliceRequest(1, need=4.0), 0.0)
    assert lease == Lease(4.0, 0.0, 10.0, 1)
    assert use_as_of(dollars, use, 69.0).out == 4.0
    assert (use_as_of(dollars, use, 70.0).out, use_as_of(dollars, use, 70.0).used) == (0.0, 0.0)
    rate = SharedLimit(amount=10.0, per_second=1.0, lease_seconds=10.0)
    use, _ = exchange(rate, unused(rate, 0.0), "dead", SliceRequest(1, need=4.0), 0.0)
    assert (use_as_of(rate, use, 10.0).out, use_as_of(rate, use, 10.0).used) == (0.0, 4.0)
    assert use_as_of(rate, use, 10.0).at == 10.0


def test_a_holder_that_was_forgotten() -> None:
    """What a holder used in its last lease is counted when it comes back, and what it kept is no longer its own."""
    limit = SharedLimit(amount=10.0, lease_seconds=10.0, doubt_seconds=5.0)
    holder = SliceHolder()
    use, lease = exchange(limit, unused(limit, 0.0), "a", holder.request(0.0, 6.0), 0.0)
    holder.apply(lease, limit.lease_seconds)
    assert holder.take(2.0, 1.0)
    use, _ = exchange(limit, use, "b", SliceRequest(1, need=10.0), 15.0)
    assert use.leases.keys() == {"b"}
    assert not holder.take(1.0, 15.0)
    use, lease = exchange(limit, use, "a", holder.request(16.0), 16.0)
    holder.apply(lease, limit.lease_seconds)
    assert (use.used, holder.slack) == (2.0, 0.0)


def test_a_holder_leaves() -> None:
    """What a leaving holder did not use is free at once."""
    limit = SharedLimit(amount=10.0, doubt_seconds=60.0)
    holder = SliceHolder()
    use, lease = exchange(limit, unused(limit, 0.0), "a", holder.request(0.0, 6.0), 0.0)
    holder.apply(lease, limit.lease_seconds)
    holder.take(1.0, 0.5)
    use = without(limit, use, "a", holder.request(1.0), 1.0)
    assert (use.used, use.out) == (1.0, 0.0)


def test_credits_refill() -> None:
    """Net use may fall: what a holder returns to a limit is there for all."""
    limit = SharedLimit(amount=100.0, initial=20.0)
    use = unused(limit, 0.0)
    assert use.used == 80.0
    use, _ = exchange(limit, use, "a", SliceRequest(1, used=-30.0, keeps=0.0), 1.0)
    assert use.used == 50.0


@pytest.mark.parametrize(
    ("key", "value"), [("amount", -1.0), ("per_second", float("inf")), ("lease_seconds", 0.0), ("doubt_seconds", -1.0)]
)
def test_impossible_limits(key: str, value: float) -> None:
    """A limit that makes no sense is refused with its name."""
    with pytest.raises(ConfigError, match=f"shared_limit.{key}"):
        SharedLimit(**{"amount": 1.0, key: value})


def test_an_old_request_changes_nothing() -> None:
    """A request that arrives again, after a later one, neither grants nor takes away."""
    limit = SharedLimit(amount=10.0, doubt_seconds=60.0)
    use, _ = exchange(limit, unused(limit, 0.0), "a", SliceRequest(1, need=1.0), 0.0)
    use, lease = exchange(limit, use, "a", SliceRequest(2, keeps=1.0, need=8.0), 0.0)
    assert lease.granted == 9.0
    assert exchange(limit, use, "a", SliceRequest(1, need=1.0), 0.0) == (use, lease)
    assert exchange(limit, use, "a", SliceRequest(2, keeps=1.0, need=8.0), 0.0) == (use, lease)
