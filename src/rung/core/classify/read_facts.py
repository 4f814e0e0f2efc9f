"""Read the facts of an error (status, codes, classes, message) from its text, before any rule is matched."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rung.core.classify.facts import Facts
from rung.core.classify.json_fields import extract_messages, has_fields, scan_fields
from rung.core.classify.lazy_regex import LazyPattern
from rung.core.classify.phrases import words_of
from rung.core.classify.status_text import classes_in, exit_code_in, last_raised, status_in, status_in_output
from rung.core.domain.failures import Phase

if TYPE_CHECKING:
    from rung.core.domain.failures import Evidence

HEAD: Final = 1_400  # characters of a long text that are matched: its start shows the operation,
TAIL: Final = 1_800  # its end shows the error


def read_facts(evidence: Evidence) -> Facts:
    """Return the facts in an evidence."""
    facts = Facts(evidence)
    text = evidence.text
    if evidence.phase is Phase.TOOL:
        _read_tool(facts, text)
    elif text:
        _read_call(facts, text)
    return facts


_HEADLINE_CHARS: Final = 400  # the status and the class are searched here
_ECHOING_STATUSES: Final = frozenset({400, 404, 422})
_WRAPPER_CLASSES: Final = frozenset(
    {"Exception", "Error", "RuntimeError", "ValueError", "RetryError"}
)  # these wrap another exception


def _read_call(facts: Facts, text: str) -> None:
    """Read the facts of a failed call: from a body, the text of an exception, or a response."""
    messages = extract_messages(facts, text) if has_fields(text) else None
    if "<" in text and "<title" in text:
        text = _page_title(text)
    if facts.status is None:
        head = text[:_HEADLINE_CHARS]
        facts.status = status_in(head)
        if not facts.exception_names or facts.exception_names <= _WRAPPER_CLASSES:
            facts.exception_names.update(classes_in(head))
    if "rror occurred (" in text and (named := _AWS_CODE.search(text)):
        facts.codes.add(named[1].lower())
    is_answer = facts.phase is Phase.RESULT and _read_answer(facts, text)
    if messages:
        message = messages[0] if len(messages) == 1 else "\n".join(dict.fromkeys(messages))  # some SDKs repeat the body
    else:
        message = _head_and_tail((text if messages is None else _strip_echoed_request(text)).strip())
    facts.message = message
    if facts.status in _ECHOING_STATUSES:
        message = _strip_quoted(message)  # these errors quote the rejected request
    facts.words = facts.message_words = words = words_of(message)
    facts.all_words = set(words)
    if is_answer or ("passed" in facts.all_words and not (facts.exception_names or facts.status)):
        facts.words = facts.message_words = ()  # an answer, or a report of success, such as “429 tests passed”
        facts.all_words = set()


_AWS_CODE: Final = LazyPattern(r"rror occurred \((\w{3,60})\) when calling")
_TITLE_TAG: Final = LazyPattern(r"<title[^>]{0,40}>([^<]{0,300})")


def _page_title(text: str) -> str:
    """Return the title of an HTML page; the rest of it is not about the error."""
    page = _TITLE_TAG.search(text)
    return text if page is None else page[1].strip()


def _read_answer(facts: Facts, text: str) -> bool:
    """Read the signs of a model's answer; return whether its words are an answer instead of an error."""
    from rung.core.classify.answer_signs import read_answer  # lazy: only answers need its patterns

    return read_answer(facts, text)


_ECHO_MARKERS: Final = ("'role':", '"role":', "'content':", '"content":', "'messages':", '"messages":')


def _strip_echoed_request(text: str) -> str:
    """Cut an error message before the request that it echoes."""
    for mark in _ECHO_MARKERS:
        at = text.find(mark)
        if at > 0:
            text = text[:at]
    return text


def _head_and_tail(text: str) -> str:
    return text if len(text) <= HEAD + TAIL else f"{text[:HEAD]}\n{text[-TAIL:]}"


_QUOTED: Final = LazyPattern(
    r"(['\"`])(?<=[\s(=:\[]['\"`])(?<!message: .)(?<!detail: .)[^'\"`\n]{1,200}\1(?=[\s).,;:\]]|$)"
)


def _strip_quoted(text: str) -> str:
    return _QUOTED.sub("", text) if "'" in text or '"' in text or "`" in text else text


# -- output of tools ----------------------------------------------------------------------------------

_RETURNCODE_TAG: Final = LazyPattern(r"<returncode>(-?\d{1,3})</returncode>\s*(?:<output>)?")
_SERVICE_ERROR_START: Final = LazyPattern(
    r"\W*(?:api[ _]error|http[ /]\d|error in generating model output|(?:\w+\.)?(?:litellm|openai|anthropic|google|botocore|groq|mistral|cohere)\b|error code: \d{3}|\{)",
    re.IGNORECASE,
)
_COMPILER_LINE: Final = LazyPattern(
    r"^[^\s:]{1,200}:\d{1,6}(?::\d{1,6})?: (?:(?:fatal )?error\b|undefined: |cannot use |syntax error)", re.MULTILINE
)
_ERROR_LINE: Final = LazyPattern(
    r"\W*(?:\S+: )?(?:error|fatal|cannot|failed|unable|panic|abort|killed|traceback|err!|usage|\S+: command not found"
    r"|(?:/bin/)?(?:ba|z|da)?sh: |\d+ (?:error|failed)|=+ (?:errors|failures|short test)|\w*(?:error|exception)\b)",
    re.IGNORECASE,
)
# Matched case-sensitively: system messages are capitalised, the same words in a commit log usually are not.
_SYSTEM_MESSAGES: Final = (
    "Killed", "Segmentation fault", "Permission denied", "No such file or directory", "Another git process",
    ": Read-only", "No space left", "Too many open files", "Out of memory", "out of memory", "OutOfMemory",
)  # fmt: skip
_MAX_SERVICE_CHARS: Final = 400  # a longer text without an exit code is not a service's message


def _read_tool(facts: Facts, text: str) -> None:
    """Read the facts of a tool's output: the error in it, and whether it quotes the error of a service."""
    text = text.strip()
    if text.startswith("<returncode>"):
        text = _strip_returncode_tag(facts, text)
    text = _head_and_tail(text)
    if not facts.exit_code:
        facts.exit_code = exit_code_in(text) or facts.exit_code
    if _is_compiler_error(text):
        facts.codes.add("source-error")
    if facts.exit_code == 0:  # success was reported: only lines that look like errors count
        text = _error_lines(text)
    last = last_raised(text)
    if last is not None:
        facts.exception_names.add(last[0].rpartition(".")[2])
        text = text[last[1] :]
    facts.message = text
    facts.words = words_of(text)
    facts.all_words = set(facts.words)
    facts.message_words = ()
    if facts.exit_code == 0:
        return
    if facts.exit_code and facts.status is None:
        facts.status = status_in_output(text)
    if (not facts.exit_code and len(text) <= _MAX_SERVICE_CHARS) or _SERVICE_ERROR_START.match(text):
        _read_service(facts, text)
    elif last is not None:
        unquoted = _strip_quoted(text)
        facts.message_words = (
            facts.words if unquoted == text else words_of(unquoted[:600])
        )  # a subset of `words`, so `all_words` stays complete
        facts.status = facts.status or status_in(text[len(last[0]) :][:60].lstrip(": "))


def _error_lines(text: str) -> str:
    """Return the lines that look like errors."""
    system = [message for message in _SYSTEM_MESSAGES if message in text]
    return "\n".join(
        line for line in text.split("\n") if _ERROR_LINE.match(line) or any(message in line for message in system)
    )


def _strip_returncode_tag(facts: Facts, text: str) -> str:
    wrapped = _RETURNCODE_TAG.match(text)
    if wrapped is None:
        return text
    if facts.exit_code is None:
        facts.exit_code = int(wrapped[1])
    return text[wrapped.end() :].removesuffix("</output>").strip()


def _is_compiler_error(text: str) -> bool:
    """Return whether a compiler reports an error in a source line. Substring checks avoid most regex searches."""
    may_match = ": undefined" in text or (
        " error" in text and (": error" in text or "fatal error" in text or "syntax error" in text)
    )
    return may_match and _COMPILER_LINE.search(text) is not None


def _read_service(facts: Facts, text: str) -> None:
    messages = scan_fields(facts, text) if has_fields(text) else None
    if facts.status is None:
        facts.status = status_in(text[:_HEADLINE_CHARS])
    facts.exception_names.update(classes_in(text[:300]))
    facts.message_words = facts.words
    if messages:
        facts.message_words = words_of("\n".join(messages))
        facts.all_words.update(facts.message_words)
