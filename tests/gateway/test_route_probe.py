"""Probes of routes: one at a time, less often while they fail, and their result serves everybody who waits."""

from __future__ import annotations

from rung.gateway.route_probe import MAX_ROUTES, RouteProbe

ROUTE = "openai/small/caller"


class Now:
    """A clock that the test moves."""

    at = 100.0

    def __call__(self) -> float:
        return self.at


def test_one_probe_at_a_time() -> None:
    """A route that failed is tried by one caller when its pause is over; the pause doubles while it fails."""
    now = Now()
    probe = RouteProbe(5.0, now)
    assert probe.is_healthy(ROUTE)
    assert not probe.begin(ROUTE)
    probe.mark_failed(ROUTE)
    pauses = []
    for _ in range(7):
        assert not probe.begin(ROUTE)
        began = now.at
        while not probe.begin(ROUTE):
            now.at += 1.0
        pauses.append(now.at - began)
        assert not probe.begin(ROUTE)
        probe.mark_failed(ROUTE)  # another call that was handed away changes nothing
        probe.end(ROUTE)
    assert pauses == [5.0, 5.0, 10.0, 15.0, 15.0, 15.0, 15.0]
    probe.mark_healthy(ROUTE)
    assert probe.is_healthy(ROUTE)
    probe.end(ROUTE)
    assert probe.is_healthy(ROUTE)


def test_a_slow_probe_is_made_less_often() -> None:
    """After a probe that took a minute, the next caller is delayed only ten minutes later."""
    now = Now()
    probe = RouteProbe(5.0, now)
    probe.mark_failed(ROUTE)
    now.at += 5.0
    assert probe.begin(ROUTE)
    probe.end(ROUTE, 60.0)
    now.at += 599.0
    assert not probe.begin(ROUTE)
    now.at += 1.0
    assert probe.begin(ROUTE)


def test_routes_are_bounded() -> None:
    """The oldest of too many routes is forgotten: it counts as healthy."""
    probe = RouteProbe(5.0, Now())
    for number in range(MAX_ROUTES + 1):
        probe.mark_failed(str(number))
    assert probe.is_healthy("0")
    assert not probe.is_healthy("1")
