"""Facts about an error: the values that classification rules match against."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.core.classify.lazy_regex import LazyPattern
from rung.core.classify.phrases import normalized, words_of
from rung.core.classify.retry_after import wait_in_text
from rung.core.domain.failures import Phase

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.core.domain.failures import Evidence

_HUMP: Final = LazyPattern(r"(?<=[a-z0-9])(?=[A-Z])")
_APART: Final = ("|",) * 20  # more words than a statement spans: a code is a statement of its own
MAX_OUTPUT_WORDS: Final = 120  # of a tool's output in which statements are searched: its end says why it failed


def snake_case(name: str) -> str:
    """Return a name with its humps as words: "ModelNotOpen" as "model_not_open"."""
    return _HUMP.sub("_", name).lower()


class Facts:
    """The fields of an `Evidence` and of its text; expensive ones are computed on first use."""

    __slots__ = (
        "_message_text",
        "_output",
        "_wait",
        "_wait_resolved",
        "all_words",
        "codes",
        "errno",
        "exception_names",
        "exit_code",
        "message",
        "message_words",
        "phase",
        "provider",
        "raw",
        "status",
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
        if self.codes and not evidence.code.islower():
            self.codes.update(snake_case(evidence.code).split())
        self.exception_names: set[str] = (
            {name.rpartition(".")[2] for name in evidence.exceptions} if evidence.exceptions else set()
        )
        self.raw = evidence.text
        self.message = ""  # the error message, as reported
        self.words: Sequence[str] = ()  # normalized words of the text
        self.message_words: Sequence[str] = ()  # of the service's own message; usually the whole text
        self.all_words: set[str] = set()  # every word of both
        self._output: str | None = None
        self._message_text: str | None = None
        self._wait_resolved = self._wait is not None

    @property
    def output(self) -> str:
        """Normalized text, in which `output_has` phrases are searched."""
        if self._output is None:
            self._output = normalized(self.words)
        return self._output

    @property
    def message_text(self) -> str:
        """Normalized message of the service, in which `message_has` phrases are searched."""
        if self.message_words is self.words:
            return self.output
        if self._message_text is None:
            self._message_text = normalized(self.message_words)
        return self._message_text

    @property
    def statement_words(self) -> Sequence[str]:
        """Words in which statements are searched: the service's message and codes, or the end of a tool's output."""
        if self.phase is Phase.TOOL and not self.message_words:
            return self.words[-MAX_OUTPUT_WORDS:]
        codes = sorted(code for code in self.codes if "_" in code or "-" in code)
        return [*self.message_words, *_APART, *words_of("\n".join(codes))] if codes else self.message_words

    @property
    def class_words(self) -> Sequence[str]:
        """Words of the exception classes, in which statements are searched where the message makes none."""
        return words_of("\n".join(map(snake_case, sorted(self.exception_names))))

    @property
    def wait(self) -> float | None:
        """Seconds that the server asks to wait, from the headers or the text."""
        if not self._wait_resolved:
            self._wait_resolved = True
            self._wait = wait_in_text(self.raw)
        return self._wait
