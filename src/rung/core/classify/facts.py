"""Facts about a failure: what the rules match against."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rung.core.classify.phrases import shaped
from rung.core.classify.retry_after import wait_in_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.core.domain.failures import Evidence


class Facts:
    """The fields of an evidence, and what its text says; long parts are computed when a rule asks for them."""

    __slots__ = (
        "_output",
        "_said",
        "_wait",
        "_waited",
        "codes",
        "errno",
        "exit_code",
        "message",
        "names",
        "phase",
        "provider",
        "raw",
        "said_words",
        "status",
        "there",
        "words",
    )

    def __init__(self, evidence: Evidence) -> None:
        self.status = evidence.status
        self.errno = evidence.errno
        self.exit_code = evidence.exit_code
        self.phase = evidence.phase
        self.provider = evidence.provider.lower()
        self._wait = evidence.retry_after
        self.codes: set[str] = set(evidence.code.lower().split()) if evidence.code else set()
        self.names: set[str] = (
            {name.rpartition(".")[2] for name in evidence.exceptions} if evidence.exceptions else set()
        )
        self.raw = evidence.text
        self.message = ""  # what the machine said, as it said it
        self.words: Sequence[str] = ()  # of the text
        self.said_words: Sequence[str] = ()  # of the part of it in which a service speaks of itself: mostly all of it
        self.there: set[str] = set()  # every word of both
        self._output: str | None = None
        self._said: str | None = None
        self._waited = self._wait is not None

    @property
    def output(self) -> str:
        """The text in the one shape; made when a phrase has to be looked for in it."""
        if self._output is None:
            self._output = shaped(self.words)
        return self._output

    @property
    def said(self) -> str:
        """That part of it in which a service speaks of itself."""
        if self.said_words is self.words:
            return self.output
        if self._said is None:
            self._said = shaped(self.said_words)
        return self._said

    @property
    def wait(self) -> float | None:
        """Seconds we are asked to wait, in headers or in words; looked for when a rule wants to know."""
        if not self._waited:
            self._waited = True
            self._wait = wait_in_text(self.raw)
        return self._wait
