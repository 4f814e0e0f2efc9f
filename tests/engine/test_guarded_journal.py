"""A guarded call with a journal: a good one is handed over at once and waits for nothing, a bad one waits to be safe."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

import rung
from rung.core.domain import events as ev
from rung.core.domain.request import Request
from rung.core.recovery.interventions import Intervention, InterventionType
from rung.store.backends.port import DurableFuture

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Short:
    """A journal that can be told later."""

    project = "p"

    def __init__(self) -> None:
        self.stories: list[list[ev.Event]] = []  # of good calls, as they are made when they are written
        self.notes: list[tuple[Callable[..., Sequence[ev.Event]], tuple[Any, ...]]] = []
        self.appended: list[tuple[int, list[ev.Event]]] = []

    def append(self, incident: str, first: int, events: Sequence[ev.Event]) -> None:
        self.appended.append((first, list(events)))

    def append_lazy(self, make: Callable[..., Sequence[ev.Event]], *values: Any) -> None:
        self.notes.append((make, values))

    def append_final(self, incident: str, first: int, events: Sequence[ev.Event]) -> None:
        Short.append(self, incident, first, events)

    def told(self) -> list[list[ev.Event]]:
        return [list(make(*values)) for make, values in self.notes]


class Long:
    """One that cannot."""

    project = "p"

    def __init__(self) -> None:
        self.events: list[ev.Event] = []

    def append(self, incident: str, first: int, events: Sequence[ev.Event]) -> None:
        self.events += events


def plain(events: Sequence[ev.Event]) -> list[Any]:
    """Without what differs from call to call: ids and times."""
    made: list[Any] = []
    for event in events:
        kept = event._replace(at=0.0)
        if isinstance(kept, ev.Opened):
            kept = kept._replace(id="", deadline=None if kept.deadline is None else 0.0)
        if isinstance(kept, ev.AttemptSucceeded | ev.AttemptFailed):
            kept = kept._replace(seconds=0.0)
        made.append(kept)
    return made


POLICIES: dict[str, dict[str, Any]] = {
    "limited": {"seconds": 60.0},
    "unlimited": {"seconds": None, "attempt_seconds": None},
}


def guarded(journal: Any, policy: str, function: Any) -> Any:
    chosen = rung.policy("call", backoff={"base": 0}, **POLICIES[policy])
    return rung.guarded(chosen, journal=journal, breakers=rung.BreakerRegistry(), retry_budget=None)(function)


def called(call: Any, *arguments: Any) -> Any:
    """A first call starts what watches, and goes the long way; this is the second."""
    value = call(*arguments)
    return asyncio.run(_awaited(value)) if hasattr(value, "__await__") else value


async def _awaited(value: Any) -> Any:
    return await value


def work(*_: Any) -> str:
    rung.report_step("a step")
    rung.report_cost(0.25)
    return "done"


async def awork(*_: Any) -> str:
    return work()


@pytest.mark.parametrize("arguments", [(), (Request(prompt="hello", model="small"),)], ids=["plain", "request"])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("function", [work, awork])
def test_same_events(function: Any, policy: str, arguments: tuple[Any, ...]) -> None:
    """What a good call leaves in the journal is what the engine would have left: model, steps and money, too."""
    short, long = Short(), Long()
    call = guarded(short, policy, function)
    called(call, *arguments)
    short.appended.clear()  # a first call may go the long way, to start what watches
    short.notes.clear()
    assert called(call, *arguments) == "done"
    assert called(guarded(long, policy, function), *arguments) == "done"
    assert short.appended == []
    (story,) = short.told()
    assert plain(story) == plain(long.events)
    assert story[-1].dollars == 0.25  # type: ignore[union-attr]
    opened = story[0]
    assert isinstance(opened, ev.Opened)
    assert opened.terms.project == "p"
    assert opened.id not in {"", short.told()[0][0].id}  # type: ignore[union-attr]  # drawn when it is made


def test_part_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """A good call inside a recovery says whose part it is."""
    short = Short()
    call = guarded(short, "unlimited", lambda: "done")
    outcome = rung.recover_sync(lambda _: call(), "do it", breakers=rung.BreakerRegistry())
    ((opened, _),) = short.told()
    assert isinstance(opened, ev.Opened)
    assert opened.parent == outcome.id


def test_journal_that_breaks() -> None:
    """A journal that cannot be told breaks nothing: the call went well, and is not made again."""

    class Broken(Short):
        def append_lazy(self, make: Callable[..., Sequence[ev.Event]], *values: Any) -> None:
            raise RuntimeError("no more threads")

    calls = []
    call = guarded(Broken(), "unlimited", lambda: calls.append(1))
    with pytest.warns(RuntimeWarning, match="journal failed and was ignored: RuntimeError: no more threads"):
        call()
    assert calls == [1]


class Waiting(Short):
    """Its appends are safe when somebody says so."""

    def __init__(self) -> None:
        super().__init__()
        self.futures: list[DurableFuture[None]] = []

    def append(self, incident: str, first: int, events: Sequence[ev.Event]) -> Any:
        super().append(incident, first, events)
        self.futures.append(DurableFuture())
        return self.futures[-1]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_bad_call_waits(policy: str) -> None:
    """What failed and what was decided about it is safe before the next attempt begins; a good call waits for nothing."""
    journal = Waiting()
    seen: list[bool] = []

    async def fails_once() -> str:
        if fails:
            fails.pop()
            raise ConnectionResetError("x")
        seen.append(bool(journal.futures) and all(future.done() for future in journal.futures))
        return "done"

    call = guarded(journal, policy, fails_once)

    async def main() -> None:
        assert await call() == "done"
        assert journal.futures == []
        fails.append(1)
        task = asyncio.ensure_future(call())
        for _ in range(50):
            await asyncio.sleep(0)
        assert not task.done()
        journal.futures[0].set_result(None)
        assert await task == "done"

    fails: list[int] = []
    asyncio.run(main())
    assert seen == [False, True]
    assert [type(event) for event in journal.appended[0][1]] == [ev.Opened, ev.AttemptFailed, ev.Decided]
    assert [type(event) for event in journal.appended[1][1]] == [ev.AttemptSucceeded]


def test_a_first_attempt_waits_for_nothing() -> None:
    """Nor does a recovery's: nothing was decided yet."""
    journal = Waiting()
    assert (
        rung.recover_sync(lambda _: "done", "do it", journal=journal, breakers=rung.BreakerRegistry()).value == "done"
    )
    assert not any(future.done() for future in journal.futures)


# -- a first repeat ---------------------------------------------------------------------------------------


def failing(errors: list[BaseException], *, awaited: bool) -> Any:
    """Raises these, one in each attempt; then it works."""

    def attempt() -> str:
        if errors:
            raise errors.pop(0)
        return work()

    async def aattempt() -> str:
        return attempt()

    return aattempt if awaited else attempt


def kept(journal: Any, errors: list[BaseException], policy: str = "limited", *, awaited: bool = False) -> Any:
    """What a call returns whose attempts raise these; it is not the first, which starts what watches."""
    coming: list[BaseException] = []
    call = guarded(journal, policy, failing(coming, awaited=awaited))
    called(call)
    for made in ("appended", "notes", "events"):
        getattr(journal, made, []).clear()
    coming += errors
    return called(call)


def reset() -> ConnectionResetError:
    return ConnectionResetError("x")


@pytest.mark.parametrize("awaited", [False, True])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("failures", [1, 2, 3])
def test_same_events_of_a_repeat(failures: int, policy: str, awaited: bool) -> None:
    """A call that fails and then succeeds leaves all of that, each part before it is acted on, in any journal."""
    short, long = Short(), Long()
    assert kept(short, [reset() for _ in range(failures)], policy, awaited=awaited) == "done"
    assert kept(long, [reset() for _ in range(failures)], policy, awaited=awaited) == "done"
    events = [event for _, part in short.appended for event in part]
    assert plain(events) == plain(long.events)
    assert [first for first, _ in short.appended] == [0, *range(3, 2 * failures + 2, 2)]
    assert short.notes == []


@pytest.mark.parametrize("awaited", [False, True])
def test_a_repeat_holds_others(awaited: bool) -> None:
    """What a repeated attempt does within itself is known as its part."""
    short, inner = Short(), Short()
    inside = guarded(inner, "unlimited", lambda: "done")
    errors: list[BaseException] = []
    attempt = failing(errors, awaited=False)

    def outer() -> str:
        value: str = attempt()
        if fails_first:
            inside()
        return value

    async def aouter() -> str:
        return outer()

    fails_first: list[BaseException] = []
    call = guarded(short, "limited", aouter if awaited else outer)
    called(call)
    short.appended.clear()
    fails_first.append(reset())
    errors += fails_first
    called(call)
    opened = short.appended[0][1][0]
    ((first, _),) = inner.told()
    assert isinstance(opened, ev.Opened)
    assert isinstance(first, ev.Opened)
    assert first.parent == opened.id


@pytest.mark.parametrize("awaited", [False, True])
def test_a_repeat_that_is_stopped(awaited: bool) -> None:
    """Ctrl-C in the repeated attempt passes through, and the journal knows how it ended."""
    short = Short()
    with pytest.raises(KeyboardInterrupt):
        kept(short, [reset(), KeyboardInterrupt()], awaited=awaited)
    assert [type(event) for _, part in short.appended for event in part][-1] is ev.Cancelled


@pytest.mark.parametrize("awaited", [False, True])
def test_a_journal_that_breaks_before_a_repeat(awaited: bool) -> None:
    """The work goes on; that it broke is said."""

    class Broken(Short):
        def append(self, incident: str, first: int, events: Sequence[ev.Event]) -> None:
            raise RuntimeError("no more threads")

        append_final = append

    with pytest.warns(RuntimeWarning, match="journal failed and was ignored: RuntimeError: no more threads"):
        assert kept(Broken(), [reset()], awaited=awaited) == "done"


@pytest.mark.parametrize("awaited", [False, True])
@pytest.mark.parametrize("is_late", [False, True])
def test_what_could_not_be_kept(awaited: bool, is_late: bool) -> None:
    """Nor does the work stop when what was handed over is refused, at once or in the end; and that is told, too."""

    class Refusing(Short):
        def append(self, incident: str, first: int, events: Sequence[ev.Event]) -> Any:
            super().append(incident, first, events)
            ticket: DurableFuture[None] = DurableFuture()
            if not is_late:
                ticket.set_exception(OSError("no room"))
                return ticket
            timers.append(threading.Timer(0.02, ticket.set_exception, [OSError("no room")]))
            timers[-1].start()
            return ticket

    timers: list[threading.Timer] = []
    journal = Refusing()
    with pytest.warns(RuntimeWarning, match="journal failed and was ignored: OSError: no room"):
        assert kept(journal, [reset()], awaited=awaited) == "done"
    for timer in timers:
        timer.join()
    assert ev.Crashed in [type(event) for _, part in journal.appended for event in part]


@pytest.mark.parametrize("awaited", [False, True])
def test_an_order_before_a_repeat(awaited: bool) -> None:
    """A person's order, given while a first repeat is waited for, is obeyed at once."""

    class OrderingJournal(Short):
        def intervention(self, incident: str) -> Intervention:
            return Intervention(action=InterventionType.CANCEL, by="ada")

        def model_for(self, session: str) -> str:
            return ""

    journal = OrderingJournal()
    policy = rung.policy("call", backoff={"base": 30, "jitter": False})
    errors: list[BaseException] = []
    call = rung.guarded(policy, journal=journal, breakers=rung.BreakerRegistry(), retry_budget=None)(
        failing(errors, awaited=awaited)
    )
    called(call)
    journal.appended.clear()
    errors.append(reset())
    with pytest.raises(ConnectionResetError) as raised:
        called(call)
    assert "stopped by ada" in raised.value.__notes__[0]
    assert [type(event) for _, part in journal.appended for event in part][-2:] == [ev.Ordered, ev.Closed]


@pytest.mark.parametrize("awaited", [False, True])
def test_what_helped_before_is_asked(awaited: bool) -> None:
    """Where the policy learns, the journal is asked at the first failure: the fast path does not decide."""

    class Remembering(Short):
        asked = 0

        def suggest_rung(self, project: str, failure: Any) -> None:
            self.asked += 1

    journal = Remembering()
    policy = rung.policy("call", backoff={"base": 0}, learn=True)
    errors: list[BaseException] = []
    call = rung.guarded(policy, journal=journal, breakers=rung.BreakerRegistry(), retry_budget=None)(
        failing(errors, awaited=awaited)
    )
    called(call)
    errors.append(reset())
    assert called(call) == "done"
    assert journal.asked == 1


@pytest.mark.parametrize("awaited", [False, True])
def test_how_it_ended_is_told_last(awaited: bool) -> None:
    """A journal that takes its time with ends is told of a saved call so; one that breaks there breaks nothing."""

    class Patient(Short):
        def __init__(self) -> None:
            super().__init__()
            self.last: list[tuple[int, list[ev.Event]]] = []

        def append_final(self, incident: str, first: int, events: Sequence[ev.Event]) -> None:
            self.last.append((first, list(events)))
            if broken:
                raise RuntimeError("no more threads")

    broken = False
    journal = Patient()
    assert kept(journal, [reset()], awaited=awaited) == "done"
    assert [type(event) for event in journal.appended[0][1]] == [ev.Opened, ev.AttemptFailed, ev.Decided]
    first, events = journal.last[-1]
    assert (first, [type(event) for event in events][-1]) == (3, ev.AttemptSucceeded)
    broken = True
    with pytest.warns(RuntimeWarning, match="journal failed and was ignored: RuntimeError: no more threads"):
        assert kept(journal, [reset()], awaited=awaited) == "done"
