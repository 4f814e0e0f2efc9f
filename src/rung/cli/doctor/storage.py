"""Checks of the journal and of the user's data directory."""

from __future__ import annotations

import os
import shlex
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rung.cli.doctor.finding import DoctorFinding, State
from rung.core.domain.errors import RungError
from rung.core.text.moments import format_span, rfc3339
from rung.core.text.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

MIN_FREE_BYTES: Final = 200 * 1024 * 1024
MAX_CLOCK_ERROR_SECONDS: Final = 300.0


def check_journal(option: str | None) -> Iterator[DoctorFinding]:
    """Yield where the journal is, whether it can be read and written, its schema and its last event."""
    from rung.wiring.journals import is_url, locate, shown_location

    try:
        at, chosen_by = locate(option)
    except RungError as error:  # rung.toml is invalid
        yield DoctorFinding(name="location", state=State.BROKEN, detail=str(error))
        return
    path = Path(at).expanduser()
    shown = shown_location(at) if is_url(at) else str(path)
    facts = {"journal": shown, "chosen_by": chosen_by}
    yield DoctorFinding(name="location", state=State.OK, detail=f"{shown} (chosen by {chosen_by})", facts=facts)
    if not is_url(at):
        if not os.path.lexists(path):
            yield _can_be_created(path)
            return
        yield from _access(path)
    yield from _state(at, "" if option is None else f" --journal {shlex.quote(option)}")


def _can_be_created(path: Path) -> DoctorFinding:
    folder = next(parent for parent in path.absolute().parents if os.path.lexists(parent))
    if folder.is_dir() and os.access(folder, os.W_OK | os.X_OK):
        detail = "there is no journal yet; the first run creates it"
        return DoctorFinding(name="file", state=State.INFO, detail=detail, facts={"exists": False})
    detail = f"there is no journal, and {folder} cannot be written by this account"
    fix = "export RUNG_JOURNAL=~/rung-journal.db"
    return DoctorFinding(name="file", state=State.BROKEN, detail=detail, fix=fix, facts={"exists": False})


def _access(path: Path) -> Iterator[DoctorFinding]:
    status = path.lstat()
    is_writable = os.access(path, os.W_OK) and os.access(path.parent, os.W_OK | os.X_OK)
    facts: dict[str, Any] = {"exists": True, "writable": is_writable}
    quoted = shlex.quote(str(path))
    if hasattr(os, "geteuid") and status.st_uid != os.geteuid():
        detail = f"belongs to another account (uid {status.st_uid}, you are {os.geteuid()})"
        state = State.WARNING if is_writable else State.BROKEN
        yield DoctorFinding(name="file", state=state, detail=detail, fix=f'sudo chown "$USER" {quoted}', facts=facts)
    elif not is_writable:
        detail = "cannot be written: nothing is recorded"
        fix = f"chmod u+rw {quoted} && chmod u+rwx {shlex.quote(str(path.parent))}"
        yield DoctorFinding(name="file", state=State.BROKEN, detail=detail, fix=fix, facts=facts)
    else:
        yield DoctorFinding(name="file", state=State.OK, detail="can be read and written", facts=facts)
    free = shutil.disk_usage(path.parent).free
    if free < MIN_FREE_BYTES:
        detail = f"only {format_bytes(free)} are free where the journal is"
        yield DoctorFinding(
            name="disk", state=State.WARNING, detail=detail, fix="rung journal prune --older-than 30d",
            facts={"free_bytes": free},
        )  # fmt: skip


def _state(at: str, option: str) -> Iterator[DoctorFinding]:
    from rung.store.journal.journal_state import journal_state

    try:
        state = journal_state(at)
    except RungError as error:
        yield _unreadable(str(error), at, option)
        return
    last = None if state.last_event_at is None else rfc3339(state.last_event_at)
    facts = {"schema": state.schema, "bytes": state.size_bytes, "last_event_at": last}
    size = f"schema {state.schema}, {format_bytes(state.size_bytes)}"
    if state.last_event_at is None:
        yield DoctorFinding(name="content", state=State.OK, detail=f"{size}, no events yet", facts=facts)
        return
    age = time.time() - state.last_event_at
    if age < -MAX_CLOCK_ERROR_SECONDS:
        detail = f"{size}; its last event is {format_span(-age)} in the future: the clock of this machine is behind"
        yield DoctorFinding(
            name="content", state=State.BROKEN, detail=detail, fix="sudo timedatectl set-ntp true", facts=facts
        )
    else:
        detail = f"{size}, last event {format_span(max(age, 0.0))} ago"
        yield DoctorFinding(name="content", state=State.OK, detail=detail, facts=facts)


def _unreadable(why: str, at: str, option: str) -> DoctorFinding:
    if "older schema" in why:
        return DoctorFinding(name="content", state=State.WARNING, detail=why, fix=f"rung journal check{option}")
    if "pip install" in why:
        return DoctorFinding(name="content", state=State.BROKEN, detail=why, fix="pip install 'rung[postgres]'")
    if "newer Rung" in why:
        return DoctorFinding(name="content", state=State.BROKEN, detail=why, fix="pip install --upgrade rung")
    if "://" in at:
        return DoctorFinding(name="content", state=State.BROKEN, detail=why)
    path = shlex.quote(str(Path(at).expanduser()))
    aside = f"mv {path} {path}.broken" if os.path.lexists(Path(at).expanduser()) else ""
    is_damaged = any(word in why for word in ("is damaged", "is not a journal", "is a directory", "cannot be opened"))
    return DoctorFinding(name="content", state=State.BROKEN, detail=why, fix=aside if is_damaged else "")
