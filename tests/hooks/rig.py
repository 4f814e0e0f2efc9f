"""The real Claude Code against a scripted model, alone in a network of its own: run as a program, told on stdin.

Dummy key, clean environment, a home of its own, nothing but loopback where the system allows it.
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
    """The command that the `claude-agent-sdk` package carries."""
    found = importlib.util.find_spec("claude_agent_sdk")
    if found is None or found.origin is None:
        return None
    path = Path(found.origin).parent / "_bundled" / "claude"
    return path if path.exists() else None


def alone() -> bool:
    """Leave for a network with nothing in it but loopback; False where this system does not let us."""
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


def answering(told: dict[str, Any]) -> AbstractContextManager[Any]:
    """A service that hooks are posted to, in this network; nothing where none is wanted."""
    if not told.get("serve"):
        return nullcontext()
    os.environ["RUNG_JOURNAL"] = told["env"]["RUNG_JOURNAL"]
    server = ResidentServer(told["data"], told["serve"])
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def run(told: dict[str, Any]) -> dict[str, Any]:
    """One session of the agent; how it ended, and what the model was told before each of its turns."""
    apart = alone()
    root = Path(told["root"])
    (root / "home").mkdir(exist_ok=True)
    with lab(script=told["script"]) as provider, answering(told):
        began = time.monotonic()
        done = subprocess.run(
            [
                str(command_line()), "-p", told.get("prompt", "do it"), "--model", "claude-sonnet-4-5",
                "--allowedTools", "Bash", "--output-format", "json", *told.get("arguments", []),
            ],
            cwd=root / "project", env=environment(root / "home", provider.url, told.get("env", {})),
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=150, check=False,
        )  # fmt: skip
        took = time.monotonic() - began
        heard = [json.dumps(call.json["messages"][-1]) for call in provider.calls if call.json.get("tools")]
    try:
        result = json.loads(done.stdout)
    except ValueError:
        result = {"unreadable": done.stdout[-2_000:], "errors": done.stderr[-2_000:]}
    return {"apart": apart, "exit": done.returncode, "seconds": took, "result": result, "heard": heard}


if __name__ == "__main__":
    answer = run(json.load(sys.stdin))
    sys.stdout.write(json.dumps(answer))
    sys.stdout.flush()
    os._exit(0)  # whatever the lab's threads are doing
