"""Project notes about failures: `learnings.md` and `issues.md`, written by people and by Rung.

The files are read before a run and only appended to: one write at the end of the file, under a lock, so that no text of
another process or a person is lost. `LearningsFile(folder)` is a listener that adds an issue when a recovery ends
partial or blocked, and a learning when a kind of failure occurs for the first time. If an editor saves an old copy over the file,
the entry is lost; the next incident of the same kind adds it again.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from rung.core.classify.evidence import clip
from rung.core.classify.redaction import redacted
from rung.core.domain import events as ev
from rung.core.domain.failures import GROUPS, Failure, Kind
from rung.core.domain.recommendation import failed_at, recommendation
from rung.core.text.quoted_data import on_one_line

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rung.core.domain.incident import Incident

    WriteEntry = Callable[[int, str, str], None]

LEARNINGS: Final = "learnings.md"
ISSUES: Final = "issues.md"
MAX_TITLE_CHARACTERS: Final = 80
MAX_MESSAGE_CHARACTERS: Final = 500
MAX_FILE_BYTES: Final = 1 << 20  # of each file; nothing is added to a larger one
# A link could lead to any file of the user, and a pipe would block for ever.
_PLAIN: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_MAX_WRITE_ATTEMPTS: Final = 5  # attempts to write a file that is being replaced
_HEADING: Final = re.compile(r"#{1,6}\s*\[([^\]]+)\]\s*(.*)")
_FIELD: Final = re.compile(
    r"(?:[-*+]\s+|#{2,6}\s+)?(?:\*\*|__)?"
    r"(date|importance|severity|status|description|root cause|workaround|resolution|fingerprint|incident)"
    r"(?:\*\*|__)?\s*(?::(?:\*\*|__)?\s*(.*)|$)",
    re.IGNORECASE,
)
_LONG: Final = frozenset({"description", "root cause", "workaround", "resolution"})  # may span several lines
_RULES: Final = frozenset({"---", "***", "___"})
_NUMBER: Final = re.compile(r"ISSUE[-_ ]?(\d{1,9})", re.IGNORECASE)
_UNSOLVED: Final = frozenset({ev.Status.PARTIAL, ev.Status.BLOCKED})
_SEVERE: Final = frozenset({Kind.MISSING_CREDENTIALS, Kind.AUTH_ERROR, Kind.QUOTA_EXHAUSTED, Kind.BUDGET_EXHAUSTED})


class Learning(NamedTuple):
    """Entry of `learnings.md`. A missing field is empty."""

    category: str
    title: str
    date: str = ""
    importance: str = "LOW"
    body: str = ""


class LearningsIssue(NamedTuple):
    """Entry of `issues.md`. A missing field is empty."""

    number: int
    title: str
    date: str = ""
    severity: str = ""
    status: str = ""
    description: str = ""
    root_cause: str = ""
    workaround: str = ""
    resolution: str = ""
    fingerprint: str = ""


def load_notes(folder: str | Path) -> tuple[list[Learning], list[LearningsIssue]]:
    """Return the learnings and issues in this folder, in order. A missing file has none."""
    return _learnings(_text(Path(folder) / LEARNINGS)), _issues(_text(Path(folder) / ISSUES))


class LearningsFile:
    """Listener that appends to a project's notes: `recover(…, listeners=[LearningsFile("notes")])`."""

    def __init__(self, folder: str | Path, *, write: WriteEntry | None = None) -> None:
        self.folder = Path(folder)
        self._write = write or write_entry
        self._noted: set[Kind] = set()  # kinds already in the file: most incidents need no read

    def __call__(self, event: ev.Event, incident: Incident) -> None:
        """Add entries when an incident ends: by then it is known which rung helped."""
        if not isinstance(event, ev.AttemptSucceeded | ev.Closed | ev.Cancelled) or not incident.failures:
            return
        date = datetime.fromtimestamp(event.at, UTC).date().isoformat()
        if incident.status in _UNSOLVED and not isinstance(event, ev.Cancelled):
            _append(self.folder / ISSUES, "# Issues", partial(_issue_entry, incident, date), self._write)
        for place, failure in enumerate(incident.failures):
            if failure.kind not in self._noted:
                entry = partial(_learning_entry, incident, place, date)
                _append(self.folder / LEARNINGS, "# Learnings", entry, self._write)
                self._noted.add(failure.kind)


def _text(path: Path) -> str:
    """Return the text of a file: regular, not a link, and of bounded size."""
    try:
        handle = os.open(path, os.O_RDONLY | _PLAIN)
    except FileNotFoundError:
        return ""
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(f"{path}: not a regular file")
        data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise OSError(f"{path}: larger than {MAX_FILE_BYTES:,} bytes, so it is not used; move old entries elsewhere")
    return data.decode("utf-8-sig", "replace")


def _entries(text: str) -> list[tuple[str, str, Mapping[str, str]]]:
    """Return tag, title and fields of each entry. Text without a field has the key "". Fenced blocks are no entries."""
    entries: list[tuple[str, str, dict[str, str]]] = []
    fenced, name = False, ""
    for line in text.splitlines():
        stripped, value = line.strip(), line
        fence = stripped.startswith(("```", "~~~"))
        heading, field = (None, None) if fenced or fence else (_HEADING.fullmatch(stripped), _FIELD.fullmatch(stripped))
        if heading is not None:
            entries.append((heading[1].strip(), heading[2].strip(), {}))
            name = ""
        elif entries:
            if field is not None:
                name, value = field[1].lower(), field[2] or ""
            elif stripped in _RULES and not fenced:
                name, value = "", ""
            fields = entries[-1][2]
            fields[name] = f"{fields[name]}\n{value}" if name in fields else value
            name = name if name in _LONG else ""
        fenced ^= fence
    return [(tag, title, {name: value.strip() for name, value in fields.items()}) for tag, title, fields in entries]


def _learnings(text: str) -> list[Learning]:
    return [
        Learning(tag, title, fields.get("date", ""), fields.get("importance", "").upper() or "LOW", fields.get("", ""))
        for tag, title, fields in _entries(text)
    ]


def _issues(text: str) -> list[LearningsIssue]:
    names = [name.replace("_", " ") for name in LearningsIssue._fields[2:]]
    numbered = [(_NUMBER.fullmatch(tag), title, fields) for tag, title, fields in _entries(text)]
    return [
        LearningsIssue(
            int(number[1]), title, *({"description": fields.get("", ""), **fields}.get(name, "") for name in names)
        )
        for number, title, fields in numbered
        if number is not None
    ]


def _line(text: str, limit: int = MAX_MESSAGE_CHARACTERS) -> str:
    """Return a message as one line without secrets, so that it cannot look like an entry."""
    return clip(on_one_line(redacted(text)), limit).replace("\n", " ")


def _cause(failure: Failure) -> str:
    return _line(f"{failure.kind} (rule {failure.rule}): {failure.message}")


def _issue_entry(incident: Incident, date: str, text: str) -> str:
    """Return the entry of an incident that ended partial or blocked, or an empty string if its failure has an entry."""
    failure = incident.failures[-1]
    if failure.fingerprint in text:
        return ""
    number = max((issue.number for issue in _issues(text)), default=0) + 1
    severity = "High" if failure.kind in _SEVERE else "Low" if failure.kind in GROUPS["transient"] else "Medium"
    kinds = " → ".join(dict.fromkeys(each.kind.value for each in incident.failures))
    fields = {
        "Date": date,
        "Severity": severity,
        "Status": "Open",
        "Description": _line(
            f"Ended {incident.status} at {failed_at(incident)}: {incident.reason}. Failures: {kinds}."
        ),
        "Root cause": _line(incident.cause) or _cause(failure),
        "Workaround": recommendation(failure),
        "Resolution": "none yet",
        "Fingerprint": failure.fingerprint,
        "Incident": incident.id,
    }
    lines = [f"- **{name}**: {value}" for name, value in fields.items()]
    title = _line(failure.message, MAX_TITLE_CHARACTERS) or failure.kind.value
    return "\n".join([f"## [ISSUE-{number:03}] {title}", "", *lines, ""])


def _learning_entry(incident: Incident, place: int, date: str, text: str) -> str:
    """Return the entry of a new kind of failure, or an empty string if the kind has an entry."""
    from rung.core.classify.guide.work import GUIDES

    failure = incident.failures[place]
    kinds = {re.sub(r"[\s-]+", "_", learning.category.lower()) for learning in _learnings(text)}
    if failure.kind in kinds or failure.fingerprint in text:
        return ""
    helped, importance = _resolution(incident, place)
    title = _line(failure.message, MAX_TITLE_CHARACTERS) or failure.kind.value
    head = f"## [{failure.kind.value.upper()}] {title}\n\n**Date**: {date}\n**Importance**: {importance}\n"
    body = f"First seen as {_cause(failure)}\n{helped}\nWhat helps in general: {GUIDES[failure.kind].helps[0]}\n"
    return f"{head}**Fingerprint**: {failure.fingerprint}\n\n{body}\n---\n"


def _resolution(incident: Incident, place: int) -> tuple[str, str]:
    """Return a sentence on what resolved the failure, and its importance."""
    later = incident.failures[place + 1 :]
    if later and later[-1].kind is not incident.failures[place].kind:
        return f"Then came {later[-1].kind}.", "MEDIUM"
    if incident.status is not ev.Status.RECOVERED:
        return _line(f"Nothing helped: {incident.status}, {incident.reason}"), "HIGH"
    match incident.decision:
        case ev.Change(action=action):
            return f"What helped: {action}.", "MEDIUM"
        case ev.HandOver(model=model, agent=agent):
            return f"What helped: handing over to {', '.join(filter(None, (model, agent)))}.", "MEDIUM"
        case _:
            return "What helped: trying again.", "LOW"


def _append(path: Path, heading: str, make: Callable[[str], str], write: WriteEntry) -> None:
    """Append the entry that `make` builds from the current text, in one write, under a lock."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for _ in range(_MAX_WRITE_ATTEMPTS):
        file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | _PLAIN | getattr(os, "O_BINARY", 0), 0o644)
        try:
            if sys.platform != "win32":
                fcntl.flock(file, fcntl.LOCK_EX)  # released on close
            text = _text(path)
            entry = make(text)
            if entry:
                write(file, text, entry if text else f"{heading}\n\n{entry}")
            if _is_same_file(file, path):
                return
        finally:
            os.close(file)
    raise OSError(f"{path}: was replaced repeatedly during the write")


def write_entry(file: int, text: str, entry: str) -> None:
    """Append an entry to an open file that has this text, in one write, and sync it."""
    lines = text.replace("\r", "")
    whole = ("" if not text or lines.endswith("\n\n") else "\n" if lines.endswith("\n") else "\n\n") + entry
    data = (whole.replace("\n", "\r\n") if "\r\n" in text else whole).encode("utf-8", "replace")
    if os.write(file, data) != len(data):
        raise OSError("only part of the entry could be written: the disk may be full")
    os.fsync(file)


def _is_same_file(file: int, path: Path) -> bool:
    """Return whether the path still refers to the open file. An editor may have replaced it."""
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False
