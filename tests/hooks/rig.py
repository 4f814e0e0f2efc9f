"""Run the real Claude Code against a scripted model in its own network namespace; reads its task from stdin.

Uses a dummy key, a clean environment and its own home; only loopback is reachable if the system allows it.
"""

from __future__ import annotations

import ctypes
import fcntl
import importlib.util
import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from rung.hooks.resident_server import ResidentServer
from rung.testing import lab

NEW_USER, NEW_NET = 0x10000000, 0x40000000


def command_line() -> Path | None:
    """Return the command bundled with the `claude-agent-sdk` package."""
    found = importlib.util.find_spec("claude_agent_sdk")
    if found is None or found.origin is None:
        return None
    path = Path(found.origin).parent / "_bundled" / "claude"
    return path if path.exists() else None


def isolate_network() -> bool:
    """Enter a network namespace with only loopback; false if the system does not allow it."""
    if ctypes.CDLL(None, use_errno=True).unshare(NEW_USER | NEW_NET):
        return False
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        fcntl.ioctl(probe, 0x8914, struct.pack("16sH14s", b"lo", 0x1 | 0x40, b""))  # SIOCSIFFLAGS: up, running
    return True


def environment(home: Path, url: str, more: dict[str, str]) -> dict[str, str]:
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(home),
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "sk-ant-dummy",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "RUNG_HOOKS_RESIDENT": "0",
        **more,
    }


def hook_server(task: dict[str, Any]) -> AbstractContextManager[Any]:
    """Return a server that hooks ask over HTTP, if the task wants one."""
    if not task.get("serve"):
        return nullcontext()
    os.environ["RUNG_JOURNAL"] = task["env"]["RUNG_JOURNAL"]
    server = ResidentServer(task["data"], task["serve"])
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def run(task: dict[str, Any]) -> dict[str, Any]:
    """Run one session of the agent; return its result, and the last message before each turn of the model."""
    isolated = isolate_network()
    root = Path(task["root"])
    (root / "home").mkdir(exist_ok=True)
    with lab(script=task["script"]) as provider, hook_server(task):
        began = time.monotonic()
        done = subprocess.run(
            [
                str(command_line()), "-p", task.get("prompt", "do it"), "--model", "claude-sonnet-4-5",
                "--allowedTools", "Bash", "--output-format", "json", *task.get("arguments", []),
            ],
            cwd=root / "project", env=environment(root / "home", provider.url, task.get("env", {})),
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=150, check=False,
        )  # fmt: skip
        took = time.monotonic() - began
        heard = [json.dumps(call.json["messages"][-1]) for call in provider.calls if call.json.get("tools")]
    try:
        result = json.loads(done.stdout)
    except ValueError:
        result = {"unreadable": done.stdout[-2_000:], "errors": done.stderr[-2_000:]}
    return {"apart": isolated, "exit": done.returncode, "seconds": took, "result": result, "heard": heard}


if __name__ == "__main__":
    answer = run(json.load(sys.stdin))
    sys.stdout.write(json.dumps(answer))
    sys.stdout.flush()
    os._exit(0)  # without waiting for the lab's threads
