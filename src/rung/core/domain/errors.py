"""Every exception of Rung, in one tree.

RungError                        base of all errors that reach a caller; picklable
├── ConfigError                  a ladder, policy, rung or setting is invalid (also a ValueError)
│   ├── FileError                a settings file cannot be read or is invalid
│   └── AlreadyThere             another resident hook server owns the directory: hooks/serving
├── AttemptError                 raised by an attempt that knows what went wrong; carries evidence
│   └── Answered                 an HTTP error response as evidence: adapters/{anthropic_middleware,httpx_transport}
├── Refused                      the circuit is open, the attempt was not made; never transient
├── TimeUp                       the attempt was ended at its time limit (also a TimeoutError)
├── StoreError                   a journal or a crew's table cannot be used as it is
│   ├── ReadOnly                 it can be read, but not written
│   └── Stale                    a setting was changed by somebody else meanwhile
├── Busy                         a store cannot be used at the moment; a later try may succeed
├── Taken                        a durable run belongs to a living process
├── IllegalMove                  a crew's table refused a transition of a task
├── StaleClaim                   a worker's lease of a task has expired
├── MovedOn                      a task changed since somebody decided about it
├── ClaimBlocked                 a task cannot be claimed
├── NothingToClaim               no task can be claimed
├── ExitAsked                    the conductor asked a worker to stop
├── CheckpointError              a git checkpoint could not be taken, found or restored
├── JudgeError                   a judge gave no verdict
└── NotJson                      a request body is not a JSON object: gateway/call

BaseException, so that no `except Exception` of an agent swallows it:
├── Fenced                       a durable run belongs to another process now
├── Overdue                      interrupts a blocking attempt at its time limit: engine/interrupt
└── _Stop                        ends the threads of a fan-out: engine/fanout

Signals inside one package, never seen by a caller:
    Blocked                      adapters/user_hooks: a hook rejected the attempt
    CannotChange                 gateway/changes: a rung cannot be applied to this body
    Refusal                      gateway/keys: a request is rejected before it is forwarded
    TooLarge, Gone, Late         gateway/app: reading a request body failed
    OutOfTime                    hooks/entry: a hook's time limit
    Problem                      service/problems: becomes an HTTP error response
    Misuse                       cli/group: becomes one line on stderr and exit code 2
    HttpError, Invalid           testing: scripted errors, and requests the fake provider rejects

Errors of other libraries are mapped where they enter: SQLite and PostgreSQL in the store's connections, SDKs in the
adapters, the operating system in the module that makes the call.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.core.domain.failures import Evidence


class RungError(Exception):
    """Base of every exception that is Rung's own. All can be copied, and sent to another process."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), self.args), self.__dict__


def _again(kind: type[RungError], args: tuple[Any, ...]) -> RungError:
    """The error without its constructor, which wants other arguments than its text."""
    error = kind.__new__(kind)
    error.args = args
    return error


class ConfigError(RungError, ValueError):
    """A value that cannot be used, with the key, the value and what is allowed."""

    def __init__(self, key: str, value: object, allowed: str) -> None:
        self.key = key
        self.value = value
        self.allowed = allowed
        super().__init__(f"{key}: {value!r} is invalid; must be {allowed}")

    def under(self, prefix: str) -> ConfigError:
        """The same error, its key seen from one table further out."""
        return ConfigError(f"{prefix}.{self.key}", self.value, self.allowed)


def is_number(value: object, least: float = 0.0) -> bool:
    """Whether this is a finite number (an integer that no float can hold is none) and no less than that."""
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= sys.float_info.max


def is_whole(value: object, least: int = 0) -> bool:
    """Whether this is a whole number and no less than that."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


class AttemptError(RungError):
    """What an attempt raises when it knows more than an exception's text could say.

    >>> raise AttemptError("three sections are missing", finding="partial_output",
    ...                    missing=("tests", "docs"), output=draft)
    """

    def __init__(self, text: str = "", **facts: Any) -> None:
        from rung.core.domain.failures import Evidence

        self.evidence: Evidence = Evidence(**_checked({**facts, "text": text}))
        super().__init__(text)

    @classmethod
    def of(cls, evidence: Evidence) -> AttemptError:
        """The error that carries this evidence."""
        error = cls(evidence.text)
        error.evidence = evidence
        return error


def _checked(facts: dict[str, Any]) -> dict[str, Any]:
    """Facts of the right types: no type checker may have seen them, and classify and decide rely on them."""
    from rung.core.domain.failures import Kind, Phase

    facts = {name: fact for name, fact in facts.items() if fact is not None}
    for name, (fits, allowed) in _FACTS.items():
        if name in facts and not fits(facts[name]):
            raise ConfigError(name, facts[name], allowed)
    for name, choices in (("finding", Kind), ("phase", Phase)):
        if name in facts:
            if facts[name] not in tuple(choices):
                raise ConfigError(name, facts[name], "one of " + ", ".join(choices))
            facts[name] = choices(facts[name])
    return facts | {name: tuple(facts[name]) for name in ("missing", "exceptions") if name in facts}


def _is_text(fact: object) -> bool:
    return isinstance(fact, str)


def _is_texts(fact: object) -> bool:
    return isinstance(fact, list | tuple) and all(isinstance(part, str) for part in fact)


_FACTS: Final[dict[str, tuple[Callable[[Any], bool], str]]] = {
    **dict.fromkeys(("text", "code", "output", "stack", "tool"), (_is_text, "a text")),
    **dict.fromkeys(("status", "errno", "exit_code", "signal"), (lambda fact: isinstance(fact, int), "a whole number")),
    **dict.fromkeys(("missing", "exceptions"), (_is_texts, "a list of texts")),
    "repeats": (is_whole, "a whole number, 0 or more"),
    "retry_after": (is_number, "seconds, 0 or more"),
}


class CircuitOpenError(RungError):
    """The attempt was not made: the circuit of its key is open for `retry_after` more seconds."""

    def __init__(self, key: str, retry_after: float) -> None:
        self.key = key
        self.retry_after = retry_after
        super().__init__(f"circuit {key!r} is open for another {retry_after:.1f} s")


class AttemptTimeout(RungError, TimeoutError):
    """We ended an attempt because its time was up; an attempt's own timeouts are not this."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(f"the attempt was ended after {seconds:g} s")


class FileError(ConfigError):
    """A settings file cannot be read or is invalid; the message names the file."""

    def __init__(self, path: object, what: str, key: str = "file", value: object = None, allowed: str = "") -> None:
        super().__init__(key, str(path) if value is None else value, allowed or "a TOML file that can be read")
        self.path = str(path)
        self.args = (f"{path}: {what}",)


# -- stores -------------------------------------------------------------------------------------------


class StoreError(RungError):
    """A store cannot be used as it is; the message says why, in one line."""


class JournalReadOnly(StoreError):
    """A store can be read, but not written."""


class VersionConflict(StoreError):
    """A setting was changed by somebody else since it was read."""

    def __init__(self, name: str, expected: int, found: int) -> None:
        super().__init__(f"{name}: somebody has changed it meanwhile (version {found}, not {expected})")
        self.found = found


class StoreUnavailable(RungError):
    """A store cannot be used at the moment: a full disk, a lock, a lost connection. A later try may succeed."""


class RunOwnedElsewhere(RungError):
    """A durable run belongs to a living process."""

    def __init__(self, run: str, why: str) -> None:
        super().__init__(f"run {run!r} cannot be taken up: {why}")


class LeaseLost(BaseException):
    """A durable run belongs to another process now: writes of its former owner are refused.

    No Exception, so that no catch-all of an agent goes on working for a run that is no longer its own.
    """


# -- crews --------------------------------------------------------------------------------------------


class IllegalTransition(RungError):
    """A crew's table refused a transition; the message says which are legal, and who may make them."""


class LeaseExpired(RungError):
    """The task is no longer this worker's: its writes are refused, and it should stop."""


class TaskChanged(RungError):
    """The task changed since somebody decided about it; nothing was written."""


class ClaimBlocked(RungError):
    """Somebody else has the task, or nobody may claim it; the session's fallback row and a message say so."""

    def __init__(self, task_id: str, session: str, why: str) -> None:
        self.task_id = task_id
        self.session = session
        super().__init__(f"{task_id} cannot be claimed by {session}: {why}")


class NoTaskAvailable(RungError):
    """No task can be claimed: each is claimed, waits for another, or has ended."""


class StopRequested(RungError):
    """The conductor asked this worker to stop; `with Worker(…)` then hands over and ends quietly."""


# -- adapters -----------------------------------------------------------------------------------------


class CheckpointError(RungError):
    """A checkpoint could not be taken, found or restored; the message says where and why."""


class JudgeError(RungError):
    """The judge could not be asked, took too long, or gave no verdict."""
