"""A blocking attempt is really ended when its time is up, and nothing else ever is."""

from __future__ import annotations

import logging
import multiprocessing
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest

import rung
from rung.core.domain.errors import AttemptTimeout
from rung.core.domain.failures import Kind, Phase
from rung.engine.timeouts import sync_timeout
from rung.engine.timeouts.sync_timeout import (
    INTERRUPT_SIGNAL,
    MAIN_THREAD_ID,
    WATCHDOG,
    TimeoutWatchdog,
    call_with_timeout,
    unwatch,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LONG = 240.0  # what an attempt would take
SHORT = 0.1  # what it is given
SOON = 150.0  # less than an attempt would take, and than the watchdog's interval: the watchdog was woken


@pytest.fixture(autouse=True, scope="module")
def rare_polls() -> Iterator[None]:
    """Make the watchdog poll so rarely that an attempt ends in time only if it wakes the watchdog."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sync_timeout, "WATCHDOG_POLL_SECONDS", 600.0)
        WATCHDOG.wake_before(0.0)
        yield
    WATCHDOG.wake_before(0.0)


def sleep() -> None:
    time.sleep(LONG)


@contextmanager
def sleeping() -> Iterator[Callable[[], object]]:
    yield sleep


@contextmanager
def counting() -> Iterator[Callable[[], object]]:
    stop: list[int] = []

    def count() -> None:
        while not stop:
            pass

    yield count
    stop.append(1)  # for a straggler


@contextmanager
def receiving() -> Iterator[Callable[[], object]]:
    here, there = socket.socketpair()
    with here, there:
        yield lambda: here.recv(1)
        there.send(b"x")  # for a straggler


@contextmanager
def waiting_for_a_process() -> Iterator[Callable[[], object]]:
    process = subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({LONG})"])
    try:
        yield process.wait
    finally:
        process.kill()
        process.wait()


@contextmanager
def waiting_for_a_lock() -> Iterator[Callable[[], object]]:
    lock = threading.Lock()
    lock.acquire()
    yield lock.acquire
    lock.release()


@contextmanager
def waiting_for_an_event() -> Iterator[Callable[[], object]]:
    event = threading.Event()
    yield event.wait
    event.set()


BLOCKING = [counting, receiving, waiting_for_a_process, waiting_for_a_lock, waiting_for_an_event]


def how_long(function: Callable[[], object]) -> float:
    began = time.monotonic()
    function()
    return time.monotonic() - began


def in_thread(function: Callable[[], Any]) -> Any:
    """What the function returned, or raised, in a thread of its own."""
    box: list[Any] = []

    def work() -> None:
        try:
            box.append(function())
        except BaseException as error:
            box.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return box[0]


def alone(**settings: Any) -> dict[str, Any]:
    """Ports and a policy that share nothing with any other test."""
    policy = rung.policy("call", backoff={"base": 0}, **settings)
    return {"policy": policy, "breakers": rung.BreakerRegistry(), "retry_budget": rung.RetryBudget()}


@pytest.fixture(autouse=True)
def nobody_is_left() -> Iterator[None]:
    yield
    assert WATCHDOG.deadlines == []
    for thread in threading.enumerate():
        if thread.name == "rung-attempt":
            thread.join(LONG)
            assert not thread.is_alive()


@pytest.mark.parametrize("blocking", [sleeping, *BLOCKING])
def test_main_thread(blocking: Callable[[], AbstractContextManager[Callable[[], object]]]) -> None:
    """Whatever a blocking attempt in the main thread waits for, it is ended in the middle of it."""

    def attempt() -> None:
        with pytest.raises(AttemptTimeout) as caught:
            call_with_timeout(block, (), SHORT)
        assert caught.value.seconds == SHORT

    with blocking() as block:
        assert SHORT <= how_long(attempt) < SOON


@pytest.mark.parametrize("blocking", BLOCKING)
def test_worker_thread(blocking: Callable[[], AbstractContextManager[Callable[[], object]]]) -> None:
    """In a worker thread, control comes back on time, whatever the attempt waits for."""

    def attempt() -> None:
        error = in_thread(lambda: call_with_timeout(block, (), SHORT))
        assert isinstance(error, AttemptTimeout)
        assert error.seconds == SHORT

    with blocking() as block:
        assert SHORT <= how_long(attempt) < SOON


def test_its_name() -> None:
    """An attempt that was ended is a timeout in the phase of our own limit, and its ladder goes on."""
    outcome = rung.recover_sync(first_then(lambda _: sleep()), "x", **alone(attempt_seconds=SHORT))
    assert outcome.value == "good"
    assert outcome.failure is not None
    assert outcome.failure.kind is Kind.TIMEOUT
    assert outcome.failure.evidence.phase is Phase.LIMIT
    assert outcome.failure.rule == "attempt-time-up"
    assert outcome.attempts == 2


def test_stragglers_result_is_ignored() -> None:
    """What an attempt left behind in its thread returns later is nobody's result."""
    go_on, returned = threading.Event(), threading.Event()

    def straggle(_: object) -> str:
        go_on.wait(LONG)
        returned.set()
        return "the straggler's"

    def recover() -> rung.Outcome[str]:
        outcome = rung.recover_sync(first_then(straggle), "x", **alone(attempt_seconds=SHORT))
        go_on.set()
        assert returned.wait(SOON)
        return outcome

    outcome = in_thread(recover)
    assert outcome.value == "good"
    assert outcome.attempts == 2


def first_then(attempt: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """This attempt, and a good one after it."""
    attempts: Iterator[Callable[[Any], Any]] = iter([attempt, lambda _: "good"])

    def one(request: Any) -> Any:
        return next(attempts)(request)

    return one


def test_worker_thread_passes_on() -> None:
    """A value, an error and the caller's context pass through the thread of an attempt unchanged."""
    error = KeyError("mine")

    def fail() -> None:
        raise error

    assert in_thread(lambda: call_with_timeout(lambda a, b: a + b, (1, 2), LONG)) == 3
    assert in_thread(lambda: call_with_timeout(fail, (), LONG)) is error


def test_no_limit() -> None:
    """Without a limit a function is just called, in the thread it is called in."""
    assert call_with_timeout(threading.get_ident, (), None) == threading.get_ident()
    assert call_with_timeout(lambda a: a * 2, (21,), None) == 42


@pytest.mark.parametrize("run", [lambda function: function(), in_thread], ids=["main", "worker"])
def test_outer_limit_first(run: Callable[[Callable[[], Any]], Any]) -> None:
    """Where the outer limit is the shorter one, its own TimeUp is raised, and the inner one never shows."""
    inner: list[object] = []

    def attempt() -> None:
        try:
            call_with_timeout(time.sleep, (0.3,), 0.2)
        except AttemptTimeout as error:
            inner.append(error)

    def outer() -> object:
        with pytest.raises(AttemptTimeout) as caught:
            call_with_timeout(attempt, (), SHORT)
        return caught.value.seconds

    assert run(outer) == SHORT
    assert inner == []


@pytest.mark.parametrize("run", [lambda function: function(), in_thread], ids=["main", "worker"])
def test_inner_limit_first(run: Callable[[Callable[[], Any]], Any]) -> None:
    """Where the inner limit is the shorter one, the outer attempt sees its TimeUp and goes on."""

    def attempt() -> str:
        with counting() as count, pytest.raises(AttemptTimeout) as caught:
            call_with_timeout(count, (), SHORT)
        assert caught.value.seconds == SHORT
        return "went on"

    assert run(lambda: call_with_timeout(attempt, (), LONG)) == "went on"


def test_nested_to_the_bottom() -> None:
    """Of many nested attempts it is the outermost overdue one that ends, and all inside it with it."""
    ended: list[int] = []

    def attempt(depth: int) -> None:
        if depth == 6:
            sleep()
        try:
            call_with_timeout(attempt, (depth + 1,), SHORT if depth == 2 else LONG + depth)
        except AttemptTimeout:
            ended.append(depth)

    attempt(0)
    assert ended == [2]


def test_a_signal_while_an_attempt_is_released() -> None:
    """A signal that comes while an overdue attempt is being released does not leave it watched."""

    class Due(list[float]):
        def __len__(self) -> int:
            signal.raise_signal(INTERRUPT_SIGNAL or 0)
            return super().__len__()

    due = time.monotonic() - 1
    former, WATCHDOG.deadlines = WATCHDOG.deadlines, Due([due])
    try:
        assert unwatch(due) == 0
        assert list(WATCHDOG.deadlines) == []
    finally:
        WATCHDOG.deadlines = former


def test_releasing_what_is_not_watched() -> None:
    """Releasing an attempt that is not watched leaves the others alone."""

    def attempt() -> None:
        assert unwatch(1.0) == -1
        assert len(WATCHDOG.deadlines) == 2

    call_with_timeout(call_with_timeout, (attempt, (), LONG), LONG)


def test_a_catch_all_does_not_swallow_it() -> None:
    """An agent that catches every Exception, for ever, is ended all the same."""

    def stubborn() -> None:
        while True:
            try:
                time.sleep(LONG)
            except Exception:
                continue

    with pytest.raises(AttemptTimeout):
        call_with_timeout(stubborn, (), SHORT)


def test_it_insists() -> None:
    """An attempt that swallows even our BaseException is ended again and again until it ends."""
    swallowed: list[BaseException] = []

    def deaf() -> None:
        while True:
            try:
                time.sleep(LONG)
            except BaseException as error:
                swallowed.append(error)
                if len(swallowed) == 2:
                    raise

    with pytest.raises(AttemptTimeout):
        call_with_timeout(deaf, (), SHORT)
    assert len(swallowed) == 2


def test_tidying_up() -> None:
    """What an attempt does in its `finally` when it is ended is not cut short, nor are attempts it makes there."""
    tidied: list[float] = []

    def attempt() -> None:
        try:
            sleep()
        finally:
            began = time.monotonic()
            call_with_timeout(time.sleep, (0.1,), sync_timeout.RESIGNAL_SECONDS / 2)
            time.sleep(0.1)
            tidied.append(time.monotonic() - began)

    with pytest.raises(AttemptTimeout):
        call_with_timeout(attempt, (), SHORT)
    assert tidied[0] >= 0.2


def test_tidying_up_within_an_outer_limit() -> None:
    """An outer attempt whose time is up does not wait for the tidying up of an inner one."""

    def attempt() -> None:
        try:
            call_with_timeout(sleep, (), SHORT)
        finally:
            sleep()

    def outer() -> None:
        with pytest.raises(AttemptTimeout) as caught:
            call_with_timeout(attempt, (), 0.2)
        assert caught.value.seconds == 0.2

    assert how_long(outer) < LONG / 2  # the tidying up takes LONG


@contextmanager
def pestered() -> Iterator[None]:
    """The main thread in a rain of signals. One that hits a finalizer is swallowed, and reported, by Python itself."""
    calm = threading.Event()

    def pester() -> None:
        while not calm.is_set():
            signal.pthread_kill(MAIN_THREAD_ID or 0, INTERRUPT_SIGNAL or 0)
            time.sleep(0)

    pest = threading.Thread(target=pester)
    hook, switch = sys.unraisablehook, sys.getswitchinterval()
    sys.unraisablehook = lambda _: None
    sys.setswitchinterval(1e-5)
    pest.start()
    try:
        yield
    finally:
        calm.set()
        pest.join()
        sys.setswitchinterval(switch)
        sys.unraisablehook = hook


@pytest.mark.stress
def test_an_attempt_that_ends_in_time_is_never_hit() -> None:
    """However close to its limit an attempt ends, it returns or is ended, and no signal comes after it."""
    chance = random.Random(20)
    endings = {"came back": 0, "raised": 0, "ended": 0}

    def work(seconds: float) -> str:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            pass
        if chance.random() < 0.3:
            raise KeyError(seconds)
        return "came back"

    with pestered():
        for _ in range(3_000):
            began = time.monotonic()
            try:
                endings[call_with_timeout(work, (chance.uniform(0, 0.001),), 0.0005)] += 1
            except KeyError:
                endings["raised"] += 1
            except AttemptTimeout:
                assert time.monotonic() - began >= 0.0005
                endings["ended"] += 1
            assert WATCHDOG.deadlines == []
    assert all(endings.values())


@pytest.mark.stress
def test_an_outer_limit_passes_through_inner_bookkeeping() -> None:
    """Where the outer attempt's time is up while an inner one begins or ends, it is still the outer's end."""

    @rung.guarded(rung.policy("call", backoff={"base": 0}), breakers=calm_breakers(), retry_budget=None)
    def flaky(failures: Iterator[bool]) -> None:
        if next(failures):
            raise ConnectionError

    def attempt() -> None:
        while True:
            flaky(iter([True, False]))
            call_with_timeout(int, (), LONG)

    flaky(iter([False]))
    with pestered():
        for _ in range(300):
            with pytest.raises(AttemptTimeout) as caught:
                call_with_timeout(attempt, (), 0.002)
            assert caught.value.seconds == 0.002
            assert WATCHDOG.deadlines == []
    with pytest.raises(AttemptTimeout):  # and the watchdog has not been hurt
        call_with_timeout(time.sleep, (SOON,), SHORT)


class SlowHandler(logging.Handler):
    """Log handler that is still at work when the time of the attempt is up."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds
        self.written: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        until = time.monotonic() + self.seconds
        while time.monotonic() < until:
            pass
        self.written.append(record.getMessage())


def test_an_attempt_is_not_interrupted_while_it_logs() -> None:
    """An attempt whose time is up while it writes a log record is interrupted after the record is written."""
    handler = SlowHandler(0.3)

    def attempt() -> None:
        handler.handle(logging.makeLogRecord({"msg": "first"}))
        time.sleep(60)

    with pytest.raises(AttemptTimeout):
        call_with_timeout(attempt, (), 0.05)
    assert handler.written == ["first"]


def test_a_log_handler_that_hangs_is_interrupted() -> None:
    """The time limit also ends an attempt that hangs in a log handler."""
    handler = SlowHandler(60)
    with pytest.raises(AttemptTimeout):
        call_with_timeout(handler.handle, (logging.makeLogRecord({"msg": "text"}),), 0.05)
    assert handler.written == []


def calm_breakers() -> rung.BreakerRegistry:
    return rung.BreakerRegistry(rung.BreakerSettings(rate=1.0, minimum=10_000))


@pytest.mark.stress
def test_an_attempt_that_begins_while_the_watchdog_looks_is_seen() -> None:
    """An attempt that begins after the watchdog has looked, and before it sleeps, still wakes it."""
    signals: list[float] = []
    began = time.monotonic()

    class Dog(TimeoutWatchdog):
        def _on_signal(self, number: int, frame: Any) -> None:
            signals.append(time.monotonic())
            self.deadlines.clear()

    watchdog = Dog()

    class Due(list[float]):
        """Grows by one attempt just when it has been looked at for the first time."""

        def copy(self) -> list[float]:
            seen = super().copy()
            if began not in signals:
                signals.append(began)
                self.append(began + SHORT)
                watchdog.wake_before(began + SHORT)
            return seen

    watchdog.deadlines = Due()
    former = signal.getsignal(INTERRUPT_SIGNAL or 0)
    try:
        watchdog.start()
        with suppress(TimeoutError):
            wait_until(lambda: len(signals) > 1)
    finally:
        signal.signal(INTERRUPT_SIGNAL or 0, former)
    assert len(signals) == 2
    assert signals[1] - began < SOON


def wait_until(true: Callable[[], bool], seconds: float = SOON) -> None:
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.005)


def test_foreign_signals_go_where_they_went() -> None:
    """A handler that was there before us is still called for signals that are not ours."""
    seen: list[int] = []
    ours = signal.signal(INTERRUPT_SIGNAL or 0, lambda number, _frame: seen.append(number))
    try:
        watchdog = TimeoutWatchdog()
        watchdog.start()
        watchdog.start()  # does nothing, and does not make us our own former handler
        os.kill(os.getpid(), INTERRUPT_SIGNAL or 0)
        wait_until(lambda: bool(seen))
    finally:
        signal.signal(INTERRUPT_SIGNAL or 0, ours)
    assert seen == [INTERRUPT_SIGNAL]


def test_foreign_signals_without_a_handler() -> None:
    """Where nobody handled the signal before us, one that is not ours does nothing."""
    call_with_timeout(int, (), LONG)
    signal.raise_signal(INTERRUPT_SIGNAL or 0)
    assert call_with_timeout(int, (), LONG) == 0


@contextmanager
def displaced() -> Iterator[None]:
    """Other code takes our signal, and does not care whose it was."""
    call_with_timeout(int, (), LONG)  # ours is in place
    ours = signal.signal(INTERRUPT_SIGNAL or 0, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(INTERRUPT_SIGNAL or 0, ours)
        call_with_timeout(int, (), LONG)


def test_a_handler_in_the_place_of_ours() -> None:
    """Limits in the main thread hold all the same, and it is said once, each time that it happens."""
    for _ in range(2):
        with displaced(), waiting_for_an_event() as block:
            with pytest.warns(RuntimeWarning, match="SIGURG"), pytest.raises(AttemptTimeout):
                call_with_timeout(block, (), SHORT)
            with pytest.raises(AttemptTimeout):
                call_with_timeout(block, (), SHORT)
    with pytest.raises(AttemptTimeout):
        call_with_timeout(sleep, (), SHORT)
    assert call_with_timeout(threading.get_ident, (), LONG) == MAIN_THREAD_ID


def test_the_short_way_is_closed_when_ours_is_gone() -> None:
    """Guarded calls notice that nobody could end them any more, and when somebody can again."""
    breakers = rung.BreakerRegistry()
    breaker = breakers.get("k")
    call = rung.guarded(rung.policy("call"), breakers=breakers, key="k", retry_budget=None)(threading.get_ident)
    call()
    assert (breaker.fast_path_thread, call()) == (MAIN_THREAD_ID, MAIN_THREAD_ID)
    with displaced():
        WATCHDOG.wake_before(0.0)
        wait_until(lambda: breaker.fast_path_thread is None)
        with pytest.warns(RuntimeWarning, match="SIGURG"):
            assert call() != MAIN_THREAD_ID
        assert (breaker.fast_path_thread, call() != MAIN_THREAD_ID) == (None, True)
    call()
    assert (breaker.fast_path_thread, call()) == (MAIN_THREAD_ID, MAIN_THREAD_ID)


FORK = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork.*:DeprecationWarning")


def forked(function: Callable[[], Any]) -> tuple[Callable[[], Any], Any]:
    """The function begun in a forked process: how to get its result, and the process."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def child() -> None:
        try:
            sender.send(function())
        except BaseException as error:
            sender.send(repr(error))

    process = context.Process(target=child)
    process.start()

    def result() -> Any:
        assert receiver.poll(LONG)
        value = receiver.recv()
        process.join()
        return value

    return result, process


@FORK
def test_after_a_fork() -> None:
    """In a forked process blocking attempts are ended as they were in its parent."""
    with pytest.raises(AttemptTimeout):
        call_with_timeout(sleep, (), SHORT)

    def child() -> bool:
        def attempt() -> None:
            with suppress(AttemptTimeout):
                call_with_timeout(sleep, (), SHORT)

        return how_long(attempt) < SOON

    result, _ = forked(child)
    assert result() is True


@FORK
def test_forked_inside_an_attempt() -> None:
    """A process forked inside an attempt lives on when that attempt's time would be up."""

    def child() -> str:
        time.sleep(1.3)
        return "alive"

    result, process = call_with_timeout(forked, (child,), 1.2)
    assert result() == "alive"
    assert process.exitcode == 0


def test_what_a_child_begins_with() -> None:
    """A child forgets when its parent's attempts are due, not how many there are: each is still released once."""
    watchdog = TimeoutWatchdog()
    watchdog.deadlines = due = [1.0, 2.0]
    watchdog.restart_in_child()
    assert watchdog.deadlines is due
    assert due == [float("inf")] * 2


@FORK
def test_forked_in_a_worker_thread() -> None:
    """A process forked in a worker thread has no main thread to signal, and is ended on time nevertheless."""

    def child() -> bool:
        def attempt() -> None:
            with suppress(AttemptTimeout):
                call_with_timeout(sleep, (), SHORT)

        return how_long(attempt) < SOON

    def attempt() -> Any:
        result, _ = in_thread(lambda: forked(child))
        return result()

    assert call_with_timeout(attempt, (), LONG) is True


def test_waking_a_watchdog_that_wakes() -> None:
    """Waking it twice is as good as once: the next attempt is ended on time."""
    call_with_timeout(int, (), LONG)
    WATCHDOG.wake_before(0.0)
    WATCHDOG.wake_before(0.0)
    with pytest.raises(AttemptTimeout):
        call_with_timeout(sleep, (), SHORT)


def test_it_does_not_insist_all_the_time() -> None:
    """An attempt that goes on although its time is up is hit again after a pause, not without end."""
    hits: list[float] = []

    def stubborn() -> None:
        end = time.monotonic() + 0.3
        while time.monotonic() < end:
            try:
                WATCHDOG.wake_before(0.0)
                time.sleep(0.002)
            except sync_timeout.AttemptInterrupt:
                hits.append(time.monotonic())

    with suppress(AttemptTimeout):
        call_with_timeout(stubborn, (), 0.02)
    assert 1 <= len(hits) < 60
