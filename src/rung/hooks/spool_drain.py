"""Drain the spool of hooks into the journal, as a process: `python -m rung.hooks.spool_drain DIRECTORY`."""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rung.core.domain import events as ev
from rung.core.domain.errors import RungError
from rung.core.domain.failures import Evidence, Kind, Phase
from rung.core.domain.incident import Incident
from rung.core.domain.ladder import Action
from rung.core.domain.reporting_agents import HOOKS_POLICY
from rung.core.domain.request import Request
from rung.detectors.session_policy import session_policy
from rung.engine.external_loop import ExternalRecovery
from rung.hooks.crash_log import log_crash
from rung.hooks.data_dir import try_lock

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rung.store.journal.journal import Journal


def main() -> int:
    """Drain the whole spool; exits at once if another process does so."""
    data_dir = sys.argv[1]
    try:
        drain(data_dir)
    except Exception as error:  # noqa: BLE001  # a background process: only the log can report it
        log_crash(data_dir, "drain", error)
        return 1
    return 0


def drain(data_dir: str | Path, journal: str | None = None) -> int:
    """Write every spooled line to the journal of its project; return their number."""
    folder = Path(data_dir) / "spool"
    drained = 0
    with _exclusive(folder) as has_lock:
        while has_lock and (paths := sorted(folder.glob("*.jsonl")) + sorted(folder.glob("*.taken"))):
            for path in paths:
                drained += _drain_file(path, journal)
    return drained


@contextmanager
def _exclusive(folder: Path) -> Iterator[bool]:
    """Hold the spool's lock; false if another process holds it, or there is no spool."""
    if not folder.is_dir():
        yield False
        return
    handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        yield try_lock(handle)
    finally:
        os.close(handle)


def _drain_file(path: Path, journal_at: str | None) -> int:
    """Drain one session's file. It is renamed first, so that new lines go to a new file."""
    claimed = path if path.suffix == ".taken" else path.with_suffix(f".{os.getpid()}.taken")
    if claimed != path:
        _claim_file(path, claimed)
    lines = list(_parse_lines(claimed))
    by_incident: dict[str, list[Mapping[str, Any]]] = {}
    for line in lines:
        by_incident.setdefault(line["incident"], []).append(line)
    cwd = next((line["cwd"] for line in lines if "cwd" in line), "")
    journal_name = next((line["journal"] for line in lines if line.get("journal")), None)
    if lines:
        with _journal(journal_at or journal_name, cwd) as journal:
            for incident, incident_lines in by_incident.items():
                journal.append(incident, incident_lines[0]["n"], _events(incident_lines)).result()
            journal.flush()
            _record_failed_sessions(journal, by_incident, str(path.parent.parent))
            notes = next((line["notes"] for line in lines if line.get("notes")), "")
            if notes:
                _add_to_notes(str(notes), journal, by_incident, str(path.parent.parent))
    claimed.unlink()
    return len(lines)


def _record_failed_sessions(
    journal: Journal, by_incident: Mapping[str, list[Mapping[str, Any]]], data_dir: str
) -> None:
    """Record how the sessions that have ended in failure are continued. Without it they are journaled all the same."""
    from rung.hooks.recorded_session import record_session

    for incident, lines in by_incident.items():
        if lines[-1]["name"] == "closed":
            try:
                record_session(journal, incident, next((str(line["cwd"]) for line in lines if line.get("cwd")), ""))
            except (RungError, OSError) as error:
                log_crash(data_dir, "recording", error)


def _add_to_notes(folder: str, journal: Journal, incidents: Iterable[str], data_dir: str) -> None:
    """Add what ended sessions learned to the project's notes. Drained again after a crash, nothing is added twice."""
    from rung.adapters.system.project_notes import ProjectNotes

    notes = ProjectNotes(folder)
    for incident in incidents:
        events = journal.events(incident)
        try:
            notes(events[-1], Incident.of(events))
        except OSError as error:
            log_crash(data_dir, "notes", error)


def _claim_file(path: Path, to: Path) -> None:
    """Rename the file under the session's lock, which hooks hold while they write."""
    lock = path.parent.parent / "sessions" / (path.stem + ".json.lock")
    if not lock.exists():
        path.rename(to)
        return
    with lock.open("rb") as handle:
        while not try_lock(handle.fileno()):
            time.sleep(0.004)
        path.rename(to)


def _parse_lines(path: Path) -> Iterator[Mapping[str, Any]]:
    for line in path.read_bytes().splitlines():
        try:
            table = json.loads(line)
        except ValueError:
            continue  # truncated by a crash; later lines are intact
        if isinstance(table, dict) and {"incident", "n", "at", "name"} <= table.keys():
            yield table


def _journal(at: str | None, cwd: str) -> Journal:
    """Open the journal that commands in this directory use."""
    from rung.store import open_journal
    from rung.wiring.journals import journal_path

    previous = Path.cwd()
    try:
        if cwd and Path(cwd).is_dir():
            os.chdir(cwd)
        return open_journal(journal_path(at))
    finally:
        os.chdir(previous)


def _events(lines: list[Mapping[str, Any]]) -> list[ev.Event]:
    """Return the events of consecutive lines of one incident, one per line."""
    first = lines[0]
    now = float(first["at"])
    recovery = ExternalRecovery(
        session_policy(name=HOOKS_POLICY),
        request=Request(prompt=first.get("prompt") or "-", agent=first.get("agent", "")),
        incident_id=first["incident"],
        project=Path(first.get("cwd", "")).name,
        session=first.get("session", ""),
        now=lambda: now,
    )
    skipped = 0 if first["name"] == "opened" else 1  # 1: an earlier batch has the opening line
    for line in lines[1 - skipped :]:
        now = float(line["at"])
        _replay(recovery, line)
    return recovery.events[skipped:]


def _replay(recovery: ExternalRecovery, line: Mapping[str, Any]) -> None:
    name = line["name"]
    if name == "failed":
        recovery.record_failure(_evidence(line))
    elif name == "decided":
        recovery.record_decision(ev.Change(line["rung"], Action(line["action"]), 0.0, line["reason"]))
    elif name == "closed":
        recovery.close(ev.Status(line["status"]), line["reason"])
    else:
        recovery.succeeded()


def _evidence(line: Mapping[str, Any]) -> Evidence:
    text, kind = str(line.get("text", "")), line.get("kind")
    if kind is not None:
        return Evidence(
            text=text,
            code=str(line.get("rule", "")),
            finding=Kind(kind),
            repeats=int(line.get("repeats", 0)),
            missing=tuple(line.get("missing", ())),
            tool=str(line.get("tool", "")),
            phase=Phase.RESULT,
        )
    tool = str(line.get("tool", ""))
    return Evidence(text=text, tool=tool, exit_code=_exit_code(text), phase=Phase.TOOL if tool else Phase.CALL)


def _exit_code(text: str) -> int | None:
    """Return the number in `Exit code 2` at the start of a shell's error."""
    words = text[:40].split()
    if [word.lower() for word in words[:2]] == ["exit", "code"] and len(words) > 2 and words[2].isdecimal():  # noqa: PLR2004
        return int(words[2])
    return None


if __name__ == "__main__":
    sys.exit(main())
