"""What a hook costs an agent: the whole command from a cold interpreter, as the agent's shell runs it.

Beside it, in the same run, the same shell and interpreter doing nothing: what no hook in Python can be faster than.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rung.hooks.install import Place, command_for

TIMES = int(sys.argv[1]) if len(sys.argv) > 1 else 100


def timed(command: str, told: bytes) -> tuple[float, float]:
    """Milliseconds until it had answered, and of work: the second is the same on a busy machine."""
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(["/bin/sh", "-c", command], input=told, stdout=subprocess.PIPE, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    work = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return (time.perf_counter() - began) * 1_000, work * 1_000


def told(name: str, **facts: Any) -> bytes:
    return json.dumps({"session_id": "bench", "cwd": "/", "hook_event_name": name, **facts}).encode()


def row(name: str, found: list[tuple[float, float]]) -> None:
    times, work = sorted(one for one, _ in found), sorted(one for _, one in found)
    at = int(len(times) * 0.95)
    waited = f"median {times[len(times) // 2]:6.1f} ms, p95 {times[at]:6.1f} ms"
    print(f"{name:<28} {waited}; work: median {work[len(work) // 2]:5.1f} ms, p95 {work[at]:5.1f} ms; n {len(times)}")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder)
        command = command_for(Place(agent="claude-code", settings=data / "s.json", data=data), "after")
        bare = f"{sys.executable} -I -S -c pass"
        nothing, before, after = [], [], []
        for number in range(TIMES):
            outcome = "".join(chr(97 + (number * 7 + place) % 26) for place in range(400))
            calls = [{"tool_name": "Bash", "tool_input": {"command": f"cat {number}"}, "tool_response": outcome}]
            nothing.append(timed(bare, b""))
            before.append(timed(command, told("PreToolUse", tool_name="Bash", tool_input={"command": "x"})))
            after.append(timed(command, told("PostToolBatch", tool_calls=calls)))
        row("a bare interpreter", nothing)
        row("before a call", before)
        row("after a batch, nothing new", after)
        looping = []
        same = [
            {"tool_name": "Bash", "tool_input": {"command": "ls /nope"}, "tool_response": "Exit code 2\nno such file"}
        ]
        for _ in range(7):
            looping.append(timed(command, told("PostToolBatch", tool_calls=same)))
        row("after a batch, in a loop", looping)


if __name__ == "__main__":
    main()
