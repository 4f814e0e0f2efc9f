"""Kills a real coding agent in the middle of a task under Rung; a program that reads what to do from stdin.

The agent gets dummy keys, a clean environment and its own home directory, and only loopback where the system allows it.
Each command appends a word to ran.txt, which shows commands that ran twice or never. The third command does not end by
itself: the agent is killed while it runs.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))
from rung.testing.provider import Lab
from tests.gateway.agents import TOOL
from tests.hooks.rig import command_line, environment, isolate_network

WORDS = ["one", "two", "three", "four"]
SAID = "All four are written"
SECONDS = 90.0


def script(agent: str) -> dict[str, Any]:
    """Return four commands, of which the third one waits to be killed, and a final message."""
    tool, argument = TOOL[agent]
    waits = {"three": "; touch begun; sleep 60"}
    commands = [{"tool": tool, "input": {argument: f"echo {word} >> ran.txt{waits.get(word, '')}"}} for word in WORDS]
    return {"turns": [*commands, {"text": SAID}]}


def agent_command(agent: str, url: str, home: Path) -> tuple[list[str], dict[str, str]]:
    """Return the command of the agent, which gets its prompt as an argument, and its environment."""
    env = {**environment(home, url, {}), "PATH": os.environ["PATH"], "OPENAI_API_KEY": "sk-lab"}
    if agent == "claude":
        command = [str(command_line()), "-p", "do it", "--model", "claude-sonnet-4-5", "--allowedTools", "Bash"]
        return command, env
    (home / ".codex").mkdir(exist_ok=True)
    (home / ".codex" / "config.toml").write_text(
        'model = "gpt-5-codex"\nmodel_provider = "lab"\n[model_providers.lab]\nname = "lab"\n'
        f'base_url = "{url}/v1"\nwire_api = "responses"\nenv_key = "OPENAI_API_KEY"\n'
    )
    flags = ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
    return [os.environ["RUNG_CODEX"], *flags, "do it"], env


def run(told: dict[str, Any]) -> dict[str, Any]:
    """Run the task, kill its agent or everything, go on, and return what was done."""
    isolate_network()
    root, agent = Path(told["root"]), told["agent"]
    home, project = root / "home", root / "project"
    for folder in (home, project):
        folder.mkdir(exist_ok=True)
    with Lab(script(agent)) as lab:
        command, env = agent_command(agent, lab.url, home)
        env |= {"RUNG_JOURNAL": str(root / "journal.db"), "XDG_STATE_HOME": str(root / "state")}
        for name, text in told.get("files", {}).items():
            (project / name).write_text(text.replace("{command}", json.dumps(command)))
        words = [sys.executable, "-m", "rung", *(command if word == "{command}" else [word] for word in told["words"])]
        line = [part for word in words for part in (word if isinstance(word, list) else [word])]
        first = start(line, project, env)
        kill(told["kill"], first, project, command[0])
        done = [finish(first)]
        if told["kill"] == "all":
            done.append(finish(start([*line[:3], *told["again"]] if told.get("again") else line, project, env)))
        return {
            "exit": [each.returncode for each in done],
            "output": done[-1].stdout,
            "errors": "\n".join(each.stderr for each in done),
            "ran": (project / "ran.txt").read_text().split(),
            "requests": [call.json.get("messages") or call.json.get("input") for call in lab.calls],
            "files": sorted(
                path.name for path in home.rglob("*.jsonl") if "session" in str(path) or "projects" in str(path)
            ),
        }


def start(line: list[str], project: Path, env: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        line, cwd=project, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )  # fmt: skip


def finish(process: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
    out, errors = process.communicate(timeout=SECONDS)
    return subprocess.CompletedProcess(process.args, process.returncode, out, errors)


def kill(what: str, rung: subprocess.Popen[str], project: Path, program: str) -> None:
    """Kill the agent, or Rung and the agent, while the third command runs."""
    deadline = time.monotonic() + SECONDS
    while not (project / "begun").exists() and rung.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    while not is_recorded(project.parent / "home") and time.monotonic() < deadline:
        time.sleep(0.02)  # the agent writes its session file behind its work
    if what == "all":
        rung.kill()
    for pid in agents(program, project):
        os.kill(pid, signal.SIGKILL)


def is_recorded(home: Path) -> bool:
    """Whether a session file has the third command."""
    return any(b"touch begun" in path.read_bytes() for path in home.rglob("*.jsonl"))


def agents(program: str, project: Path) -> list[int]:
    """Return the processes of a program in a directory."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if (
                entry.name.isdigit()
                and words[0] == os.fsencode(program)
                and (entry / "cwd").resolve() == project.resolve()
            ):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


if __name__ == "__main__":
    ended = run(json.load(sys.stdin))
    sys.stdout.write(json.dumps(ended))
    sys.stdout.flush()
    os._exit(0)  # without waiting for the lab's threads
