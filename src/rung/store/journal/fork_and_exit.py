"""Fork and exit handling of journal writers: reset in a forked child, flush before the process exits."""

from __future__ import annotations

import atexit
import os
import sys
from functools import cache
from typing import Any, Final, Protocol
from weakref import WeakSet

EXIT_FLUSH_SECONDS: Final = 10.0  # that a store may take to answer when the process exits


class ForkAwareWriter(Protocol):
    """Writer that must react to a fork and to the end of the process."""

    def reset_after_fork(self) -> None:
        """Start afresh in the child of a fork."""
        ...

    def close(self, seconds: float = ...) -> None:
        """Write everything queued; give up when the store has not answered for so long."""
        ...


_WRITERS: Final[WeakSet[ForkAwareWriter]] = WeakSet()


def register(writer: ForkAwareWriter) -> None:
    """Reset this writer in every forked child, and close it when the process exits."""
    _WRITERS.add(writer)
    _register_fork_hook()
    _register_exit_hook(os.getpid())


@cache  # once for a process and all its children
def _register_fork_hook() -> None:
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_reset_in_child)


def _reset_in_child() -> None:
    for writer in list(_WRITERS):
        writer.reset_after_fork()


@cache
def _register_exit_hook(_process: int) -> None:
    atexit.unregister(_close_all)  # a forked child inherits the parent's registration
    atexit.register(_close_all)
    util: Any = sys.modules.get("multiprocessing.util")
    if util is not None:  # multiprocessing children exit without running atexit
        util.Finalize(None, _close_all, exitpriority=100)


def _close_all() -> None:
    for writer in list(_WRITERS):
        writer.close(EXIT_FLUSH_SECONDS)
