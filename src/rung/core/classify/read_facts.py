"""Read the facts of an error (status, codes, classes, message) from its text, before any rule is matched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.core.classify.facts import Facts, snake_case
from rung.core.classify.json_fields import RELAYING_STATUSES, extract_messages, has_fields
from rung.core.classify.lazy_regex import LazyPattern
from rung.core.classify.phrases import words_of
from rung.core.classify.status_text import classes_in, status_in, status_of_call
from rung.core.classify.text_parts import AWS_CODE, HEADLINE_CHARS, OWN_BUGS, head_and_tail, strip_quoted
from rung.core.classify.tool_output import read_tool
from rung.core.domain.failures import Phase

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.core.domain.failures import Evidence


def read_facts(evidence: Evidence) -> Facts:
    """Return the facts in an evidence."""
    facts = Facts(evidence)
    text = evidence.text
    if evidence.phase is Phase.TOOL:
        read_tool(facts, text)
    elif text and not (evidence.phase is Phase.RESULT and text.isspace()):
        _read_call(facts, text)
    elif evidence.phase is Phase.RESULT and not (
        facts.status or facts.exit_code or facts.exception_names or facts.codes
    ):
        facts.codes.add("empty-answer")
    return facts


_RPC_CODE: Final = LazyPattern(r"(?:code = |StatusCode\.)([A-Z][A-Za-z_]{2,30})\b")  # of gRPC and .NET
_STOP_REASON: Final = LazyPattern(r"(?:inish|top)[_ ]reason(?:: | is |=)([A-Za-z][A-Za-z_]{3,40})\b")
_MIN_UNQUOTED_SHARE: Final = 0.3
_ECHOING_STATUSES: Final = frozenset({400, 404, 422})
_EXCEPTION: Final = "exception"
_BUGS_AND_BASES: Final = OWN_BUGS | {"ArithmeticError", "LookupError"}
_WRAPPER_CLASSES: Final = frozenset(
    {"Exception", "Error", "RuntimeError", "ValueError", "RetryError"}
)  # these wrap another exception


def _read_call(facts: Facts, text: str) -> None:
    """Read the facts of a failed call: from a body, the text of an exception, or a response."""
    if _MODEL_GROUP in text or _RETURNED_ERRORS in text:
        text = _strip_wrapper(text)
    messages = extract_messages(facts, text) if has_fields(text) else None
    whole = text
    if "<" in text and "<title" in text:
        text = _page_title(text)
    if facts.status is None:
        _read_headline(facts, text[:HEADLINE_CHARS])
    if "rror occurred (" in text and (named := AWS_CODE.search(text)):
        facts.codes.add(named[1].lower())
    is_answer = facts.phase is Phase.RESULT and _read_answer(facts, whole)
    if messages:
        message = messages[0] if len(messages) == 1 else "\n".join(dict.fromkeys(messages))  # some SDKs repeat the body
    else:
        text = text.partition("requestBodyValues")[0] if messages is None else _strip_echoed_request(text)
        message = head_and_tail(text.strip())
    facts.message = message = _LABEL.sub("", message) if message.startswith(_LABEL_WORDS) else message
    if facts.status in RELAYING_STATUSES:
        facts.status = status_in(message[:HEADLINE_CHARS]) or facts.status
    _read_words(facts, message)
    if is_answer or (facts.status is None and _is_no_service(facts)):
        facts.words = facts.message_words = ()
        facts.all_words = set()


def _read_headline(facts: Facts, head: str) -> None:
    """Read the status, the classes and the codes at the beginning of a text that no response came with."""
    facts.status = status_of_call(head)
    if not facts.exception_names or facts.exception_names <= _WRAPPER_CLASSES:
        facts.exception_names.update(classes_in(head))
    if ("code = " in head or "StatusCode." in head) and (named := _RPC_CODE.search(head)):
        facts.codes.update((named[1].lower(), snake_case(named[1])))
    if "reason" in head:
        facts.codes.update(reason.lower() for reason in _STOP_REASON.findall(head))


def _read_words(facts: Facts, message: str) -> None:
    """Read the words of the service's message, without the request that it quotes."""
    if facts.status in _ECHOING_STATUSES:
        unquoted = strip_quoted(message)  # these errors quote the rejected request
        if len(unquoted) > _MIN_UNQUOTED_SHARE * len(message):  # else the message itself is in quotes
            message = unquoted
    facts.words = facts.message_words = words = words_of(message if " " in message else snake_case(message))
    if "xception" in message:
        facts.codes.update(
            [word for word in words if word.endswith(_EXCEPTION)]
        )  # AWS's codes, also without their frame
    facts.all_words = set(words)


def _is_no_service(facts: Facts) -> bool:
    """Return whether a text without a status reports tests, or a bug of the program that called: it is no service's."""
    names = facts.exception_names
    if names & OWN_BUGS and names <= _BUGS_AND_BASES:
        if _NO_KEY_VARIABLE.search(facts.message):
            facts.codes.add("missing_api_key")
        return True
    return "passed" in facts.all_words and not names and _reports_tests(facts.words)


def _reports_tests(words: Sequence[str]) -> bool:
    """Return whether the words report what has passed: "429 tests passed". A value is passed, too: "which you passed"."""
    at = words.index("passed")
    return words[at - 1] not in _BEFORE_A_VALUE and words[at + 1] not in _AFTER_PASSING


_BEFORE_A_VALUE: Final = frozenset(
    {"you", "be", "been", "was", "were", "is", "are", "not", "value", "values", "argument", "incorrectly"}
)
_AFTER_PASSING: Final = frozenset(
    {"in", "into", "to", "as", "back", "by", "through", "via", "with", "model", "an", "a", "the"}
)
_NO_KEY_VARIABLE: Final = LazyPattern(r"KeyError: ['\"]?[A-Z0-9_]{0,60}(?:API_KEY|API_TOKEN|ACCESS_KEY|ACCESS_TOKEN)\b")
# "Error:" in Chinese, whose word also means "wrong".
_LABEL_WORDS: Final = ("错误", "錯誤")
_LABEL: Final = LazyPattern(r"\A(?:错误|錯誤)[\w ]{0,20}[:：]\s*")


# What a gateway adds around the message of a provider: its own model names, and who returned the error.
_MODEL_GROUP: Final = "Received Model Group="
_RETURNED_ERRORS: Final = "he model returned the following errors: "
_MODEL_GROUP_TEXT: Final = LazyPattern(r"[^\n\"'\\}]{0,320}")


def _strip_wrapper(text: str) -> str:
    """Return the text without what a gateway adds to the message of a provider."""
    at = text.find(_MODEL_GROUP)
    if at >= 0:
        added = _MODEL_GROUP_TEXT.match(text, at)
        text = text[:at].rstrip().removesuffix(".") + text[at if added is None else added.end() :]
    at = text.find(_RETURNED_ERRORS)
    return text if at <= 0 else text[: at - 1] + text[at + len(_RETURNED_ERRORS) :]


_TITLE_TAG: Final = LazyPattern(r"<title[^>]{0,40}>([^<]{0,300})")


def _page_title(text: str) -> str:
    """Return the title of an HTML page; the rest of it is not about the error."""
    page = _TITLE_TAG.search(text)
    return text if page is None else page[1].strip()


def _read_answer(facts: Facts, text: str) -> bool:
    """Read the signs of a model's answer; return whether its words are an answer instead of an error."""
    from rung.core.classify.answer_signs import read_answer  # lazy: only answers need its patterns

    return read_answer(facts, text)


_ECHO_MARKERS: Final = (
    "requestBodyValues",
    "'role':",
    '"role":',
    "'content':",
    '"content":',
    "'messages':",
    '"messages":',
)


def _strip_echoed_request(text: str) -> str:
    """Cut an error message before the request that it echoes."""
    for mark in _ECHO_MARKERS:
        at = text.find(mark)
        if at > 0:
            text = text[:at]
    return text
