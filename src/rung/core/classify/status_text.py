"""A status, an exit code and the classes of exceptions, as sentences tell them."""

from __future__ import annotations

from typing import Final

from rung.core.classify.lazy_regex import Pattern

# A number is a status where the words before it say so.
_NUMBER: Final = Pattern(
    r"[45]\d\d(?<![\w.,$-][45]\d\d)(?!\w|[.,]\d| ?(?:tests?|ms|seconds|tokens|bytes|files|lines)\b)"
)
_BEFORE: Final = (
    "http", "http code", "status", "status code", "status_code", "error", "error code", "error response", "returned", "rejected", "responded with",
)  # fmt: skip
_JOINED: Final = (" of", " was", " is")
_BEFORE_LIMIT: Final = 50
_JOINTS: Final = " :=("
_JOINTS_LIMIT: Final = 3
_PROTOCOL: Final = Pattern(r"http/[\d.]+(?: code)?\Z")
_SAID: Final = Pattern(r"api error: [\w ]{0,30}\Z")
# At the start of a text a number is a status only if what follows is how a status is told.
_LEADING: Final = Pattern(
    r"[\[\s]*(?:[\w.]+(?:Error|Exception|Exhausted|Unavailable|[a-z]{3}): )?\[?(\d{3})(?= - |:|\]| ?\{| [A-Z_]{6,}\b| <"
    r"| (?:Client|Server) Error| (?:Too Many|Unauthori|Forbidden|Not Found|Bad (?:Request|Gateway)|Internal|Service"
    r"|Gateway|Payment|Request|Conflict|Unprocess|Overloaded|Resource|Invalid|status code|You exceeded))"
)
_BRACKETED: Final = Pattern(r"\[\d{3} [A-Z][a-z]+")


def http_status(digits: str) -> int | None:
    """A status that tells of a failure, at the start of a text that has no fourth digit."""
    return (
        int(digits[:3])
        if digits[:3].isdecimal() and "400" <= digits[:3] <= "599" and not digits[3:4].isdigit()
        else None
    )


def status_in(head: str) -> int | None:
    """The status that the beginning of a text tells."""
    number = _NUMBER.search(head)
    if number is None:
        return None
    leading = _LEADING.match(head)
    if leading is not None:
        return http_status(leading[1])
    while number is not None:
        start = number.start()
        if (
            head.startswith("| ", max(0, start - 2))  # the title of a proxy's page
            or _BRACKETED.match(head, start - 1)
            or _announced(head[max(0, start - _BEFORE_LIMIT) : start])
        ):
            return int(number[0])
        number = _NUMBER.search(head, number.end())
    return None


def _announced(before: str) -> bool:
    """Do these words say that a status follows?"""
    words = before.lower().rstrip(_JOINTS)
    if not 0 < len(before) - len(words) <= _JOINTS_LIMIT:
        return False
    for joined in _JOINED:
        words = words.removesuffix(joined)
    if words.endswith(_BEFORE):
        return True
    return _PROTOCOL.search(words) is not None if "http/" in words else _SAID.search(words) is not None


_CLASS: Final = Pattern(
    r"[A-Z](?<![A-Za-z0-9_][A-Z])\w*(?:Error|Exception|Timeout|Exhausted|Exceeded|Unavailable)(?=[:\])]| -|$)"
)


def classes_in(head: str) -> list[str]:
    """The names in the beginning of a text that look like an exception's class."""
    return _CLASS.findall(head)


# By letters that C can look for: "exit code: 2", "exit=2"; "exited with code 2", "failed with exit code 2".
_EXIT: Final = Pattern(r"xit(?<=[Ee]xit)(?:[ _]?(?:code|status))?(?:=|: ?| )(-?\d{1,3})\b")
_ENDED: Final = Pattern(
    r" with (?:(?<=exited with )|(?<=exit with )|(?<=failed with ))(?:exit )?(?:code|status):? (-?\d{1,3})\b"
)


def exit_code_in(text: str) -> int | None:
    """The exit code that a text tells."""
    told = (_EXIT.search(text) if "xit" in text else None) or (_ENDED.search(text) if " with " in text else None)
    return None if told is None else int(told[1])


_RAISED: Final = Pattern(
    r"(?:Uncaught |Unhandled |\[?cause\]?: |E   )?((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Timeout|Exceeded|Conflicted))(?::|$)"
)
_ENDINGS: Final = ("Error", "Exception", "Interrupt", "Timeout", "Exceeded", "Conflicted")
_TRIES: Final = 5


def last_raised(text: str) -> tuple[str, int] | None:
    """The class and place of the last exception a program ended with."""
    found = None
    for ending in _ENDINGS:
        if ending not in text:
            continue
        at = len(text)
        for _ in range(_TRIES):
            at = text.rfind(ending, 0, at)
            if at < 0:
                break
            match = _RAISED.match(text, text.rfind("\n", 0, at) + 1)
            if match is not None:
                found = match if found is None or match.start() > found.start() else found
                break
    return None if found is None else (found[1], found.start(1))
