"""Sixteen failover scenarios with the real openai SDK: default settings, and one line that names the fallback.

The faults are shorter than in `make failover`, which plays them in real time with the default timeouts.
"""

from __future__ import annotations

import pytest

from tests.gateway.failover.scenarios import PASS, SCENARIOS, judge, measure

# Eight retries are made before a handover.
_FAILING = ("S02", "S04", "S16")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.xfail) if name in _FAILING else name for name in SCENARIOS]
)
def test_scenario(name: str) -> None:
    """The caller gets the complete answer (or the provider's refusal), with as many requests as the scenario allows."""
    found = measure(name, is_quick=True)
    verdict, failed = judge(name, found, is_quick=True)
    assert verdict == PASS, f"{failed}; {len(found.primary)} + {found.fallback} requests; {found.last}"
