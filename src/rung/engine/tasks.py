"""Functions that any process can take up again: registered by name, with JSON arguments, made of steps.

Inside one, `step` does something once, `sleep` waits until a moment that is written down, and `wait` waits
for a word from outside. What is between the steps runs again after a crash: it must not do anything by itself.
"""

from __future__ import annotations

import time
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, TypeVar

from rung.core.classify import classify
from rung.core.errors import ConfigError, RungError
from rung.core.evidence import evidence_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.engine.durable import Claim

F = TypeVar("F", bound="Callable[..., Any]")

TASKS: Final[dict[str, Callable[..., Any]]] = {}
POLL: Final = 0.05  # between looks for a word from outside
SLICE: Final = 30.0  # of a long sleep, so that a machine that slept is noticed
_MISSING: Final = object()


class Work:
    """A task at work: the run it is, and what of it is done."""

    def __init__(self, claim: Claim, hear: Callable[[str], Any], now: Callable[[], float] = time.time) -> None:
        self.claim = claim
        self.done = claim.steps()
        self._hear = hear
        self._now = now

    def step(self, key: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """The result of a step: done now, or known from before."""
        known = self.done.get(key, _MISSING)
        if known is not _MISSING:
            return known
        result = function(*arguments)
        self.claim.record(key, result)
        self.done[key] = result
        return result

    def sleep(self, key: str, seconds: float) -> None:
        """Wait until the moment that was written down when this was first reached."""
        until = self.step(key, lambda: self._now() + seconds, ())
        while (left := until - self._now()) > 0:
            time.sleep(min(left, SLICE))

    def wait(self, topic: str, timeout: float | None) -> Any:
        """What somebody says about a topic of this run; None when nobody does in time."""
        key = f"wait.{topic}"
        known = self.done.get(key, _MISSING)
        if known is not _MISSING:
            return known
        until = None if timeout is None else self.step(f"{key}.until", lambda: self._now() + timeout, ())
        while True:
            told = self._hear(f"{self.claim.run}/{topic}")
            if told is not None or (until is not None and self._now() >= until):
                return self.step(key, lambda told=told: told, ())
            time.sleep(POLL)


WORK: ContextVar[Work | None] = ContextVar("rung_work", default=None)


def task(name: str) -> Callable[[F], F]:
    """Register a function by name, so that any process that has imported it can take up its runs.

    >>> @rung.task("report")
    ... def report(day: str) -> dict: ...
    """
    if not isinstance(name, str) or not name:
        raise ConfigError("name", name, 'a text: @rung.task("name")')

    def register(function: F) -> F:
        if TASKS.get(name) not in {None, function}:
            raise ConfigError("name", name, "a name that no other task has")
        TASKS[name] = function
        return function

    return register


def step(key: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Do this once in the run, whatever happens to its process: what it returned (JSON) is kept."""
    return _here().step(key, function, arguments)


def sleep(key: str, seconds: float) -> None:
    """Wait; taken up again later, only until the moment that was meant."""
    _here().sleep(key, seconds)


def wait(topic: str, timeout: float | None = None) -> Any:
    """Wait for a word from outside (`journal.runs.send("RUN/TOPIC", …)`); None when the time is up."""
    return _here().wait(topic, timeout)


def _here() -> Work:
    work = WORK.get()
    if work is None:
        raise RungError("this can be called only inside a task that runs: see rung.task and rung.start")
    return work


def start(journal: Any, run: str, name: str, **arguments: Any) -> Any:
    """Run a task to its end in this process, from its beginning or from where it was cut off; its result."""
    if name not in TASKS:
        raise ConfigError("name", name, f"a registered task: {', '.join(sorted(TASKS)) or 'there is none'}")
    return _carry(journal, journal.runs.claim(run, name, arguments), TASKS[name], arguments)


def resume(journal: Any) -> dict[str, Any]:
    """Take up every run that nobody has and whose task is known here; what each came to, or what it raised."""
    ended: dict[str, Any] = {}
    for run in journal.runs.open_runs():
        if not run.owned and run.task in TASKS:
            try:
                ended[run.id] = start(journal, run.id, run.task, **run.arguments)
            except Exception as error:  # one run's trouble is not the next one's
                ended[run.id] = error
    return ended


def _carry(journal: Any, claim: Claim, function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    if claim.done is not None:
        return _result(claim.done)
    if claim.exhausted:
        ended = {"status": "partial", "reason": "it was taken up three times and got no further"}
        claim.finish(ended)
        return _result(ended)
    with claim:
        token = WORK.set(Work(claim, journal.runs.received))
        try:
            value = function(**arguments)
        except Exception as error:
            failure = classify(evidence_of(error))
            claim.finish({"status": "failed", "kind": failure.kind.value, "reason": failure.message})
            raise
        finally:
            WORK.reset(token)
        claim.finish({"status": "succeeded", "value": value})
    return value


def _result(done: dict[str, Any]) -> Any:
    if done.get("status") == "succeeded":
        return done.get("value")
    raise RungError(f"the run ended {done.get('status')}: {done.get('reason')}")
