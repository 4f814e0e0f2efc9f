"""A short sample of `make storm-providers`: two providers with different wires, one of them dead for a while."""

from __future__ import annotations

from collections import Counter

import uvloop
from bench.gateway.storm_providers import BACK_SECONDS, measure, parsed

CLIENTS = 12


def test_one_of_two_providers_is_dead() -> None:
    """Every answer is whole, each client's first call in the outage is answered, and all are back on their provider."""
    arguments = f"--outage 3 --clients {CLIENTS} --pause 0.5 --calm 1".split()
    found = uvloop.run(measure(parsed(arguments)))
    assert not found.lost
    # The answer that the outage breaks off begins on the dead provider. A busy machine has no more calls of some clients.
    calls = Counter(each.client for each in found.in_outage if each.ended < found.recovered_at)
    assert {each.client for each in found.handed_over} >= {client for client, count in calls.items() if count >= 3}
    assert found.handed_over
    assert all(each.provider for each in found.clients.first_in(found.dead_at))
    # Without a hand-over each call would ask the dead provider three times. A busy machine has few calls after the first ones.
    assert found.to_dead < 2 * len(found.in_outage)
    back = found.clients.back_after(found.recovered_at)
    assert len(back) == CLIENTS
    assert back[-1] <= BACK_SECONDS
    assert {each.provider for each in found.clients.answers} == {"a", "b"}
    assert found.dollars > 0
