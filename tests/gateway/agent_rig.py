"""Runs a real coding agent behind a gateway and a lab with faults; a program that reads its task from stdin.

The agent gets dummy keys, a clean environment and its own home directory, and only loopback where the system allows
it. Its own retries are disabled, so that recovery is the gateway's. Each command appends a line to ran.txt, which shows
commands that ran twice or never.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import uvloop

sys.path.insert(0, str(Path(__file__).parents[2]))
from rung.core.policy.parser import parse_policy_file
from rung.gateway.serve import RunningGateway
from rung.gateway.settings import settings_from
from rung.testing.provider import Lab
from tests.hooks.rig import command_line, environment, isolate_network

TIMEOUTS = {"connect": 2.0, "headers": 3.0, "total": 3.0, "first_token": 3.0, "idle": 2.0, "last_resort_factor": 1.0}
POLICY = {"backoff": {"base": 0.05, "cap": 0.3}}
SECONDS = 120
MODEL = {"claude": "claude-sonnet-4-5", "codex": "gpt-5-codex"}
OTHER = {"claude": "claude-opus-4-5", "codex": "gpt-5"}


def claude(url: str, root: Path, prompt: str, *, tries: bool) -> tuple[list[str], dict[str, str]]:
    """Run Claude Code with one prompt; RUNG_CLAUDE names the program, if it is not the one of the SDK's package."""
    more = {} if tries else {"CLAUDE_CODE_MAX_RETRIES": "0"}
    command = [
        os.environ.get("RUNG_CLAUDE") or str(command_line()), "-p", prompt, "--model", MODEL["claude"], "--allowedTools", "Bash", "--output-format", "json",
    ]  # fmt: skip
    return command, environment(root / "home", url, more)


def codex(url: str, root: Path, prompt: str, *, tries: bool) -> tuple[list[str], dict[str, str]]:
    """Run Codex with one prompt; RUNG_CODEX names the program."""
    home = root / "home" / ".codex"
    home.mkdir(exist_ok=True)
    counts = "" if tries else "request_max_retries = 0\nstream_max_retries = 0\n"
    home.joinpath("config.toml").write_text(
        f'model = "{MODEL["codex"]}"\nmodel_provider = "lab"\n[model_providers.lab]\nname = "lab"\n'
        f'base_url = "{url}/v1"\nwire_api = "responses"\nenv_key = "OPENAI_API_KEY"\n{counts}'
    )
    command = [
        os.environ["RUNG_CODEX"], "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox",
        "--output-last-message", str(root / "last.txt"), prompt,
    ]  # fmt: skip
    env = {"PATH": os.environ["PATH"], "HOME": str(root / "home"), "OPENAI_API_KEY": "sk-lab"}
    return command, env


def serve(lab: Lab, agent: str, *, patient: bool = False) -> RunningGateway:
    """Run a gateway in its own thread; a patient one times out no request that is only slow."""
    timeouts = {**dict.fromkeys(TIMEOUTS, 60.0), "last_resort_factor": 1.0} if patient else TIMEOUTS
    table = {"anthropic": lab.url, "openai": lab.url, "port": 0, "timeouts": timeouts}
    book = parse_policy_file({"policy": {**POLICY, "models": [MODEL[agent], OTHER[agent]]}})
    up = threading.Event()
    served = RunningGateway(settings_from(table, book), None, lambda _: up.set())
    threading.Thread(target=lambda: uvloop.run(served.run()), daemon=True).start()
    up.wait(60)
    return served


def answer(agent: str, root: Path, output: str) -> str:
    """Return the agent's final message."""
    if agent == "codex":
        last = root / "last.txt"
        return last.read_text().strip() if last.exists() else ""
    try:
        found = json.loads(output)
    except ValueError:
        return output[-500:]
    return ("error: " if found.get("is_error") else "") + str(found.get("result"))


def run(told: dict[str, Any]) -> dict[str, Any]:
    """Run one task in a network of its own; return how it ended, the commands that ran, and the lab's requests."""
    apart = isolate_network()
    with Lab(told["script"]) as lab:
        patient = told.get("patient", False)
        served = serve(lab, told["agent"], patient=patient) if told["gateway"] else None
        url = f"http://127.0.0.1:{served.port}" if served else lab.url
        return {"apart": apart, **run_before(lab, url, told)}


def run_before(lab: Lab, url: str, told: dict[str, Any]) -> dict[str, Any]:
    """Run one task with this address as the agent's provider."""
    root, agent = Path(told["root"]), told["agent"]
    for name in ("home", "project"):
        (root / name).mkdir(exist_ok=True)
    start = claude if agent == "claude" else codex
    tries = told.get("tries", not told["gateway"])
    command, env = start(url, root, told.get("prompt", "do it"), tries=tries)
    began = time.monotonic()
    try:
        done = subprocess.run(
            command, cwd=root / "project", env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        done = subprocess.CompletedProcess(command, -1, "hung", "")
    ran = root / "project" / "ran.txt"
    return {
        "exit": done.returncode,
        "said": answer(agent, root, done.stdout),
        "errors": done.stderr[-1_500:],
        "ran": ran.read_text().split() if ran.exists() else [],
        "seconds": time.monotonic() - began,
        "struck": sum(bool(call.fault) for call in lab.calls),
        "attempts": lab.attempts,
        "models": [call.model for call in lab.calls],
        "bodies": [call.json for call in lab.calls] if told.get("with_bodies") else [],
        "tools": [tool.get("name") for tool in (lab.calls[0].json.get("tools") or ())] if lab.calls else [],
    }


if __name__ == "__main__":
    ended = run(json.load(sys.stdin))
    sys.stdout.write(json.dumps(ended))
    sys.stdout.flush()
    os._exit(0)  # whatever the threads are doing
