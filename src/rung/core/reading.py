"""Facts before strings: what an error's text says about itself, dug out before any rule looks at words.

Errors arrive wrapped: a provider's JSON inside a gateway's JSON inside an SDK's sentence inside a log line,
as JSON, as a Python repr, escaped, cut off. So the fields are found where they stand, without parsing what
is around them: nothing that is nested, broken or endless can do more than be looked at once.
"""

from __future__ import annotations

import json
import re
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from rung.core.failures import Phase
from rung.core.phrases import shaped
from rung.core.waits import wait_in_text

if TYPE_CHECKING:
    from rung.core.failures import Evidence

HEAD: Final = 1_400  # of a long text, what is read for words: what was done …
TAIL: Final = 1_800  # … and what went wrong
MESSAGE: Final = 2_000


class Facts:
    """What the rules ask: an evidence, and what its text was found to say."""

    __slots__ = (
        "_wait",
        "_waited",
        "codes",
        "errno",
        "exit_code",
        "message",
        "names",
        "output",
        "phase",
        "provider",
        "raw",
        "said",
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
        self.names: set[str] = (
            {name.rpartition(".")[2] for name in evidence.exceptions} if evidence.exceptions else set()
        )
        self.raw = evidence.text
        self.message = ""  # what the machine said, as it said it
        self.output = ""  # the text, shaped
        self.said = ""  # the part of it in which a service speaks of itself, shaped
        self.words: list[str] = []
        self._waited = self._wait is not None

    @property
    def wait(self) -> float | None:
        """Seconds we are asked to wait, in headers or in words; looked for when a rule wants to know."""
        if not self._waited:
            self._waited = True
            self._wait = wait_in_text(self.raw)
        return self._wait


def read(evidence: Evidence) -> Facts:
    """All the facts there are in an evidence."""
    facts = Facts(evidence)
    text = evidence.text
    if evidence.phase is Phase.TOOL:
        _read_tool(facts, text)
    elif text:
        _read_call(facts, text)
    return facts


def _read_call(facts: Facts, text: str) -> None:
    """What a call came to: a body, an exception's text, an answer."""
    fields = "':" in text or '":' in text
    messages = _messages(facts, text) if fields else ()
    page = _PAGE.search(text) if "<title" in text else None
    if page is not None:
        text = page[1].strip()  # of a page for people, only its title tells
    if facts.status is None:
        head = text[:400]
        facts.status = _status_in(head)
        if not facts.names:
            facts.names.update(_classes(head))
    if facts.phase is Phase.RESULT:
        _read_answer(facts, text)
    message = (
        "\n".join(messages) if messages else _shortened(_before_the_echo(text).strip() if fields else text.strip())
    )
    facts.message = message
    if facts.status in _ECHOING:
        message = _QUOTED.sub("", message)  # what a refused request is told about itself
    facts.said, facts.words = shaped(message)
    facts.output = facts.said
    if "passed" in facts.words and not (facts.names or facts.status):
        facts.said = facts.output = ""  # a report of success, whatever it is about


_LEAKED: Final = re.compile(r"</?tool_(?:call|result|exchange)\b|<function=|<\|tool|<\|\"\|>|<\|im_(?:start|end)\|>")


def _read_answer(facts: Facts, text: str) -> None:
    """What can be seen of an answer without knowing what was asked: JSON that breaks off, a call that was spoken."""
    if _LEAKED.search(text):
        facts.codes.add("leaked-call")
    start = text.lstrip()[:1]
    if start and start in "{[":
        try:
            answer = json.loads(text)
        except (ValueError, RecursionError):
            facts.codes.add("broken-json")
            return
        call = answer[0] if isinstance(answer, list) and answer else answer
        if isinstance(call, dict) and {"name", "arguments"} <= call.keys():
            facts.codes.add("leaked-call")


_PAGE: Final = re.compile(r"<title[^>]{0,40}>([^<]{0,300})")
_ECHOING: Final = frozenset({400, 404, 422})
_ECHO: Final = ("'role':", '"role":', "'content':", '"content":', "'messages':", '"messages":')


def _before_the_echo(text: str) -> str:
    """An error's own words, without the request it gives back to us."""
    for mark in _ECHO:
        at = text.find(mark)
        if at > 0:
            text = text[:at]
    return text


def _shortened(text: str) -> str:
    return text if len(text) <= HEAD + TAIL else f"{text[:HEAD]}\n{text[-TAIL:]}"


# -- fields -------------------------------------------------------------------------------------------

# Where errors say what they are. Of the rest of a body (inputs, prompts, generations) nothing is believed.
_CODE, _WORDS, _RESULT, _FLAG, _STATUS = range(5)
_ROLES: Final = {
    **dict.fromkeys(
        (
            "type", "code", "status", "reason", "error_code", "errorCode", "error_type", "errorType", "__type", "subtype", "Code",
            "quotaId", "stop_reason", "finish_reason", "finishReason", "stopReason", "blockReason", "terminal_reason",
        ),
        _CODE,
    ),
    **dict.fromkeys(
        (
            "message", "error", "detail", "msg", "raw", "description", "error_message", "errorMessage", "error_description",
            "title", "Message",
        ),
        _WORDS,
    ),
    "result": _RESULT,
    "param": _STATUS,  # where a gateway puts the status of the one behind it
    "is_error": _FLAG,
}  # fmt: skip
# Searched for from quote to quote: a text has fewer of them than letters.
_FIELD: Final = re.compile(r"[\"'](\w{3,20})(\\*[\"'])\s?:\s*")
_FIELDS_LIMIT: Final = 200
_STATUS_FIELDS: Final = frozenset({"code", "status"})
_FAILED: Final = 300  # a status below it is not that of the failure inside
_CODE_LIMIT: Final = 80


def _messages(facts: Facts, text: str) -> list[str]:
    """The messages in a text that holds fields, innermost only; its codes and status go to the facts."""
    if text[0] == "{":
        try:
            body = json.loads(text)
        except (ValueError, RecursionError):
            return _dig(facts, text)  # cut off, not quite JSON, or made to hurt
        found: list[str] = []
        _walk(facts, body, found, [_FIELDS_LIMIT])
        if body.get("is_error") is True and isinstance(body.get("result"), str):
            return [body["result"]]
        return found
    return _dig(facts, text)


def _walk(facts: Facts, value: dict[str, Any], found: list[str], left: list[int]) -> None:
    for name, item in value.items():
        left[0] -= 1
        if left[0] < 0:
            return
        if type(item) is str:
            _take(facts, name, item, found)
        elif type(item) is int:
            if name in _STATUS_FIELDS and (facts.status is None or facts.status < _FAILED):
                facts.status = _http(str(item)) or facts.status
        elif type(item) is dict:
            _walk(facts, item, found, left)
        elif type(item) is list:
            for part in item:
                if type(part) is dict:
                    _walk(facts, part, found, left)


def _take(facts: Facts, name: str, text: str, found: list[str]) -> None:
    """What a field that holds a text says: a code, a status, or a message, which may hold fields of its own."""
    role = _ROLES.get(name)
    if role is _CODE:
        _take_code(facts, name, text)
    elif role is _STATUS:
        facts.status = facts.status or _http(text)
    elif role is _WORDS and text:
        inner = _dig(facts, text) if ("':" in text or '":' in text) else None
        found.extend(inner or [text[:MESSAGE]])


def _take_code(facts: Facts, name: str, value: str) -> None:
    if name == "blockReason":
        facts.codes.add("content_filter")  # whatever the reason: it was blocked
    if len(value) <= _CODE_LIMIT:
        facts.codes.add(value.lower())
        if facts.status is None and name in _STATUS_FIELDS:
            facts.status = _http(value)


def _dig(facts: Facts, text: str) -> list[str]:
    """The same, where the text is no JSON but holds some, in whatever wrapping."""
    found: list[tuple[int, str]] = []  # where a message ends, and the message
    failed = False
    result = ""
    for field in islice(_FIELD.finditer(text), _FIELDS_LIMIT):
        name, closing = field.groups()
        role = _ROLES.get(name)
        if role is None or not text.startswith(closing, field.start(1) - len(closing)):
            continue
        begin = field.end()
        opening = text[begin : begin + len(closing)]
        if opening[-1:] not in _QUOTES:
            if role is _FLAG:
                failed = failed or opening[:1] == "t"
            elif name in _STATUS_FIELDS and (facts.status is None or facts.status < _FAILED):
                facts.status = _http(text[begin : begin + 4]) or facts.status
            continue
        begin += len(opening)
        value, end = _string(text, begin, opening)
        if role is _WORDS:
            while found and found[-1][0] > begin:
                found.pop()  # it only quotes this one
            if value:
                found.append((end, value))
        elif role is _CODE:
            _take_code(facts, name, value)
        elif role is _STATUS:
            facts.status = facts.status or _http(value)
        elif role is _RESULT:
            result = result or value
    return [result] if failed and result else [message for _, message in found]


_QUOTES: Final = ("'", '"')


def _string(text: str, begin: int, opening: str) -> tuple[str, int]:
    """The string that starts here: up to the same quote with as many backslashes before it, or the end."""
    at = begin
    limit = min(len(text), begin + MESSAGE)
    while True:
        at = text.find(opening, at, limit)
        if at < 0:
            return text[begin:limit].replace("\\n", "\n"), limit
        if text[at - 1] != "\\" or at == begin:
            value = text[begin:at]
            return (value.replace("\\n", "\n").replace("\\", "") if "\\" in value else value), at
        at += 1


# -- status and classes in a sentence ------------------------------------------------------------------

# A number is a status where the words before it say so.
_NUMBER: Final = re.compile(
    r"([45]\d\d)(?<![\w.,$-][45]\d\d)(?!\w|[.,]\d| ?(?:tests?|ms|seconds|tokens|bytes|files|lines)\b)"
)
_BEFORE: Final = re.compile(
    r"(?:error code|http(?:/[\d.]+)?(?: status)?(?: code)?|status(?:[ _]code)?|api error(?:: [\w ]{0,30})?|returned|error"
    r"|error response|rejected|(?:server|client) error|responded with(?: status)?)(?: of| was| is)?[ :=(]{1,3}\Z",
    re.IGNORECASE,
)
# At the start of a text a number is a status only if what follows is how a status is told.
_LEADING: Final = re.compile(
    r"[\[\s]*(?:[\w.]+(?:Error|Exception|Exhausted|Unavailable|[a-z]{3}): )?\[?(\d{3})(?= - |:|\]| ?\{| [A-Z_]{6,}\b| <"
    r"| (?:Client|Server) Error| (?:Too Many|Unauthori|Forbidden|Not Found|Bad (?:Request|Gateway)|Internal|Service"
    r"|Gateway|Payment|Request|Conflict|Unprocess|Overloaded|Resource|Invalid|status code|You exceeded))"
)
_BRACKETED: Final = re.compile(r"\[(\d{3}) [A-Z][a-z]+")


def _http(digits: str) -> int | None:
    """A status that tells of a failure, at the start of a text that has no fourth digit."""
    return (
        int(digits[:3])
        if digits[:3].isdecimal() and "400" <= digits[:3] <= "599" and not digits[3:4].isdigit()
        else None
    )


def _status_in(head: str) -> int | None:
    leading = _LEADING.match(head)
    if leading is not None:
        return _http(leading[1])
    for number in _NUMBER.finditer(head):
        start = number.start()
        if (
            head.startswith("| ", max(0, start - 2))  # the title of a proxy's page
            or _BRACKETED.match(head, start - 1)
            or _BEFORE.search(head, max(0, start - 50), start)
        ):
            return int(number[1])
    return None


_ENDING: Final = re.compile(r"(?:Error|Exception|Timeout|Exhausted|Exceeded|Unavailable)(?=[:\])]| -|$)")


def _classes(head: str) -> list[str]:
    """The names in a text that look like an exception's class."""
    names = []
    for ending in _ENDING.finditer(head):
        start = ending.start()
        while start > 0 and (head[start - 1].isalnum() or head[start - 1] == "_"):
            start -= 1
        if head[start].isupper():
            names.append(head[start : ending.end()])
    return names


# -- what a tool printed -------------------------------------------------------------------------------

_WRAPPED: Final = re.compile(r"\s*<returncode>(-?\d{1,3})</returncode>\s*(?:<output>)?")
_EXIT: Final = re.compile(
    r"(?:^[Ee]xit|[Ee]xit)(?:[ _]?(?:code|status))?(?:=|: ?| )(-?\d{1,3})\b|(?:exited|exit|failed) with (?:exit )?(?:code|status):? (-?\d{1,3})\b"
)
_RAISED: Final = re.compile(
    r"(?:Uncaught |Unhandled |\[?cause\]?: |E   )?((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Timeout|Exceeded|Conflicted))(?::|$)"
)
_RAISED_ENDINGS: Final = ("Error", "Exception", "Interrupt", "Timeout", "Exceeded", "Conflicted")
_RAISED_TRIES: Final = 5
_API: Final = re.compile(
    r"\W*(?:api[ _]error|http[ /]\d|error in generating model output|(?:\w+\.)?(?:litellm|openai|anthropic|google|botocore|groq|mistral|cohere)\b|error code: \d{3}|\{)",
    re.IGNORECASE,
)
_SOURCE: Final = re.compile(
    r"^[^\s:]{1,200}:\d{1,6}(?::\d{1,6})?: (?:(?:fatal )?error\b|undefined: |cannot use |syntax error)", re.MULTILINE
)
# The system's own words have capitals; the same words in a list of commits mostly do not.
_COMPLAINT: Final = re.compile(
    r"(?i:\W*(?:\S+: )?(?:error|fatal|cannot|failed|unable|panic|abort|killed|traceback|err!|usage|\S+: command not found"
    r"|(?:/bin/)?(?:ba|z|da)?sh: |\d+ (?:error|failed)|=+ (?:errors|failures|short test)|\w*(?:error|exception)\b))"
    r"|.*(?:\bKilled|Segmentation fault|Permission denied|No such file or directory|Another git process|: Read-only"
    r"|No space left|Too many open files|[Oo]ut ?[Oo]f ?[Mm]emory)"
).match
_SERVICE_LIMIT: Final = 400  # a text so short, from no process, may be a service's own words
_QUOTED: Final = re.compile(r"(['\"`])(?<=[\s(=:\[]['\"`])[^'\"`\n]{1,200}\1(?=[\s).,;:\]]|$)")


def _read_tool(facts: Facts, text: str) -> None:
    """What a command or a tool printed: where it says what went wrong, and whether a service speaks there."""
    wrapped = _WRAPPED.match(text)
    if wrapped is not None:
        text = text[wrapped.end() :].removesuffix("\n").removesuffix("</output>")
        if facts.exit_code is None:
            facts.exit_code = int(wrapped[1])
    text = _shortened(text.strip())
    if not facts.exit_code and ("xit" in text or "failed with" in text):
        told = _EXIT.search(text)
        if told is not None:
            facts.exit_code = int(next(filter(None, told.groups()))) or facts.exit_code
    if (": error" in text or "al error" in text or ": undefined" in text or "x error" in text) and _SOURCE.search(text):
        facts.codes.add("source-error")
    if facts.exit_code == 0:  # it says that it went well: only what it complains about itself counts
        text = "\n".join(filter(_COMPLAINT, text.split("\n")))
    last = _last_raised(text)
    if last is not None:
        facts.names.add(last[0].rpartition(".")[2])
        text = text[last[1] :]
    facts.message = text
    facts.output, facts.words = shaped(text)
    if facts.exit_code == 0:
        return
    if _API.match(text) or (not facts.exit_code and len(text) <= _SERVICE_LIMIT):
        _read_service(facts, text)
    elif last is not None:
        unquoted = _QUOTED.sub("", text)
        facts.said = facts.output if unquoted == text else shaped(unquoted[:600])[0]
        facts.status = facts.status or _status_in(text[len(last[0]) :][:60].lstrip(": "))


def _read_service(facts: Facts, text: str) -> None:
    messages = _dig(facts, text) if ("':" in text or '":' in text) else ()
    if facts.status is None:
        facts.status = _status_in(text[:400])
    facts.names.update(_classes(text[:300]))
    said = "\n".join(messages) if messages else text
    facts.said = shaped(said)[0] if messages else facts.output


def _last_raised(text: str) -> tuple[str, int] | None:
    """The class and place of the last exception a program ended with."""
    found = None
    for ending in _RAISED_ENDINGS:
        at = len(text)
        for _ in range(_RAISED_TRIES):
            at = text.rfind(ending, 0, at)
            if at < 0:
                break
            match = _RAISED.match(text, text.rfind("\n", 0, at) + 1)
            if match is not None:
                found = match if found is None or match.start() > found.start() else found
                break
    return None if found is None else (found[1], found.start(1))
