"""Where an agent's hook begins: an event on standard input, our answer on standard output, in milliseconds.

Run as a file by an interpreter that loads nothing it need not (`python -I -S entry.py AGENT DIRECTORY`), or as
`rung-hook AGENT`. Whatever goes wrong here, the agent gets `{}` and exit code 0, and a line is left in the crash log.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # as in `rung`: importing typing costs more than all of this
if TYPE_CHECKING:
    from typing import Final

SECONDS: Final = 4.0  # of our own work; a check that was asked for has its own time
LOG: Final = "crash.log"
_LOG_LIMIT: Final = 256 * 1024


def main(arguments: list[str] | None = None) -> int:
    """Answer one event; always exit code 0, always JSON."""
    given = sys.argv[1:] if arguments is None else arguments
    answer, place, wake, near = b"{}", "", False, False
    try:
        from rung.hooks.place import directory

        place = given[1] if len(given) > 1 else directory()
        limit(SECONDS)
        from rung.hooks.asking import asked

        told = sys.stdin.buffer.read()
        found = asked(place, given[0] if given else "", told)
        if found is None:
            from rung.hooks.turn import answered

            answer, wake, near = answered(given[0] if given else "", place, told)
        else:
            answer = found
    except BaseException as error:  # noqa: BLE001  # of all that may happen here, nothing may happen to the agent
        crashed(place, given[0] if given else "", error)
    limit(0)
    try:
        os.write(1, answer)
        if wake:
            from rung.hooks.spool import wake_drain

            wake_drain(place)
        if near:
            from rung.hooks.asking import start

            start(place)
    except BaseException as error:  # noqa: BLE001  # as above
        crashed(place, given[0] if given else "", error)
    return 0


class OutOfTime(Exception):
    """Our own work took too long; the agent is not kept waiting."""


def limit(seconds: float) -> None:
    """Be interrupted after so long; 0: no more."""
    try:
        import _signal as signal  # type: ignore[import-not-found]  # what `signal` is made of; that one loads enum, which takes longer than all of this
    except ImportError:
        return  # the agent's own timeout is what is left
    if not hasattr(signal, "setitimer"):
        return

    def out_of_time(*_: object) -> None:
        raise OutOfTime(f"not done within {SECONDS:g} s")

    try:
        signal.signal(signal.SIGALRM, out_of_time)
    except ValueError:
        return  # not in the main thread: in a process that answers many, none is interrupted
    signal.setitimer(signal.ITIMER_REAL, seconds)


def crashed(place: str, agent: str, error: BaseException) -> None:
    """Leave a line; where even that cannot be done, say nothing."""
    try:
        import json
        import time

        os.makedirs(place, mode=0o700, exist_ok=True)  # noqa: PTH103  # pathlib costs what the rest of this does
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


if __name__ == "__main__":
    # By the file's own place: with -I -S there is no site-packages to find it in.
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))  # noqa: PTH100, PTH120
    from rung.hooks.entry import main as run  # so that this module is there once, under its own name

    sys.exit(run())
