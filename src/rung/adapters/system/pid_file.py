"""PID files: one number, for `kill $(cat FILE)`, and beside it the start time, which tells a process from a later one."""

from __future__ import annotations

import os
import re
import stat
from typing import TYPE_CHECKING, Final

from rung.engine.process_identity import ProcessId, start_tick

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_MAX_FILE_BYTES: Final = 8_192
_PID: Final = re.compile(r"[2-9]|[1-9][0-9]{1,9}")  # 0 and 1 are never ours: groups, or the first process
_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# The child writes the PID file itself and then executes the command: even if the launcher dies at any moment, there is
# never a worker without a PID file. The PID file holds the number alone, for `kill $(cat FILE)`; the start time, which
# tells the process from a later one with its number, is in a file beside it. With `set -C` nothing is written through a link.
_LAUNCHER: Final = """\
start="${0%.pid}.start"
rm -f "$0" "$0.new" "$start"
set -C
if [ -r "/proc/$$/stat" ]; then
  read -r boot </proc/sys/kernel/random/boot_id; read -r stat <"/proc/$$/stat"
  started="$boot $stat"
else
  started="ps $(LC_ALL=C ps -o lstart= -p $$)"
fi
export RUNG_PROCESS="$0"
printf '%s %s\\n' "$$" "$started" >"$start" && printf '%s\\n' "$$" >"$0.new" && mv "$0.new" "$0" && exec "$@"
"""


def launcher(file: Path, command: Sequence[str]) -> list[str]:
    """Return the command line of a shell that writes the PID file and then executes the command."""
    return ["/bin/sh", "-c", _LAUNCHER, str(file), *command]


def read_pid(file: Path) -> ProcessId | None:
    """Return the process in a PID file, or None if the file is missing or invalid."""
    number = _read_regular(file).strip()
    recorded, _, rest = _read_regular(start_file(file)).strip().partition(" ")
    if not _PID.fullmatch(number) or number != recorded:
        return None
    boot, _, stat_line = rest.partition(" ")
    started = " ".join(stat_line.split()) if boot == "ps" else f"{boot} {start_tick(stat_line)}"
    return ProcessId(int(number), started)


def write_pid(file: Path, pid: ProcessId) -> None:
    """Write the PID file of a process that is already running."""
    file.parent.mkdir(parents=True, exist_ok=True)
    boot, _, ticks = pid.started.partition(" ")
    filler = " ".join("0" * 19)  # as in /proc/PID/stat: the start time is field 22
    _replace(start_file(file), f"{pid.number} {boot} {pid.number} (rung) {filler} {ticks}\n")
    _replace(file, f"{pid.number}\n")


def remove_pid(file: Path) -> None:
    """Remove a PID file and the file beside it."""
    start_file(file).unlink(missing_ok=True)
    file.unlink(missing_ok=True)


def start_file(file: Path) -> Path:
    """Return the file with the start time of the process in a PID file."""
    return file.with_suffix(".start")


def _read_regular(file: Path) -> str:
    """Return the start of a regular file, or an empty text: a pipe or a device would block, a link may lead anywhere."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    with os.fdopen(descriptor, "rb") as opened:
        is_regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
        return opened.read(_MAX_FILE_BYTES).decode("utf-8", "replace") if is_regular else ""


def _replace(file: Path, text: str) -> None:
    new = file.with_name(f"{file.name}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, _NEW_FILE, 0o600), "w") as opened:
        opened.write(text)
    new.replace(file)
