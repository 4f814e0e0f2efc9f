"""What the user allows bounds what a bad upstream can cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.gateway.behind import WIRES
from tests.security.upstream.scripted import Reply, Rig, answer, until, written

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module", params=[0, 1])
def limited(request: pytest.FixtureRequest) -> Iterator[tuple[Rig, int]]:
    with Rig(policy={"retries": request.param}) as rig:
        yield rig, request.param


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("kind", ["no JSON", "breaks", "empty"])
def test_retries_bound_everything(limited: tuple[Rig, int], kind: str, wire: str) -> None:
    """`retries` bounds the repeats and the resumptions of an answer that never gets better."""
    rig, retries = limited
    broken = written(until(answer(wire), "two"))
    reply = {"no JSON": Reply(b"{", kind=b"application/json"), "breaks": Reply(broken, "cut"), "empty": Reply(b"")}[
        kind
    ]
    rig.upstream.use(reply)
    rig.stream(wire)
    assert rig.asked <= 1 + 2 * retries
