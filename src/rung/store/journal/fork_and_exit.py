"""What becomes of writers when their process forks, and when it ends."""

from __future__ import annotations

import atexit
import os
import sys
from functools import cache
from time import monotonic
from typing import Any, Final, Protocol
from weakref import WeakSet

AT_EXIT: Final = 10.0  # seconds that the end of a process waits for what was handed over


class Attended(Protocol):
    """Writer that must react to a fork and to the end of the process."""

    def reset_after_fork(self) -> None:
        """Start afresh in the child of a fork."""
        ...

    def close(self, seconds: float = ...) -> None:
        """Write what is left, within so many seconds."""
        ...


_WRITERS: Final[WeakSet[Attended]] = WeakSet()


def attend(writer: Attended) -> None:
    """A child of a fork begins it anew; whoever ends by itself writes first what was handed over."""
    _WRITERS.add(writer)
    _see_to_forks()
    _see_to_the_end(os.getpid())


@cache  # once in a process and all its children
def _see_to_forks() -> None:
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_in_child)


def _in_child() -> None:
    for writer in list(_WRITERS):
        writer.reset_after_fork()


@cache
def _see_to_the_end(_process: int) -> None:
    atexit.unregister(_at_exit)  # a fork inherits it
    atexit.register(_at_exit)
    util: Any = sys.modules.get("multiprocessing.util")
    if util is not None:  # a child of its own ends without the interpreter's exit
        util.Finalize(None, _at_exit, exitpriority=100)


def _at_exit() -> None:
    until = monotonic() + AT_EXIT
    for writer in list(_WRITERS):
        writer.close(max(0.0, until - monotonic()))
