"""Facts before strings: what an error's text says about itself, dug out before any rule looks at words."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from rung.core.classify.facts import Facts
from rung.core.classify.json_fields import dig, has_fields, messages
from rung.core.classify.lazy_regex import Pattern
from rung.core.classify.phrases import words_of
from rung.core.classify.status_text import classes_in, exit_code_in, last_raised, status_in
from rung.core.domain.failures import Phase

if TYPE_CHECKING:
    from rung.core.domain.failures import Evidence

HEAD: Final = 1_400  # of a long text, what is read for words: what was done …
TAIL: Final = 1_800  # … and what went wrong


def read(evidence: Evidence) -> Facts:
    """All the facts there are in an evidence."""
    facts = Facts(evidence)
    text = evidence.text
    if evidence.phase is Phase.TOOL:
        _read_tool(facts, text)
    elif text:
        _read_call(facts, text)
    return facts


_HEADLINE: Final = 400  # of a text, where a status and a class stand
_ECHOING: Final = frozenset({400, 404, 422})
_VAGUE: Final = frozenset({"Exception", "Error", "RuntimeError", "ValueError", "RetryError"})  # what wraps another one


def _read_call(facts: Facts, text: str) -> None:
    """What a call came to: a body, an exception's text, an answer."""
    told = messages(facts, text) if has_fields(text) else None
    if "<" in text and "<title" in text:
        text = _title(text)
    if facts.status is None:
        head = text[:_HEADLINE]
        facts.status = status_in(head)
        if not facts.names or facts.names <= _VAGUE:
            facts.names.update(classes_in(head))
    if facts.phase is Phase.RESULT:
        _read_answer(facts, text)
    if told:
        message = told[0] if len(told) == 1 else "\n".join(told)
    else:
        message = _shortened((text if told is None else _before_the_echo(text)).strip())
    facts.message = message
    if facts.status in _ECHOING:
        message = _unquoted(message)  # what a refused request is told about itself
    facts.words = facts.said_words = words = words_of(message)
    facts.there = set(words)
    if "passed" in facts.there and not (facts.names or facts.status):
        facts.words = facts.said_words = ()  # a report of success, whatever it is about
        facts.there = set()


_PAGE: Final = Pattern(r"<title[^>]{0,40}>([^<]{0,300})")


def _title(text: str) -> str:
    """Of a page for people, only its title tells."""
    page = _PAGE.search(text)
    return text if page is None else page[1].strip()


_LEAKED: Final = Pattern(r"</?tool_(?:call|result|exchange)\b|<function=|<\|tool|<\|\"\|>|<\|im_(?:start|end)\|>")


def _read_answer(facts: Facts, text: str) -> None:
    """What can be seen of an answer without knowing what was asked: JSON that breaks off, a call that was spoken."""
    if "<" in text and _LEAKED.search(text):
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


_QUOTED: Final = Pattern(r"(['\"`])(?<=[\s(=:\[]['\"`])[^'\"`\n]{1,200}\1(?=[\s).,;:\]]|$)")


def _unquoted(text: str) -> str:
    return _QUOTED.sub("", text) if "'" in text or '"' in text or "`" in text else text


# -- what a tool printed -------------------------------------------------------------------------------

_WRAPPED: Final = Pattern(r"<returncode>(-?\d{1,3})</returncode>\s*(?:<output>)?")
_API: Final = Pattern(
    r"\W*(?:api[ _]error|http[ /]\d|error in generating model output|(?:\w+\.)?(?:litellm|openai|anthropic|google|botocore|groq|mistral|cohere)\b|error code: \d{3}|\{)",
    re.IGNORECASE,
)
_SOURCE: Final = Pattern(
    r"^[^\s:]{1,200}:\d{1,6}(?::\d{1,6})?: (?:(?:fatal )?error\b|undefined: |cannot use |syntax error)", re.MULTILINE
)
_COMPLAINT: Final = Pattern(
    r"\W*(?:\S+: )?(?:error|fatal|cannot|failed|unable|panic|abort|killed|traceback|err!|usage|\S+: command not found"
    r"|(?:/bin/)?(?:ba|z|da)?sh: |\d+ (?:error|failed)|=+ (?:errors|failures|short test)|\w*(?:error|exception)\b)",
    re.IGNORECASE,
)
# The system's own words have capitals; the same words in a list of commits mostly do not.
_SYSTEM: Final = (
    "Killed", "Segmentation fault", "Permission denied", "No such file or directory", "Another git process",
    ": Read-only", "No space left", "Too many open files", "Out of memory", "out of memory", "OutOfMemory",
)  # fmt: skip
_SERVICE_LIMIT: Final = 400  # a text so short, from no process, may be a service's own words


def _read_tool(facts: Facts, text: str) -> None:
    """What a command or a tool printed: where it says what went wrong, and whether a service speaks there."""
    text = text.strip()
    if text.startswith("<returncode>"):
        text = _unwrapped(facts, text)
    text = _shortened(text)
    if not facts.exit_code:
        facts.exit_code = exit_code_in(text) or facts.exit_code
    if _points_at_source(text):
        facts.codes.add("source-error")
    if facts.exit_code == 0:  # it says that it went well: only what it complains about itself counts
        text = _complaints(text)
    last = last_raised(text)
    if last is not None:
        facts.names.add(last[0].rpartition(".")[2])
        text = text[last[1] :]
    facts.message = text
    facts.words = words_of(text)
    facts.there = set(facts.words)
    facts.said_words = ()
    if facts.exit_code == 0:
        return
    if (not facts.exit_code and len(text) <= _SERVICE_LIMIT) or _API.match(text):
        _read_service(facts, text)
    elif last is not None:
        unquoted = _unquoted(text)
        facts.said_words = facts.words if unquoted == text else words_of(unquoted[:600])  # fewer words, no new ones
        facts.status = facts.status or status_in(text[len(last[0]) :][:60].lstrip(": "))


def _complaints(text: str) -> str:
    """The lines in which something is complained about."""
    system = [words for words in _SYSTEM if words in text]
    return "\n".join(
        line for line in text.split("\n") if _COMPLAINT.match(line) or any(words in line for words in system)
    )


def _unwrapped(facts: Facts, text: str) -> str:
    wrapped = _WRAPPED.match(text)
    if wrapped is None:
        return text
    if facts.exit_code is None:
        facts.exit_code = int(wrapped[1])
    return text[wrapped.end() :].removesuffix("</output>").strip()


def _points_at_source(text: str) -> bool:
    """Does a compiler point at a line of the source? Cheap to refuse: the line must tell an error."""
    told = ": undefined" in text or (
        " error" in text and (": error" in text or "fatal error" in text or "syntax error" in text)
    )
    return told and _SOURCE.search(text) is not None


def _read_service(facts: Facts, text: str) -> None:
    said = dig(facts, text) if has_fields(text) else None
    if facts.status is None:
        facts.status = status_in(text[:_HEADLINE])
    facts.names.update(classes_in(text[:300]))
    facts.said_words = facts.words
    if said:
        facts.said_words = words_of("\n".join(said))
        facts.there.update(facts.said_words)
