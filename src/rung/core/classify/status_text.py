"""Find an HTTP status, an exit code and exception classes in plain text."""

from __future__ import annotations

from typing import Final

from rung.core.classify.lazy_regex import LazyPattern

# A number is a status only if the words before it announce one.
_STATUS_NUMBER: Final = LazyPattern(
    r"[45]\d\d(?<![\w.,$-][45]\d\d)(?!\w|[.,]\d| ?(?:tests?|ms|seconds|tokens|bytes|files|lines)\b)"
)
_STATUS_PREFIXES: Final = (
    "http", "http code", "status", "status code", "status_code", "error", "error code", "error response", "returned", "rejected", "responded with",
)  # fmt: skip
_LINKING_WORDS: Final = (" of", " was", " is")
_PREFIX_CHARS: Final = 50
_SEPARATORS: Final = " :=("
_MAX_SEPARATORS: Final = 3
_HTTP_VERSION: Final = LazyPattern(r"http/[\d.]+(?: code)?\Z")
_API_ERROR_PREFIX: Final = LazyPattern(r"api error: [\w ]{0,30}\Z")
# At the start of a text, a number is a status only if a typical reason phrase or separator follows.
_LEADING_STATUS: Final = LazyPattern(
    r"[\[\s]*(?:[\w.]+(?:Error|Exception|Exhausted|Unavailable|[a-z]{3}): )?\[?(\d{3})(?= - |:|\]| ?\{| [A-Z_]{6,}\b| <"
    r"| (?:Client|Server) Error| (?:Too Many|Unauthori|Forbidden|Not Found|Bad (?:Request|Gateway)|Internal|Service"
    r"|Gateway|Payment|Request|Conflict|Unprocess|Overloaded|Resource|Invalid|status code|You exceeded))"
)
_BRACKETED_STATUS: Final = LazyPattern(r"\[\d{3} [A-Z][a-z]+")


def http_status(digits: str) -> int | None:
    """Return the error status (400 to 599) at the start of the digits; None if there is a fourth digit."""
    return (
        int(digits[:3])
        if digits[:3].isdecimal() and "400" <= digits[:3] <= "599" and not digits[3:4].isdigit()
        else None
    )


def status_in(head: str) -> int | None:
    """Return the HTTP status that the beginning of a text reports."""
    number = _STATUS_NUMBER.search(head)
    if number is None:
        return None
    leading = _LEADING_STATUS.match(head)
    if leading is not None:
        return http_status(leading[1])
    while number is not None:
        start = number.start()
        if (
            head.startswith("| ", max(0, start - 2))  # the title of a proxy's error page
            or _BRACKETED_STATUS.match(head, start - 1)
            or _precedes_status(head[max(0, start - _PREFIX_CHARS) : start])
        ):
            return int(number[0])
        number = _STATUS_NUMBER.search(head, number.end())
    return None


def _precedes_status(before: str) -> bool:
    """Return whether these words announce a status."""
    words = before.lower().rstrip(_SEPARATORS)
    if not 0 < len(before) - len(words) <= _MAX_SEPARATORS:
        return False
    for joined in _LINKING_WORDS:
        words = words.removesuffix(joined)
    if words.endswith(_STATUS_PREFIXES):
        return True
    return _HTTP_VERSION.search(words) is not None if "http/" in words else _API_ERROR_PREFIX.search(words) is not None


_OUTPUT_STATUS: Final = LazyPattern(
    r"(?:eturned error:? |code E|rror occurred \(|HTTP(?:/[\d.]+)? |HTTP Error |tatus(?: code)?:? |ERROR )([45]\d\d)\b(?! ?(?:tests?|files|lines|ms|bytes)\b)"
)


def status_in_output(text: str) -> int | None:
    """Return the HTTP status that a tool reports, the last one if there are several: "The requested URL returned error: 502"."""
    found = _OUTPUT_STATUS.findall(text)
    return int(found[-1]) if found else None


_CLASS_NAME: Final = LazyPattern(
    r"[A-Z](?<![A-Za-z0-9_][A-Z])\w*(?:Error|Exception|Timeout|Exhausted|Exceeded|Unavailable)(?=[:\])]| -|$)"
)


def classes_in(head: str) -> list[str]:
    """Return the names at the beginning of a text that look like exception classes."""
    return _CLASS_NAME.findall(head)


# Each pattern starts with literal letters, which `re` searches in C: "exit code: 2", "exit=2"; "exited with code 2", "failed with exit code 2".
_EXIT_CODE: Final = LazyPattern(r"xit(?<=[Ee]xit)(?:[ _]?(?:code|status))?(?:=|: ?| )(-?\d{1,3})\b")
_EXITED_WITH: Final = LazyPattern(
    r" with (?:(?<=exited with )|(?<=exit with )|(?<=failed with ))(?:exit )?(?:code|status):? (-?\d{1,3})\b"
)


def exit_code_in(text: str) -> int | None:
    """Return the exit code that a text reports."""
    match = (_EXIT_CODE.search(text) if "xit" in text else None) or (
        _EXITED_WITH.search(text) if " with " in text else None
    )
    return None if match is None else int(match[1])


_EXCEPTION_LINE: Final = LazyPattern(
    r"(?:Uncaught |Unhandled |\[?cause\]?: |E   )?((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Timeout|Exceeded|Conflicted))(?::|$)"
)
_EXCEPTION_SUFFIXES: Final = ("Error", "Exception", "Interrupt", "Timeout", "Exceeded", "Conflicted")
_MAX_TRIES: Final = 5


def last_raised(text: str) -> tuple[str, int] | None:
    """Return the class and position of the last exception in a program's output."""
    last = None
    for ending in _EXCEPTION_SUFFIXES:
        if ending not in text:
            continue
        at = len(text)
        for _ in range(_MAX_TRIES):
            at = text.rfind(ending, 0, at)
            if at < 0:
                break
            match = _EXCEPTION_LINE.match(text, text.rfind("\n", 0, at) + 1)
            if match is not None:
                last = match if last is None or match.start() > last.start() else last
                break
    return None if last is None else (last[1], last.start(1))
