"""Crash log and time limit of hooks: a hook that breaks or takes too long leaves a line, which the next session shows."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # importing typing costs more than an ordinary hook
if TYPE_CHECKING:
    from typing import Final

SECONDS: Final = 4.0  # of a hook's own work; a check that the project configures has its own limit
LOG: Final = "crash.log"
_LOG_LIMIT: Final = 256 * 1024


class OutOfTime(Exception):
    """A hook's own work took too long."""


def limit(seconds: float) -> None:
    """Raise `OutOfTime` after so many seconds; 0 cancels it."""
    try:
        import _signal as signal  # type: ignore[import-not-found]  # `signal` itself loads enum: 6 ms
    except ImportError:
        return  # the agent's own timeout remains
    if not hasattr(signal, "setitimer"):
        return

    def out_of_time(*_: object) -> None:
        raise OutOfTime(f"not done within {SECONDS:g} s")

    try:
        signal.signal(signal.SIGALRM, out_of_time)
    except ValueError:
        return  # not in the main thread: the resident process interrupts nobody
    signal.setitimer(signal.ITIMER_REAL, seconds)


def crashed(place: str, agent: str, error: BaseException) -> None:
    """Append an error to the crash log; where that fails too, nothing happens."""
    try:
        import json
        import time

        os.makedirs(place, mode=0o700, exist_ok=True)  # noqa: PTH103  # pathlib costs milliseconds
        path = os.path.join(place, LOG)  # noqa: PTH118
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
        flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if size > _LOG_LIMIT else os.O_APPEND)
        handle = os.open(path, flags, 0o600)
        try:
            os.write(handle, json.dumps(line).encode() + b"\n")
        finally:
            os.close(handle)
    except Exception:  # noqa: BLE001, S110  # nothing left to do
        pass


def unseen(place: str) -> str:
    """Crashes since the log was last shown, in one line; empty when there are none."""
    path, mark = os.path.join(place, LOG), os.path.join(place, LOG + ".seen")  # noqa: PTH118
    try:
        size = os.stat(path).st_size  # noqa: PTH116
    except OSError:
        return ""
    seen = _number(mark)
    with open(path, "rb") as file:  # noqa: PTH123
        file.seek(seen if seen <= size else 0)
        lines = [line for line in file.read().splitlines() if line.strip()]
    with open(mark, "w", encoding="ascii") as file_:  # noqa: PTH123
        file_.write(str(size))
    if not lines:
        return ""
    import json

    try:
        last = json.loads(lines[-1])
        words = f"{last['error']} ({last['where']})"
    except (ValueError, KeyError, TypeError):
        words = lines[-1].decode("utf-8", "replace")[:200]
    times = "once" if len(lines) == 1 else f"{len(lines)} times"
    return f"rung: its hook failed {times} since the last session and let the agent go on. Last: {words}. Log: {path}"


def _number(path: str) -> int:
    try:
        with open(path, encoding="ascii") as file:  # noqa: PTH123
            return int(file.read())
    except (OSError, ValueError):
        return 0
