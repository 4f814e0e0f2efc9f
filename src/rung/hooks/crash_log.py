"""Crash log and time limit of hooks. A hook that fails or times out logs one line; the next session shows it."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # importing typing costs more than an ordinary hook
if TYPE_CHECKING:
    from typing import Final

MAX_HOOK_SECONDS: Final = 4.0  # limit of a hook's own work; checks that the project configures have their own
LOG_NAME: Final = "crash.log"
_MAX_LOG_BYTES: Final = 256 * 1024


class HookTimeout(Exception):
    """A hook exceeded its time limit."""


def set_time_limit(seconds: float) -> None:
    """Raise `HookTimeout` after `seconds`; 0 cancels the limit."""
    try:
        import _signal as signal  # type: ignore[import-not-found]  # `signal` itself loads enum: 6 ms
    except ImportError:
        return  # the agent's own timeout remains
    if not hasattr(signal, "setitimer"):
        return

    def on_alarm(*_: object) -> None:
        raise HookTimeout(f"hook timed out after {MAX_HOOK_SECONDS:g} s")

    try:
        signal.signal(signal.SIGALRM, on_alarm)
    except ValueError:
        return  # signals need the main thread; the resident process has no time limit
    signal.setitimer(signal.ITIMER_REAL, seconds)


def log_crash(data_dir: str, agent: str, error: BaseException) -> None:
    """Append an error to the crash log; never raises."""
    try:
        import json
        import time

        os.makedirs(data_dir, mode=0o700, exist_ok=True)  # noqa: PTH103  # pathlib costs milliseconds
        path = os.path.join(data_dir, LOG_NAME)  # noqa: PTH118
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        at = f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}" if trace else ""  # noqa: PTH119
        line = {
            "at": round(time.time(), 3),
            "agent": agent,
            "error": f"{type(error).__name__}: {error}"[:500],
            "where": at,
        }
        size = os.stat(path).st_size if os.path.exists(path) else 0  # noqa: PTH110, PTH116
        flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if size > _MAX_LOG_BYTES else os.O_APPEND)
        handle = os.open(path, flags, 0o600)
        try:
            os.write(handle, json.dumps(line).encode() + b"\n")
        finally:
            os.close(handle)
    except Exception:  # noqa: BLE001, S110  # there is nowhere left to report it
        pass


def unread_crashes(data_dir: str) -> str:
    """Return one line about the crashes since the last call; empty if there are none."""
    path = os.path.join(data_dir, LOG_NAME)  # noqa: PTH118
    lines = unread_lines(path)
    if not lines:
        return ""
    import json

    try:
        last = json.loads(lines[-1])
        text = f"{last['error']} ({last['where']})"
    except (ValueError, KeyError, TypeError):
        text = lines[-1].decode("utf-8", "replace")[:200]
    times = "once" if len(lines) == 1 else f"{len(lines)} times"
    return f"rung: a hook failed {times} since the last session; the agent was not affected. Last: {text}. Log: {path}"


def unread_lines(path: str) -> list[bytes]:
    """Return the lines of a log since the last call; beside it, a file keeps how far it was read."""
    try:
        size = os.stat(path).st_size  # noqa: PTH116
    except OSError:
        return []
    offset = _read_offset(path + ".seen")
    with open(path, "rb") as file:  # noqa: PTH123
        file.seek(offset if offset <= size else 0)
        lines = [line for line in file.read(size).splitlines() if line.strip()]
    with open(path + ".seen", "w", encoding="ascii") as offset_file:  # noqa: PTH123
        offset_file.write(str(size))
    return lines


def _read_offset(path: str) -> int:
    try:
        with open(path, encoding="ascii") as file:  # noqa: PTH123
            return int(file.read())
    except (OSError, ValueError):
        return 0
