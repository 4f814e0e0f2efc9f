"""A crew whose worker is the real Claude Code, before a provider that fails: run as a program, told on stdin.

Dummy key, a clean environment, a home of its own, nothing but loopback where the system allows it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))
from rung.core.policy.serializer import to_toml
from rung.testing import lab
from tests.hooks.rig import command_line, environment, isolate_network


def run(told: dict[str, Any]) -> dict[str, Any]:
    """Run a plan with one task, and return what the agent and the provider saw."""
    apart = isolate_network()
    root = Path(told["root"])
    for name in ("home", "project"):
        (root / name).mkdir()
    rung = [sys.executable, "-m", "rung"]
    agent = [str(command_line()), "-p", "{instruction}", "--model", "claude-sonnet-4-5", "--allowedTools", "Bash"]
    worker = [
        *rung,
        "worker",
        "run",
        "--check",
        told["check"],
        "--poll-interval",
        "0.3",
        "--",
        *agent,
        "--output-format",
        "json",
    ]
    crew = {"name": "c", "worker": worker, "poll": 0.3, "beat": 1.0, "stale_after": 60.0, "probe_interval": 2.0}
    task = {"id": "task-01", "instruction": told["instruction"], "workdir": "project"}
    (root / "plan.toml").write_text(f"[crew]\n{to_toml(crew)}\n[[task]]\n{to_toml(task)}")
    with lab(script=told["script"]) as provider:
        env = environment(root / "home", provider.url, {"CLAUDE_CODE_MAX_RETRIES": "0"})
        env["RUNG_JOURNAL"] = str(root / "journal.db")
        done = subprocess.run(
            [*rung, "crew", "run", str(root / "plan.toml"), "--db", str(root / "crew.db")],
            env=env,
            capture_output=True,
            text=True,
            timeout=150,
            check=False,
        )
        heard = [json.dumps(call.json["messages"]) for call in provider.calls if call.json.get("tools")]
    return {"apart": apart, "exit": done.returncode, "said": done.stderr, "heard": heard}


if __name__ == "__main__":
    answer = run(json.load(sys.stdin))
    sys.stdout.write(json.dumps(answer))
    sys.stdout.flush()
    os._exit(0)  # whatever the lab's threads are doing
