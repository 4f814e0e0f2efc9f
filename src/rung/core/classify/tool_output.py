"""Read the facts of a tool's output: which of its lines is the error, and whether it quotes the error of a service."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rung.core.classify.json_fields import has_fields, scan_fields
from rung.core.classify.lazy_regex import LazyPattern
from rung.core.classify.phrases import words_of
from rung.core.classify.status_text import classes_in, exit_code_in, last_raised, status_in, status_in_output
from rung.core.classify.text_parts import AWS_CODE, HEADLINE_CHARS, OWN_BUGS, head_and_tail, strip_quoted
from rung.core.classify.tool_content import content_of, has_passed, is_record, without_successes

if TYPE_CHECKING:
    from rung.core.classify.facts import Facts

_RETURNCODE_TAG: Final = LazyPattern(r"<returncode>(-?\d{1,3})</returncode>\s*(?:<output>)?")
_SERVICE_ERROR_START: Final = LazyPattern(
    r"\W*(?:api[ _]error|http[ /]\d|error in generating model output|(?:\w+\.)?(?:litellm|openai|anthropic|google|botocore|groq|mistral|cohere)\b|error code: \d{3}|\{)",
    re.IGNORECASE,
)
_COMPILER_LINE: Final = LazyPattern(
    r"^(?:[^\s:]{1,200}:\d{1,6}(?::\d{1,6})?: (?:(?:fatal )?error\b|undefined: |cannot use |syntax error)"
    r"|[^\s(]{1,200}\(\d{1,6},\d{1,6}\): error |error\[E\d{4}\]: |[^\s:]{1,200}:\d{1,6}:\d{1,6} (?:parse|lint\S{0,60}|format|syntax) \u2501)",
    re.MULTILINE,
)
# Of a test run that prints each test: "test_a (tests.T.test_a) ... ERROR", "test a::b ... FAILED", or its output by name.
_TEST_VERDICT: Final = LazyPattern(
    r"^(?:(?:test\S{0,200} \([^)\n]{1,300}\)|test \S{1,300}) \.\.\. (?:ERROR|FAIL)|---- \S{1,200} std(?:out|err) ----$|PASS \(\d+\) FAIL \([1-9])",
    re.MULTILINE,
)
_ERROR_LINE: Final = LazyPattern(
    r"\W*(?:\S+(?: \d+)?: )?(?:(?:(?!raise |throw |new |return |except |catch |class |import )\w{1,12} )?error(?![_=(.])|fatal|cannot|failed|unable|panic|abort|killed|traceback|err!|usage|\S+: command not found"
    r"|(?:/bin/)?(?:ba|z|da)?sh: |\d+ (?:error|failed)|=+ (?:errors|failures|short test)|\w*(?:error|exception)\b)",
    re.IGNORECASE,
)
# The last line that an exception leaves: "ssl.SSLError: …", "<urlopen error …".
_RAISED_LINE: Final = LazyPattern(r"(?:[A-Za-z_]\w*\.)+\w*(?:Error|Exception): \S")
# Matched case-sensitively: system messages are capitalised, the same words in a commit log usually are not.
_SYSTEM_MESSAGES: Final = (
    "Killed", "Segmentation fault", "Permission denied", "No such file or directory", "Another git process",
    ": Read-only", "No space left", "Too many open files", "Out of memory", "out of memory", "OutOfMemory",
)  # fmt: skip
_MAX_SERVICE_CHARS: Final = 400  # a longer text without an exit code is not a service's message


def read_tool(facts: Facts, text: str) -> None:
    """Read the facts of a tool's output: the error in it, and whether it quotes the error of a service."""
    text = _read_outcome(facts, text.strip())
    text, raised = _split_exception(text)
    if raised:
        facts.exception_names.add(raised.rpartition(".")[2])
    _read_tool_codes(facts, text)
    facts.message = text
    facts.words = words_of(text)
    facts.all_words = set(facts.words)
    facts.message_words = ()
    if facts.exit_code == 0:
        return
    if raised in OWN_BUGS:
        facts.message_words = words_of(raised)
        return
    if facts.exit_code and facts.status is None:
        facts.status = status_in_output(text)
    if (not facts.exit_code and len(text) <= _MAX_SERVICE_CHARS) or _SERVICE_ERROR_START.match(text):
        _read_service(facts, text)
    elif raised:
        _read_raised(facts, text, raised)


def _read_outcome(facts: Facts, text: str) -> str:
    """Read the exit code and the verdicts of an output; return what it may report of a failure."""
    if text.startswith("<returncode>"):
        text = _strip_returncode_tag(facts, text)
    if "\x1b" in text:
        text = _ANSI_CODE.sub("", text)
    text = without_successes(_strip_warnings(head_and_tail(text)))
    if not facts.exit_code:
        facts.exit_code = exit_code_in(text, is_success=facts.exit_code == 0) or facts.exit_code
    _read_verdicts(facts, text)
    if facts.exit_code or not text:
        return text
    if facts.exit_code is None:
        return _without_data(text)
    # success was reported: only lines that look like errors count
    return "" if is_record(text) or content_of(text, _is_error_line) == "" else _error_lines(text)


def _split_exception(text: str) -> tuple[str, str]:
    """Return an output from its last exception on, and the class of that; the whole output and "" if it has none."""
    if " due to: " in text:
        text = _after_reason(text)
    last = last_raised(text)
    if last is None:
        return text, ""
    if last[0].endswith(_COMMAND_FAILED) and (said := _before_traceback(text)):
        return said, ""
    return text[last[1] :], last[0]


_REPORT_STARTS: Final = (
    "Error", "error", "ERROR", "Traceback", "fatal", "Fatal", "FATAL", "Failed", "failed", "npm ERR", "npm error", "bash: ", "sh: ", "/bin/",
    "Exception", "The last command", "Command ", "usage: ", "Usage: ", "Cannot", "cannot", "Unable", "unable",
)  # fmt: skip


def _without_data(text: str) -> str:
    """Return what an output without an exit code may report: nothing if it is data, and of a document its title and its errors."""
    if text.startswith(_REPORT_STARTS):  # most reports
        return text
    if is_record(text):
        return ""
    if has_passed(text):
        return _error_lines(text)
    content = content_of(text, _is_error_line)
    return text if content is None else content


def _read_verdicts(facts: Facts, text: str) -> None:
    """Read what a compiler or a test run says of each line or test."""
    if _is_compiler_error(text):
        facts.codes.add("source-error")
    if ("... " in text or "---- " in text or "FAIL (" in text) and _TEST_VERDICT.search(text):
        facts.codes.add("test-verdict")


def _read_raised(facts: Facts, text: str, name: str) -> None:
    """Read the message of the exception by which a program ended."""
    unquoted = strip_quoted(text)
    # A subset of `words`, so `all_words` stays complete.
    facts.message_words = facts.words if unquoted == text else words_of(unquoted[:600])
    facts.status = facts.status or status_in(text[len(name) :][:60].lstrip(": "))


_ANSI_CODE: Final = LazyPattern(r"\x1b\[[\d;]*[A-Za-z]")
# A warning before an error is not why the command failed, unless it says that a connection is tried again.
_WARNING: Final = LazyPattern(
    r"[^\w\n]{0,6}(?:(?:\w{1,12} )?(?:warn|warning|hint)\b|\S{1,200}:\d{1,6}: \w*Warning:)(?!.*\bretry)",
    re.IGNORECASE,
)
_WARNING_BOX: Final = LazyPattern(r"\u2577\n\u2502 Warning:.*?\u2575\n?", re.DOTALL)  # Terraform's
_CURL_CODE: Final = LazyPattern(r"^curl: \((\d{1,2})\)", re.MULTILINE)

# "No stash entries found.", "no makefile found.  Stop."; not "no errors found", which is good.
_NOTHING_FOUND: Final = LazyPattern(
    r"\bno (?!(?:\w+ )?(?:errors?|issues?|problems?|vulnerabilit|difference|changes|warning|previously|conflicts?|failures?)\b)"
    r"(?:[^\s,;.]+ ){1,5}(?:(?:was|were|could be) )?found\b(?: (?:for|with|in|at|under|by|matching|named) [^\n]{1,80})?[.!]?\s*(?:Stop\.)?$"
    r"|\bno (?:[a-z]+ ){1,3}(?:named|called|exists? with)\b"
    r"|\b(?:cannot|can't|could not|couldn't|unable to) (?:open|read|access|stat|load|locate)(?: [a-z]{1,12}){0,2}:? [\"'\u2018`]?[\w/~-]+(?:[./][\w-]+)*\.\w{1,8}[\"'\u2019`]?[.!]?\s*$"
    r"|\b(?:cannot|can't|could not|couldn't|unable to) (?:open|read|stat|load|locate)(?: [a-z]{1,12}){0,2}:? (?:\"[^\"\n]{1,200}\"|'[^'\n]{1,200}')[.!]?\s*$",
    re.IGNORECASE | re.MULTILINE,
)

_MAX_MISSING_CHARS: Final = 4_000
_MAX_RECORD_CHARS: Final = 80
_MAX_USAGE_LINES: Final = 4
# A few lines of a command that complain about one of its words, or point to its help, in any language.
_WRONG_ARGUMENT: Final = LazyPattern(
    r"^(?:[\w./+-]{1,40}(?: line \d+)?: ){0,3}(?:error: )?(?:invalid|bad|illegal|unsupported|unknown|wrong|incorrect|non-[a-z]+|extra|missing|no such"
    r"|ungültige?\w*|fehlende?\w*|unbekannte?\w*|nicht beendete?\w*|invalide|manquante?|inválid[oa]|falta|non valid[oa]|недопустим\w*|неверн\w*|пропущен\w*|ogiltig\w*|ongeldige?|nieprawidłow\w*)"
    r" (?!input\b|data\b|file\b|header\b|signature\b|checksum\b)[\w -]{2,40}(?:$|[.:,;]?(?: |$)|[\"'\u2018\u201c\u201e\u00bb`:;,(])"
    r"|^(?:[\w./+-]{1,40}: ){0,2}--?[a-z][\w-]{0,40}:? (?:must|requires?|expects?|cannot|can't|should|needs|is (?:required|invalid|unknown|not)|takes)\b"
    r"|\bno (?:[\w-]+ ){1,4}(?:specified|given|provided|selected|supplied)\b[.!]?$"
    r"|(?:[\u2018\u201c\u201e\u00ab\u00bb'\"`(] ?| )[\w.-]+ (?:--help|-h)[\u2018\u2019\u201c\u201d\u00ab\u00bb'\"` )][^\n]{0,80}\Z",
    re.IGNORECASE | re.MULTILINE,
)
# The whole output: "Error: payment method not found".
_RECORD_MISSING: Final = LazyPattern(
    r"\s*(?:error: )?(?:the )?(?!.*\b(?:model|key|credential|token|tool|function|endpoint|command)\b)(?:[a-z]+ ){1,4}(?:was )?not found(?: in [a-z ]{1,40})?[.!]?\s*\Z",
    re.IGNORECASE,
)


def _may_miss(lowered: str) -> bool:
    """Return whether `_NOTHING_FOUND` may match: each match contains one of these pairs.

    No part has an i, k or s: beyond ASCII, `re.IGNORECASE` takes other letters for them than `lower`.
    """
    if "no " in lowered and ("found" in lowered or "named" in lowered or "called" in lowered or " w" in lowered):
        return True
    if "cannot " in lowered or "can't " in lowered or "could" in lowered or "unable to " in lowered:
        return "open" in lowered or "read" in lowered or "acce" in lowered or "tat" in lowered or "lo" in lowered
    return False


def _strip_warnings(text: str) -> str:
    """Return an output without its warnings and hints, if anything else is left."""
    lowered = text.lower()  # one copy and two searches cost less than six searches
    if "warn" not in lowered and "hint" not in lowered:
        return text
    if not ("warn" in text or "Warn" in text or "WARN" in text or "hint" in text or "Hint" in text or "HINT" in text):
        return text
    if "\u2577" in text:
        text = _WARNING_BOX.sub("", text) or text
    lines = text.split("\n")
    is_warning = _WARNING.match
    rest = "\n".join([line for line in lines if not is_warning(line)])
    return text if not rest or rest.isspace() else rest


def _read_tool_codes(facts: Facts, text: str) -> None:
    """Read the codes that some programs print: of AWS's APIs, and curl's own numbers."""
    if "rror occurred (" in text and (named := AWS_CODE.search(text)):
        facts.codes.add(named[1].lower())
    if "curl: (" in text and (numbers := _CURL_CODE.findall(text)):
        facts.codes.add(f"curl-{numbers[-1]}")
    if len(text) <= _MAX_MISSING_CHARS:
        lowered = text.lower()
        names_missing = "not found: " in lowered and "signature not found" not in lowered
        if names_missing or (_may_miss(lowered) and _NOTHING_FOUND.search(text)):
            facts.codes.add("nothing-found")
        if len(text) <= _MAX_RECORD_CHARS and "not found" in lowered and _RECORD_MISSING.match(text):
            facts.codes.add("record-missing")
    if facts.exit_code and text[:6].lower() == "usage:":
        facts.codes.add("wrong-argument")
    is_usage = facts.exit_code and not facts.exception_names and text.count("\n") <= _MAX_USAGE_LINES
    if is_usage and _WRONG_ARGUMENT.search(text):
        facts.codes.add("wrong-argument")


_COMMAND_FAILED: Final = "CalledProcessError"  # it says only that a command failed; the command said why


def _before_traceback(text: str) -> str:
    """Return what a command printed before the program that ran it gave up, if it looks like an error."""
    said = text.partition("Traceback (most recent call last)")[0]
    return said if any(map(_is_error_line, said.split("\n"))) else ""


_REASON: Final = LazyPattern(r"\bdue to:\s+(?=[A-Z]\w*(?:Error|Exception):)")


def _after_reason(text: str) -> str:
    """Return the exception that an interpreter names as the reason; what stands before it is the code that it ran."""
    reason = _REASON.search(text)
    return text if reason is None else f"Error\n{text[reason.end() :]}"


_MAX_HEAD_CHARS: Final = 400  # of a line: what makes it an error stands first


def _is_error_line(line: str) -> bool:
    head = line[:_MAX_HEAD_CHARS]
    if _ERROR_LINE.match(head) or _RAISED_LINE.match(head):
        return True
    for message in _SYSTEM_MESSAGES:  # a generator expression costs more than the searches
        if message in line:
            return _is_system_message(message, line)
    return False


def _is_system_message(message: str, line: str) -> bool:
    """Return whether a program prints a system message, rather than a text that mentions it."""
    if (
        message == "OutOfMemory"
        or f": {message}" in line
        or f"{message}:" in line
        or line.startswith((message, *_SHELL))
    ):
        return True
    return line.rstrip(" .!)\"'").endswith(message)


_SHELL: Final = ("/bin/bash: ", "bash: ", "/bin/sh: ", "sh: ")


def _error_lines(text: str) -> str:
    """Return the lines that look like errors."""
    system = [message for message in _SYSTEM_MESSAGES if message in text]
    lines = text.rstrip().split("\n")
    return "\n".join(
        line
        for line in lines
        if _ERROR_LINE.match(line)
        or any(message in line and _is_system_message(message, line) for message in system)
        or (line is lines[-1] and _RAISED_LINE.match(line))
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
    may_match = (
        ": undefined" in text
        or (" error" in text and (": error" in text or "fatal error" in text or "syntax error" in text))
        or "error[E" in text
        or "\u2501\u2501" in text
    )
    return may_match and _COMPILER_LINE.search(text) is not None


def _read_service(facts: Facts, text: str) -> None:
    messages = scan_fields(facts, text) if has_fields(text) else None
    if facts.status is None:
        facts.status = status_in(text[:HEADLINE_CHARS])
    facts.exception_names.update(classes_in(text[:300]))
    facts.message_words = facts.words
    if messages:
        facts.message_words = words_of("\n".join(messages))
        facts.all_words.update(facts.message_words)
