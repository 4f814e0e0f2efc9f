"""Latency of a hook: the whole command, as the agent's shell runs it.

Measures a cold interpreter, and the same command with a resident server over its Unix socket and over HTTP. The lower bound for a
hook in Python, a shell with an idle interpreter, is measured in the same run.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rung.hooks.install import InstallTarget, command_for
from rung.hooks.resident_client import RESIDENT_VARIABLE
from rung.hooks.resident_server import ResidentServer

if TYPE_CHECKING:
    from collections.abc import Callable

REPETITIONS = int(sys.argv[1]) if len(sys.argv) > 1 else 100
COLD_LIMIT_MS, WARM_LIMIT_MS = 60.0, 15.0  # at the 95th percentile
REPEATED_CALL = [
    {"tool_name": "Bash", "tool_input": {"command": "ls /nope"}, "tool_response": "Exit code 2\nno such file"}
]
Timed = tuple[float, float]


def run_command(command: str, told: bytes) -> Timed:
    """Return elapsed and CPU milliseconds; the CPU time does not depend on other load."""
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(["/bin/sh", "-c", command], input=told, stdout=subprocess.PIPE, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    work = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return (time.perf_counter() - began) * 1_000, work * 1_000


def hook_event(name: str, session: str = "bench", **facts: Any) -> bytes:
    return json.dumps({"session_id": session, "cwd": "/", "hook_event_name": name, **facts}).encode()


def batch(number: int) -> bytes:
    outcome = "".join(chr(97 + (number * 7 + place) % 26) for place in range(400))
    calls = [{"tool_name": "Bash", "tool_input": {"command": f"cat {number}"}, "tool_response": outcome}]
    return hook_event("PostToolBatch", tool_calls=calls)


def print_row(name: str, found: list[Timed], limit: float | None = None) -> None:
    times, work = sorted(one for one, _ in found), sorted(one for _, one in found)
    at = min(len(times) - 1, int(len(times) * 0.95))
    waited = f"median {times[len(times) // 2]:6.1f} ms, p95 {times[at]:6.1f} ms"
    verdict = "" if limit is None else f"; {'within' if times[at] <= limit else 'OVER'} {limit:g} ms"
    worked = f"work: median {work[len(work) // 2]:5.1f} ms, p95 {work[at]:5.1f} ms"
    print(f"{name:<40} {waited}; {worked}; n {len(times)}{verdict}")


def measure_events(ask: Callable[[bytes], Timed], title: str, limit: float, *, check_limit: float | None) -> None:
    """Measure every kind of event of a session."""
    before, after, looping, stops = [], [], [], []
    for number in range(REPETITIONS):
        before.append(ask(hook_event("PreToolUse", tool_name="Bash", tool_input={"command": "x"})))
        after.append(ask(batch(number)))
    for number in range(max(1, REPETITIONS // 10)):
        for _ in range(8):
            looping.append(ask(hook_event("PostToolBatch", f"{title}{number}", tool_calls=REPEATED_CALL)))
        stops.append(ask(hook_event("Stop", f"{title}s{number}", last_assistant_message="It is 7.")))
    print_row(f"{title}: before a call", before, limit)
    print_row(f"{title}: after a batch, nothing new", after, limit)
    print_row(f"{title}: after a batch, in a loop", looping, check_limit)
    print_row(f"{title}: it wants to finish", stops, check_limit)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder)
        target = InstallTarget(agent="claude-code", settings=data / "s.json", data_dir=data)
        command = command_for(target, "after")
        os.environ |= {RESIDENT_VARIABLE: "0", "RUNG_JOURNAL": str(data / "journal.db")}
        load = os.getloadavg()[0]
        print_row(
            "a bare interpreter", [run_command(f"{sys.executable} -I -S -c pass", b"") for _ in range(REPETITIONS)]
        )
        measure_events(lambda event: run_command(command, event), "cold", COLD_LIMIT_MS, check_limit=None)
        with ResidentServer(data, 0) as server:
            thread = threading.Thread(target=server.serve_forever, daemon=True)
            thread.start()
            measure_events(lambda event: run_command(command, event), "asked", WARM_LIMIT_MS, check_limit=WARM_LIMIT_MS)
            over_http = command_for(replace(target, port=server.port), "after")
            measure_events(
                lambda event: run_command(over_http, event), "http", COLD_LIMIT_MS, check_limit=COLD_LIMIT_MS
            )
            server.shutdown()
        os.environ[RESIDENT_VARIABLE] = "1"
        session = [run_command(command, hook_event("UserPromptSubmit", "all", prompt="do it"))]
        for number in range(REPETITIONS):
            time.sleep(0.02)  # models take longer; the resident server is up by then
            session.append(
                run_command(command, hook_event("PreToolUse", "all", tool_name="Bash", tool_input={"command": "x"}))
            )
            event = batch(number) if number % 4 else hook_event("PostToolBatch", "all", tool_calls=REPEATED_CALL)
            session.append(run_command(command, event))
        print_row("a session as installed, every event", session, COLD_LIMIT_MS)
        print(f"load {load:.1f} at the start, {os.getloadavg()[0]:.1f} at the end, {os.cpu_count()} processors")


if __name__ == "__main__":
    main()
