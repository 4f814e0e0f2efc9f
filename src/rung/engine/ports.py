"""What the engine needs from outside, as narrow protocols, and the real clock."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from rung.core.events import Ask, Event
    from rung.core.failures import Evidence
    from rung.core.incident import Incident
    from rung.core.request import Request
    from rung.core.verdict import Verdict
    from rung.engine.step import Raised, Returned

# UTC that never runs backwards: the wall clock of the start, moved on by the monotonic one.
EPOCH: Final = time.time() - time.monotonic()
SLICE: Final = 30.0


class Clock(Protocol):
    """Time, and the only way to let it pass."""

    def now(self) -> float:
        """UTC seconds; never runs backwards."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait, so that Ctrl-C still stops at once."""
        ...

    async def asleep(self, seconds: float) -> None:
        """Wait, so that a cancellation still stops at once."""
        ...


class SystemClock:
    """The real clock. Long waits are taken in slices, so that a machine that slept is noticed."""

    def now(self) -> float:
        """UTC seconds; never runs backwards."""
        return EPOCH + time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait in slices."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(left, SLICE))

    async def asleep(self, seconds: float) -> None:
        """Wait in slices."""
        import asyncio

        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:  # noqa: ASYNC110  # time is what is waited for
            await asyncio.sleep(min(left, SLICE))


class Listener(Protocol):
    """Is told every event once it is written down. May fail: that is recorded and ignored."""

    def __call__(self, event: Event, incident: Incident) -> object:
        """Take notice."""
        ...


class Journal(Protocol):
    """Where events are written down before anything is done about them.

    One that also has `append_later(make, *values)` is told of guarded calls that went well at once by that: the
    events are what `make(*values)` returns, whenever and in whichever thread it is called. And one that has
    `append_last(incident, first, events)` is told by that how a call ended which one repeat has saved: nobody waits.
    """

    def append(self, incident: str, first: int, events: Sequence[Event]) -> Awaitable[None] | None:
        """Keep these events, the first of which is the incident's event number `first`.

        When it returns, or its awaitable does, they are safe. What it returns may be a future: then the next
        attempt waits for it, and the pause before that attempt does not.
        """
        ...


class Keeper(Protocol):
    """Keeps what attempts come to, so that none that has ended is made again after a crash."""

    def begun(self) -> Awaitable[None] | None:
        """The next attempt is about to be made."""
        ...

    def came_to(self, reply: Returned | Raised) -> Awaitable[None] | None:
        """It has ended so."""
        ...


class Asker(Protocol):
    """Someone who can choose."""

    def __call__(self, question: Ask, incident: Incident) -> Awaitable[str | None] | str | None:
        """The id of the chosen option; None when nobody answers."""
        ...


class Checkpoint(Protocol):
    """Keeps the state of the work, so that a rung that fails can be undone."""

    def take(self, label: str) -> Awaitable[str] | str:
        """Keep the state as it is now; returns a reference to it."""
        ...

    def restore(self, reference: str) -> Awaitable[None] | None:
        """Put that state back."""
        ...


class Check(Protocol):
    """Looks at a result: None when it is good, else what is wrong with it."""

    def __call__(self, value: Any) -> Awaitable[Evidence | Verdict | None] | Evidence | Verdict | None:
        """Judge."""
        ...


class Changer(Protocol):
    """A user's own way to make a rung's new request (a planner for replan, a compactor for compact)."""

    def __call__(self, request: Request, incident: Incident) -> Awaitable[Request] | Request:
        """The request to attempt instead."""
        ...
