"""Our own exceptions, all in one tree.

RungError
├── ConfigError      a ladder, policy, rung or setting that cannot be (also a ValueError)
├── AttemptError     raised by an attempt that knows what went wrong: carries evidence
├── Refused          we declined to make the attempt (circuit open): never transient
└── TimeUp           we ended the attempt: its time was up (also a TimeoutError)

Busy stands beside the tree: a store in trouble, met by those who write to it and waited out.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.core.failures import Evidence


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
        from rung.core.failures import Evidence

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
    from rung.core.failures import Kind, Phase

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


class Refused(RungError):
    """The attempt was not made: the circuit of its key is open for `retry_after` more seconds."""

    def __init__(self, key: str, retry_after: float) -> None:
        self.key = key
        self.retry_after = retry_after
        super().__init__(f"circuit {key!r} is open for another {retry_after:.1f} s")


class Busy(Exception):
    """A store could not do it just now: a full disk, a lock, a lost connection. It may work later."""


class TimeUp(RungError, TimeoutError):
    """We ended an attempt because its time was up; an attempt's own timeouts are not this."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(f"the attempt was ended after {seconds:g} s")
