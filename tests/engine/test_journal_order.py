"""What a journal has received when an attempt begins: everything that was recorded before it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import rung
from rung.core.domain import events as ev
from rung.testing import Script

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.conftest import World


class Log:
    """A journal in memory."""

    def __init__(self) -> None:
        self.events: list[ev.Event] = []

    def append(self, incident: str, first: int, events: Sequence[ev.Event]) -> None:
        assert first == len(self.events)
        self.events += events


class Snapshots:
    """A checkpoint port that only counts."""

    def take(self, label: str) -> str:
        return label

    def restore(self, reference: str) -> None:
        """Restore nothing."""


def test_everything_is_published_before_the_attempt(world: World) -> None:
    """The changed request of each rung, its checkpoint and a skipped rung are in the journal when an attempt begins."""
    log = Log()
    seen: list[list[ev.Event]] = []
    requests: list[rung.Request] = []

    def attempt(request: rung.Request) -> Any:
        seen.append(list(log.events))
        requests.append(request)
        if len(seen) < 7:
            raise FileNotFoundError(2, "no such file", "x")
        return "done"

    def planner(request: rung.Request, incident: Any) -> rung.Request:
        assert isinstance(log.events[-1], ev.CheckpointTaken)
        return request.replace(prompt=f"{request.prompt} by another plan")

    world.recover(
        Script(attempt),
        rung.Request(prompt="task", model="small"),
        policy=rung.policy("task", models=["small", "large"], attempts=20),
        journal=log,
        checkpoint=Snapshots(),
        rung_handlers={"replan": planner},
    )
    for request, before in zip(requests[1:], seen[1:], strict=True):
        changed = [event for event in before if isinstance(event, ev.Changed)]
        restored = [event for event in before if isinstance(event, ev.ModelRestored)]
        assert changed[-1].request == request or restored, request
    taken = [event for event in seen[-1] if isinstance(event, ev.CheckpointTaken)]
    assert len(taken) == 2


def test_a_skipped_rung_is_published_before_the_attempt(world: World) -> None:
    """A planner that raised is in the journal before the next rung's attempt begins."""
    log = Log()
    seen: list[list[ev.Event]] = []

    def attempt(request: rung.Request) -> Any:
        seen.append(list(log.events))
        if len(seen) < 5:
            raise FileNotFoundError(2, "no such file", "x")
        return "done"

    def planner(request: rung.Request, incident: Any) -> rung.Request:
        raise ValueError("no plan")

    world.recover(
        Script(attempt),
        rung.Request(prompt="task", model="small"),
        policy=rung.policy("task", models=["small", "large"], attempts=20),
        journal=log,
        rung_handlers={"replan": planner},
    )
    assert [event.reason for event in seen[-1] if isinstance(event, ev.Skipped)] == [
        "replan raised ValueError: no plan"
    ]
