"""Tell what a tool returned as data from what it reports: records, listings, source code, documents, passed tests."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rung.core.classify.lazy_regex import LazyPattern

if TYPE_CHECKING:
    from collections.abc import Callable

# A test or a step that went well may have any name: "test_missing_file ... ok".
_PASSED_LINE: Final = LazyPattern(r"^[^\n]*(?: \.\.\. ok| PASSED(?: +\[ *\d{1,3}%\])?)[ \t]*(?:\n|\Z)", re.MULTILINE)
_NONE_FAILED: Final = LazyPattern(
    r"\b0 (?:errors?|fail(?:ed|ing|ures?|s)?)\b|\b(?:errors?|fail(?:ed|ures?|s)?)[:=] ?0\b(?![.\d])", re.IGNORECASE
)


def without_successes(text: str) -> str:
    """Return an output without its passed tests and its counts of no failures."""
    if " ... ok" in text or " PASSED" in text:
        text = _PASSED_LINE.sub("", text)
    if "0 " in text or ": 0" in text or "=0" in text:  # a few searches cost less than the pattern
        for count in _ZERO_COUNTS:
            if count in text:
                return _NONE_FAILED.sub("", text)
    return text


_ZERO_COUNTS: Final = ("0 fail", "0 err", "0 Fail", "0 Err", "s: 0", "d: 0", "s=0", "d=0", "r: 0")


# What test runners, compilers and linters say where nothing is wrong.
_PASSED_VERDICT: Final = LazyPattern(
    r"\btest result: ok\b|^(?:\W{0,12}\s)?[1-9]\d* (?:passed|passing|pass)\b(?![^\n]*\b[1-9]\d* (?:fail|error))|\bBUILD SUCCESS|^OK(?: \([^\n]{1,60}\))?$|\bTests:\s+[1-9]\d* passed"
    r"|\bno (?:errors?|issues?|problems?|warnings?|vulnerabilities) (?:were )?(?:found|detected)\b|\b(?:all|every) (?:\d+ )?(?:tests?|checks?) (?:have )?passed\b|\ball checks passed\b",
    re.IGNORECASE | re.MULTILINE,
)


def has_passed(text: str) -> bool:
    """Return whether an output ends with the verdict of a run in which nothing failed."""
    end = text[-_VERDICT_CHARS:]
    for word in _VERDICT_WORDS:
        if word in end:
            return _PASSED_VERDICT.search(end) is not None
    return False


_VERDICT_WORDS: Final = (
    " passed",
    " passing",
    "\nOK",
    "BUILD S",
    "t: ok",
    "s found",
    "s detected",
    "s were",
    " pass\n",
)
_VERDICT_CHARS: Final = 600
_ERROR_KEY: Final = LazyPattern(
    r"[\"'](?:\w*err\w*|\w*fail\w*|\w*fault\w*|exceptions?|\w*message|msg|detail\w*|reasons?|\w*status\w*|code|success|ok|stdout|output|observation|result\w*"
    r"|content|text|title|body|response|traceback|logs?|description)[\"']\s*:",
    re.IGNORECASE,
)


def is_record(text: str) -> bool:
    """Return whether a text is JSON without a field that could report a failure."""
    return text[0] in "{[" and text[-1] in "}]" and text[1:2] in "\"'{[ \n" and _ERROR_KEY.search(text) is None


_MAX_LINES: Final = 24  # that show what a text is
_MIN_LONG_CHARS: Final = 800
_HEADLINES: Final = 2
_LAST_LINES: Final = 6
_MIN_LINES: Final = 4
_MAX_SPLIT: Final = 400
_MIN_SHARE: Final = 0.6
_HEAD_CHARS: Final = 300  # of a document: its title says whether it is a page about an error
# Of `cat -n`, `nl`, and `grep -n`; after a bare number a tab, or the indentation or the end of a statement.
_NUMBERED_LINE: Final = LazyPattern(r"\s*\d{1,6}(?:\t|\u2192|[:-](?:\t| {2,}\S|\S[^\n]*[;{}(,\[>]\s*$))")
_CODE_LINE: Final = LazyPattern(
    r".*(?:[;{}\[(,]|\): *|=> *\{?|\*/)\s*$|\s*(?:import|from|export|const|let|var|def|class|async|return|function|public|private|protected|static|func|fn|use|type|interface|package"
    r"|#include|@\w+|if|else|elif|for|while|try|except|finally|with|switch|case|//|/\*|\*|#(?!#*[ ]))(?:\b|\s|$)"
)
# In the first line, before any data: "Code execution failed at line 'async def …".
_ANNOUNCED: Final = (
    "fail", "error", "exception", "denied", "refused", "cannot", "could not", "unable", "invalid", "timed out", "not found", "killed",
)  # fmt: skip
_ANNOUNCED_CHARS: Final = 160
_DOCUMENT: Final = LazyPattern(r"(?:---\n|# \S)")
_TRACE_MARKS: Final = ("Traceback (most", 'File "', "\n    at ")


def content_of(text: str, is_error_line: Callable[[str], object]) -> str | None:
    """Return what counts of an output that is the content of a file or a page; None if it is not."""
    is_long = len(text) >= _MIN_LONG_CHARS
    first = text.partition("\n")[0]
    is_numbered = first.lstrip()[:1].isdigit()
    if not is_numbered:
        if not is_long and text.count("\n") < _MIN_LINES - 1:
            return None
        head = first[:_ANNOUNCED_CHARS].lower()
        for word in _ANNOUNCED:  # a generator expression costs more than the searches
            if word in head:
                return None
    for mark in _TRACE_MARKS:
        if mark in text:
            return None
    lines = [line for line in text.split("\n", _MAX_SPLIT) if line and not line.isspace()]
    if not lines or any(map(is_error_line, (*lines[-1:-_LAST_LINES:-1], *lines[:_HEADLINES]))):
        return None
    shown = lines[:_MAX_LINES]
    if is_numbered and _share(_NUMBERED_LINE.match, shown) >= _MIN_SHARE:
        return ""
    if len(lines) >= _MIN_LINES and text[0] not in "{[":
        if _DOCUMENT.match(text):
            return ""
        if any(map(text.__contains__, _CODE_MARKS)) and _share(_CODE_LINE.match, shown) >= _MIN_SHARE:
            return ""
    return "\n".join((text[:_HEAD_CHARS], *filter(is_error_line, lines))) if is_long else None


_CODE_MARKS: Final = ("{\n", ";\n", "import ", "def ", "class ", "#include", "fn ", "):\n")


def _share(is_such: Callable[[str], object], lines: list[str]) -> float:
    return sum(is_such(line) is not None for line in lines) / len(lines)
