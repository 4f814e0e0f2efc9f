"""Sixteen failover scenarios with the real openai SDK: default settings, and one line that names the fallback.

The faults are shorter than in `make failover`, which plays them in real time with the default timeouts.
"""

from __future__ import annotations

import pytest

from tests.gateway.failover.scenarios import PASS, SCENARIOS, judge, measure


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario(name: str) -> None:
    """The caller gets the complete answer (or the provider's refusal), with as many requests as the scenario allows."""
    found = measure(name, is_quick=True)
    verdict, failed = judge(name, found, is_quick=True)
    assert verdict == PASS, f"{failed}; {len(found.primary)} + {found.fallback} requests; {found.last}"
