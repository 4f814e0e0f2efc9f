"""The parts of an error's text that are matched: its start and its end, without what it quotes."""

from __future__ import annotations

from typing import Final

from rung.core.classify.lazy_regex import LazyPattern

HEAD: Final = 1_400  # characters of a long text that are matched: its start shows the operation,
TAIL: Final = 1_800  # its end shows the error
HEADLINE_CHARS: Final = 400  # the status and the class are searched here
# What follows the name of such an exception is the program's own text, not the message of a service.
OWN_BUGS: Final = frozenset({
    "AssertionError", "AttributeError", "IndexError", "KeyError", "NameError", "UnboundLocalError",
    "ZeroDivisionError",
})  # fmt: skip
AWS_CODE: Final = LazyPattern(r"rror occurred \((\w{3,60})\) when calling")


def head_and_tail(text: str) -> str:
    """Return the start and the end of a long text."""
    return text if len(text) <= HEAD + TAIL else f"{text[:HEAD]}\n{text[-TAIL:]}"


_QUOTED: Final = LazyPattern(
    r"(['\"`])(?<=[\s(=:\[]['\"`])(?<!message: .)(?<!detail: .)(?<! [45]\d\d .)[^'\"`\n]{1,200}\1(?=[\s).,;:\]]|$)"
)


def strip_quoted(text: str) -> str:
    """Return the text without what stands in quotation marks."""
    return _QUOTED.sub("", text) if "'" in text or '"' in text or "`" in text else text
