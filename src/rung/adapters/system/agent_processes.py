"""Processes of a known agent: the agent is killed before its tools are terminated.

On SIGTERM, an agent ends its running tool, reads that as the failure of a step, and may take its next step before it exits.
Its successor continues the same session and takes that step again. An agent that is killed takes no step: its session file
ends with a call that has no result, which is repaired when the session is continued.

Agents run their tools in sessions of their own, so that no signal to a process group reaches them. All processes of a run
are found by a variable in the environment that they were started with. The agent is the processes in the session in which
it was started: it may be behind `timeout 600`, or behind the script with which its package starts it.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from rung.engine.process_identity import live_processes_with

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

AGENT_VARIABLE: Final = "RUNG_AGENT_RUN"  # in the environment of a known agent: identifies one run of it
_POLL_SECONDS: Final = 0.02


def new_agent_run() -> dict[str, str]:
    """Return the environment variable that marks the processes of a new run."""
    return {AGENT_VARIABLE: uuid4().hex}


def outside_agent(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a process that does not belong to the agent that this process may run in."""
    return {name: value for name, value in environment.items() if name != AGENT_VARIABLE}


def end_agent(entries: frozenset[str], *, grace: float, reap: Callable[[], object] = lambda: None) -> None:
    """Kill the agents that were started with these environment entries, then terminate their tools.

    A tool that ignores SIGTERM, or that runs in the agent's own session, is killed: the first after `grace` seconds.
    `reap` is called while this waits.
    """
    processes = live_processes_with(AGENT_VARIABLE, entries)
    agent_sessions = {place.session for place in processes.values() if place.parent not in processes}
    for pid, place in processes.items():
        if place.session in agent_sessions:
            _send(pid, signal.SIGKILL)
    sent = signal.SIGTERM
    until = time.monotonic() + grace
    while processes := live_processes_with(AGENT_VARIABLE, entries):
        if time.monotonic() >= until:
            sent = signal.SIGKILL
        for pid in processes:
            _send(pid, sent)
        reap()
        time.sleep(_POLL_SECONDS)


def _send(pid: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
