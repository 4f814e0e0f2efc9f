"""One recorded step of a session, as the search for its root cause sees it, and the names that an error mentions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from rung.core.domain.failures import Kind, first_line
from rung.core.domain.masks import mask_volatile

if TYPE_CHECKING:
    from collections.abc import Iterator


class SessionStep(NamedTuple):
    """A call or an attempt. `number` is its recorded number, `call` its arguments, `text` the error or the result.

    `changes`: it changes files or a system. `is_attempt`: a whole attempt of a recovery, not a tool call. `origin` is the
    number of the failed step that led to this attempt's model or agent; `where` names the incident.
    """

    number: int
    action: str
    call: str = ""
    text: str = ""
    failed: bool = False
    kind: Kind = Kind.UNKNOWN
    changes: bool = False
    is_attempt: bool = False
    origin: int | None = None
    where: str = ""


_MAX_TEXT_CHARS: Final = 4_000
_MAX_FACT_CHARS: Final = 240
_WORD: Final = re.compile(r"[^\W_]+")
_EXCEPTION: Final = re.compile(
    r"^\s*(?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception|Warning|NotFound|Timeout|Interrupt)\b.*", re.MULTILINE
)
_ERROR_LINE: Final = re.compile(r"^.*\b(?:error|fatal|failed|denied|not found|cannot|no such|timed out|exceeded|invalid|refused)\b.*$", re.IGNORECASE | re.MULTILINE)  # fmt: skip
_TAGS: Final = re.compile(r"</?(?:returncode|output|error|command|warning)>")
_MISSING: Final = (
    re.compile(r"[Nn]o module named ['\"]?([\w.]+)"),
    re.compile(r"[Cc]annot find (?:module|package) ['\"]?([\w./@-]+)"),
    re.compile(r"(?:^|[\s:])([\w.+-]+): (?:command )?not found"),
    re.compile(r"[Nn]o matching distribution found for ([\w.-]+)"),
    re.compile(r"^(?:[\w.-]+: )?(?:cannot (?:access|open|stat) )?['\"]?([^\s'\":]+)['\"]?: [Nn]o such file"),
    re.compile(r"[Nn]o such file or directory: ['\"]?([^\s'\"]+)"),
)
_INSTALL: Final = re.compile(r"\b(?:pip[\d.]*|uv|npm|yarn|pnpm|apt|apt-get|brew|conda|cargo|gem|poetry)\s+(?:install|add|env create|create)\b(?P<rest>[^|;&\n]*)")  # fmt: skip
_PATH: Final = re.compile(r"(?<![\w:/])(?:[\w.@~-]*/)+[\w.@-]+|\b[\w-]+\.(?!\d)[A-Za-z]\w{0,4}\b")
_IDENTIFIER: Final = re.compile(r"\b(?=[A-Za-z_-]*\d)(?=\d*[A-Za-z])[A-Za-z0-9_-]{4,40}\b")
_SETTING: Final = re.compile(r"\b[A-Z][A-Z0-9]+(?:_[A-Z0-9]+)+\b")
_COMMON: Final = frozenset("sh bash python python3 line file tmp usr bin lib app src test tests main.py".split())  # noqa: SIM905
_STANDARD_PLACES: Final = ("/bin/", "/usr/bin/", "/usr/lib/", "/usr/local/", "/lib/", "/opt/", "/proc/", "/dev/")


def fact_of(step: SessionStep) -> str:
    """Return the line of an error that says what went wrong."""
    text = _TAGS.sub(" ", step.text[:_MAX_TEXT_CHARS])
    exceptions = _EXCEPTION.findall(text)
    if exceptions:
        return first_line(exceptions[-1], _MAX_FACT_CHARS)
    line = _ERROR_LINE.search(text)
    return first_line(line[0] if line else text, _MAX_FACT_CHARS)


def masked_fact(step: SessionStep) -> str:
    """Return the fact of an error without numbers, ids and paths; equal for recurrences."""
    return mask_volatile(fact_of(step))


def subjects_of(step: SessionStep) -> frozenset[str]:
    """Return what a failed step is about: the missing thing, the package to install, the names in its error."""
    found = {name.partition(".")[0] if index == 0 else name for index, name in _missing_in(fact_of(step))}
    install = _INSTALL.search(step.call)
    if install is not None:
        found |= {
            re.split(r"[=<>\[@]", word, maxsplit=1)[0] for word in install["rest"].split() if word[0] not in "-'\""
        }
    return frozenset(filter(_is_specific, found | names_in(fact_of(step))))


def _missing_in(fact: str) -> Iterator[tuple[int, str]]:
    for index, pattern in enumerate(_MISSING):
        for name in pattern.findall(fact):
            yield index, name


def names_in(text: str) -> frozenset[str]:
    """Return the paths, identifiers and settings that a text names."""
    paths = {path for path in _PATH.findall(text) if not path.startswith(_STANDARD_PLACES)}
    ends = {path.rstrip("/").rpartition("/")[2] for path in paths}
    names = paths | ends | set(_IDENTIFIER.findall(text)) | set(_SETTING.findall(text))
    return frozenset(filter(_is_specific, names))


def _is_specific(name: str) -> bool:
    return len(name) > _MIN_NAME_CHARS and name.lower() not in _COMMON


_MIN_NAME_CHARS: Final = 2


def likeness(one: str, other: str) -> float:
    """Return the share of words that two calls have in common, 0 to 1."""
    first, second = (frozenset(_WORD.findall(text[:_MAX_TEXT_CHARS].lower())) for text in (one, other))
    both = len(first | second)
    return len(first & second) / both if both else 1.0
