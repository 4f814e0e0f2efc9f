"""Our own exceptions, all in one tree.

RungError
├── ConfigError      a ladder, policy, rung or setting that cannot be (also a ValueError)
├── AttemptError     raised by an attempt that knows what went wrong: carries evidence
├── Refused          we declined to make the attempt (circuit open): never transient
└── TimeUp           we ended the attempt: its time was up (also a TimeoutError)
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rung.core.failures import Evidence


class RungError(Exception):
    """Base of every exception that is Rung's own."""


class ConfigError(RungError, ValueError):
    """A value that cannot be used, with the key, the value and what is allowed."""

    def __init__(self, key: str, value: object, allowed: str) -> None:
        self.key = key
        self.value = value
        self.allowed = allowed
        super().__init__(f"{key} = {value!r}: allowed is {allowed}")

    def under(self, prefix: str) -> ConfigError:
        """The same error, its key seen from one table further out."""
        return ConfigError(f"{prefix}.{self.key}", self.value, self.allowed)


def is_number(value: object, least: float = 0.0) -> bool:
    """Is this a finite number (an integer no float can hold is none), and no less than this?"""
    return (
        isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= sys.float_info.max
    )


def is_whole(value: object, least: int = 0) -> bool:
    """Is this a whole number, and no less than this?"""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


class AttemptError(RungError):
    """What an attempt raises when it knows more than an exception's text could say.

    >>> raise AttemptError("three sections are missing", finding="partial_output",
    ...                    missing=("tests", "docs"), output=draft)
    """

    def __init__(self, text: str = "", **facts: Any) -> None:
        from rung.core.failures import Evidence, Kind, Phase

        finding = facts.pop("finding", None)
        facts["phase"] = Phase(facts.get("phase", "call"))
        self.evidence: Evidence = Evidence(text=text, finding=None if finding is None else Kind(finding), **facts)
        super().__init__(text)


class Refused(RungError):
    """The attempt was not made: the circuit of its key is open for `retry_after` more seconds."""

    def __init__(self, key: str, retry_after: float) -> None:
        self.key = key
        self.retry_after = retry_after
        super().__init__(f"circuit {key!r} is open for another {retry_after:.1f} s")


class TimeUp(RungError, TimeoutError):
    """We ended an attempt because its time was up; an attempt's own timeouts are not this."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(f"the attempt was ended after {seconds:g} s")
