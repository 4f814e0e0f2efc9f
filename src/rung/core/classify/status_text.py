"""Find an HTTP status, an exit code and exception classes in plain text."""

from __future__ import annotations

from typing import Final

from rung.core.classify.lazy_regex import LazyPattern

# A number is a status only if the words before it announce one.
_STATUS_NUMBER: Final = LazyPattern(
    r"[45]\d\d(?<![\w.,$-][45]\d\d)(?!\w|[.,]\d| ?(?:tests?|ms|seconds|tokens|bytes|files|lines|records?|rows?|items?|results?|entries|words|users|pages|points|elements)\b)"
)
_STATUS_PREFIXES: Final = (
    "http", "http code", "status", "status code", "status_code", "error", "error code", "error response", "returned", "returned a", "rejected", "responded with", "got a", "received a",
)  # fmt: skip
_LINKING_WORDS: Final = (" of", " was", " is")
_PREFIX_CHARS: Final = 50
_SEPARATORS: Final = " :=('\""
_MAX_SEPARATORS: Final = 3
_HTTP_VERSION: Final = LazyPattern(r"http/[\d.]+(?: code)?\Z")
_API_ERROR_PREFIX: Final = LazyPattern(r"api error: [\w ]{0,30}\Z")
# At the start of a text, a number is a status only if a typical reason phrase or separator follows.
_LEADING_STATUS: Final = LazyPattern(
    r"[\[\s]*(?:[\w.]+(?:Error|Exception|Exhausted|Unavailable|[a-z]{3}): )?\[?(\d{3})(?= - |:|\]| ?\{| [A-Z_]{6,}\b| <"
    r"| (?:Client|Server) Error| (?:Too Many|Unauthori|Forbidden|Not Found|Bad (?:Request|Gateway)|Internal|Service"
    r"|Gateway|Payment|Request|Conflict|Unprocess|Overloaded|Resource|Invalid|status code|You exceeded))"
)
# Before a sentence, only the statuses that services answer: "401 Virtual Key expected".
_STATUS_AND_SENTENCE: Final = LazyPattern(
    r"(40[0-5]|408|409|413|422|424|429|50[0-4]|529) (?=[A-Z][A-Za-z'’]{2,20}[ :,][^\n]|[\u3400-\u9fff])(?![A-Z][a-z]+s? (?:passed|failed)\b)"
)
_BRACKETED_STATUS: Final = LazyPattern(r"\[\d{3} [A-Z][a-z]+")
_CLASS_AND_STATUS: Final = LazyPattern(r"[\w.]{0,100}(?:Error|Exception): ([45]\d\d)[ \t]*(?:\n|$)")  # and nothing else
# A gateway quotes the status of the service behind it: "Upstream error from m: <400> InvalidParameter".
_ANGLED_STATUS: Final = LazyPattern(r"<[45]\d\d> [A-Z]")


def http_status(digits: str) -> int | None:
    """Return the error status (400 to 599) at the start of the digits; None if there is a fourth digit."""
    return (
        int(digits[:3])
        if digits[:3].isdecimal() and "400" <= digits[:3] <= "599" and not digits[3:4].isdigit()
        else None
    )


def status_in(head: str) -> int | None:
    """Return the HTTP status that the beginning of a text reports."""
    number = _STATUS_NUMBER.search(head) if "4" in head or "5" in head else None
    if number is None:
        return None
    leading = _LEADING_STATUS.match(head) or _STATUS_AND_SENTENCE.match(head) or _CLASS_AND_STATUS.match(head)
    if leading is not None:
        return http_status(leading[1])
    while number is not None:
        start = number.start()
        if (
            head.startswith("| ", max(0, start - 2))  # the title of a proxy's error page
            or _BRACKETED_STATUS.match(head, start - 1)
            or _ANGLED_STATUS.match(head, start - 1)
            or (
                head.startswith(_REASONS_OF.get(number[0], _NO_REASONS), number.end())
                and head[start - 1] not in _QUOTES
            )
            or _precedes_status(head[max(0, start - _PREFIX_CHARS) : start])
        ):
            return int(number[0])
        number = _STATUS_NUMBER.search(head, number.end())
    return None


# Reason phrases of HTTP, as a client writes them where it leaves the number out: "API request failed: Not Found".
_REASONS: Final = {
    "Bad Request": 400, "BadRequest": 400, "Unauthorized": 401, "Payment Required": 402, "PaymentRequired": 402, "Forbidden": 403,
    "Not Found": 404, "NotFound": 404, "Method Not Allowed": 405, "MethodNotAllowed": 405, "Request Timeout": 408, "Payload Too Large": 413,
    "Request Entity Too Large": 413, "Content Too Large": 413, "Unprocessable Entity": 422, "UnprocessableEntity": 422,
    "Unprocessable Content": 422, "Too Many Requests": 429, "TooManyRequests": 429, "Internal Server Error": 500,
    "InternalServerError": 500, "Bad Gateway": 502, "BadGateway": 502, "Service Unavailable": 503, "ServiceUnavailable": 503,
    "Gateway Timeout": 504, "Gateway Time-out": 504, "GatewayTimeout": 504,
}  # fmt: skip
_REASON_TEXTS: Final = tuple(_REASONS)
# A status and its own reason, anywhere in a text: 'POST "https://host": 400 Bad Request {…}'.
_REASONS_OF: Final = {
    str(status): tuple(
        f"{between}{reason}"
        for reason, its in _REASONS.items()
        if its == status
        for between in (" ", ": ", " - ", " — ")
    )
    for status in set(_REASONS.values())
}
_NO_REASONS: Final = ("\0",)
_QUOTES: Final = "'\"`"  # of a value, which is not the status of the call
_AFTER_REASON: Final = " .!)]\"'"
_BEFORE_REASON: Final = (": ", ":", "(", "- ", "response ", "status ", "with ")


def status_of_reason(head: str) -> int | None:
    """Return the status whose reason phrase ends the first line of a text, or is the whole line."""
    line = head.partition("\n")[0].rstrip(_AFTER_REASON)
    if not line.endswith(_REASON_TEXTS):
        return None
    reason = max((text for text in _REASON_TEXTS if line.endswith(text)), key=len)
    before = line.removesuffix(reason)
    return _REASONS[reason] if not before.strip() or before.endswith(_BEFORE_REASON) else None


# Forms that may also be a count, read only where a call failed: "Bad request (400)", "failed with 429", "404 error".
_KNOWN: Final = r"(40[0-9]|41[0357]|42[2459]|451|49[89]|50[0-4]|507|52[0-9]|530)"
_LOOSE_STATUS: Final = LazyPattern(
    rf"\({_KNOWN}\)|(?:[Cc]ode ?[=:]? ?|[Gg]ot (?:an? )?|[Ww]ith (?:an? )?|[Rr]esponse:? |HTTP-){_KNOWN}(?![\w.]|,\d| [a-z]+s\b)|(?<![\w.,:/$#-]){_KNOWN} (?:error|response)\b"
)


def status_of_call(head: str) -> int | None:
    """Return the HTTP status that the beginning of the text of a failed call reports, in any form."""
    strict = status_in(head) or status_of_reason(head)
    if strict is not None or not ("4" in head or "5" in head):
        return strict
    loose = _LOOSE_STATUS.search(head)
    return None if loose is None else int(loose[1] or loose[2] or loose[3])


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
    if not (
        "eturned error" in text
        or "HTTP" in text
        or "tatus" in text
        or "ERROR " in text
        or "code E" in text
        or "rror occurred (" in text
    ):
        return None  # these searches are a tenth of the pattern's time
    found = _OUTPUT_STATUS.findall(text)
    return int(found[-1]) if found else None


_CLASS_NAME: Final = LazyPattern(
    r"[A-Z](?<![A-Za-z0-9_][A-Z])\w*(?:Error|Exception|Timeout|Exhausted|Exceeded|Unavailable)(?=[:\])>]| -|$)"
)


_CLASS_SUFFIXES: Final = ("Error", "Exception", "Timeout", "Exhausted", "Exceeded", "Unavailable")


def classes_in(head: str) -> list[str]:
    """Return the names at the beginning of a text that look like exception classes."""
    for ending in _CLASS_SUFFIXES:
        if ending in head:
            return _CLASS_NAME.findall(head)
    return []


# Each pattern starts with literal letters, which `re` searches in C: "exit code: 2", "exit=2"; "exited with code 2", "failed with exit code 2".
_EXIT_CODE: Final = LazyPattern(r"xit(?<=[Ee]xit)(?:[ _]?(?:code|status))?(?:=|: ?| )(-?\d{1,3})\b")
_EXITED_WITH: Final = LazyPattern(
    r" with (?:(?<=exited with )|(?<=exit with )|(?<=failed with ))(?:exit )?(?:code|status):? (-?\d{1,3})\b"
)


def exit_code_in(text: str, *, is_success: bool = False) -> int | None:
    """Return the exit code that a text reports; of a command that succeeded, words such as "exit 1" do not count."""
    match = (_EXIT_CODE.search(text) if "xit" in text else None) or (
        _EXITED_WITH.search(text) if " with " in text else None
    )
    if match is None or (
        is_success and match[0].startswith("xit ") and "code" not in match[0] and "stat" not in match[0]
    ):
        return None
    return int(match[1])


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
