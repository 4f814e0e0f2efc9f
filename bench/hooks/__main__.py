"""What a hook costs an agent: the whole command, as the agent's shell runs it.

From a cold interpreter, and asking a process that is already there: by the same command, and posted as some agents do
themselves. Beside them, in the same run, the same shell and interpreter doing nothing: what no hook in Python can be faster than.
"""

from __future__ import annotations

import http.client
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rung.hooks.install import InstallTarget, command_for
from rung.hooks.resident_client import OFF
from rung.hooks.resident_server import ResidentServer

if TYPE_CHECKING:
    from collections.abc import Callable

TIMES = int(sys.argv[1]) if len(sys.argv) > 1 else 100
COLD, WARM = 60.0, 15.0  # milliseconds at the 95th percentile
SAME = [{"tool_name": "Bash", "tool_input": {"command": "ls /nope"}, "tool_response": "Exit code 2\nno such file"}]
Timed = tuple[float, float]


def timed(command: str, told: bytes) -> Timed:
    """Milliseconds until it had answered, and of work: the second is the same on a busy machine."""
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(["/bin/sh", "-c", command], input=told, stdout=subprocess.PIPE, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    work = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return (time.perf_counter() - began) * 1_000, work * 1_000


def posted(server: ResidentServer, told: bytes) -> Timed:
    began = time.perf_counter()
    link = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    link.request("POST", "/claude-code", told, {"x-rung-token": server.token})
    assert link.getresponse().read()
    link.close()
    return (time.perf_counter() - began) * 1_000, 0.0


def told(name: str, session: str = "bench", **facts: Any) -> bytes:
    return json.dumps({"session_id": session, "cwd": "/", "hook_event_name": name, **facts}).encode()


def batch(number: int) -> bytes:
    outcome = "".join(chr(97 + (number * 7 + place) % 26) for place in range(400))
    calls = [{"tool_name": "Bash", "tool_input": {"command": f"cat {number}"}, "tool_response": outcome}]
    return told("PostToolBatch", tool_calls=calls)


def row(name: str, found: list[Timed], limit: float | None = None) -> None:
    times, work = sorted(one for one, _ in found), sorted(one for _, one in found)
    at = min(len(times) - 1, int(len(times) * 0.95))
    waited = f"median {times[len(times) // 2]:6.1f} ms, p95 {times[at]:6.1f} ms"
    verdict = "" if limit is None else f"; {'within' if times[at] <= limit else 'OVER'} {limit:g} ms"
    worked = f"work: median {work[len(work) // 2]:5.1f} ms, p95 {work[at]:5.1f} ms"
    print(f"{name:<40} {waited}; {worked}; n {len(times)}{verdict}")


def events(ask: Callable[[bytes], Timed], title: str, limit: float, *, closely: float | None) -> None:
    """Every kind of event in a session's loop."""
    before, after, looping, stops = [], [], [], []
    for number in range(TIMES):
        before.append(ask(told("PreToolUse", tool_name="Bash", tool_input={"command": "x"})))
        after.append(ask(batch(number)))
    for number in range(max(1, TIMES // 10)):
        for _ in range(8):
            looping.append(ask(told("PostToolBatch", f"{title}{number}", tool_calls=SAME)))
        stops.append(ask(told("Stop", f"{title}s{number}", last_assistant_message="It is 7.")))
    row(f"{title}: before a call", before, limit)
    row(f"{title}: after a batch, nothing new", after, limit)
    row(f"{title}: after a batch, in a loop", looping, closely)
    row(f"{title}: it wants to finish", stops, closely)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder)
        command = command_for(InstallTarget(agent="claude-code", settings=data / "s.json", data=data), "after")
        os.environ |= {OFF: "0", "RUNG_JOURNAL": str(data / "journal.db")}
        load = os.getloadavg()[0]
        row("a bare interpreter", [timed(f"{sys.executable} -I -S -c pass", b"") for _ in range(TIMES)])
        events(lambda event: timed(command, event), "cold", COLD, closely=None)
        with ResidentServer(data) as server:
            thread = threading.Thread(target=server.serve_forever, daemon=True)
            thread.start()
            events(lambda event: timed(command, event), "asked", WARM, closely=WARM)
            events(lambda event: posted(server, event), "posted", WARM, closely=WARM)
            server.shutdown()
        os.environ[OFF] = "1"
        session = [timed(command, told("UserPromptSubmit", "all", prompt="do it"))]
        for number in range(TIMES):
            time.sleep(0.02)  # a model thinks longer; the process that was started then is there for what comes
            session.append(timed(command, told("PreToolUse", "all", tool_name="Bash", tool_input={"command": "x"})))
            event = batch(number) if number % 4 else told("PostToolBatch", "all", tool_calls=SAME)
            session.append(timed(command, event))
        row("a session as installed, every event", session, COLD)
        print(f"load {load:.1f} at the start, {os.getloadavg()[0]:.1f} at the end, {os.cpu_count()} processors")


if __name__ == "__main__":
    main()
