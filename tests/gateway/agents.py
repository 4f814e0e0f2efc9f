"""Runs real coding agents under every fault, each in its own process behind the gateway."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from tests.gateway.agent_rig import MODEL
from tests.gateway.cells import CASES, Case

RIG = Path(__file__).with_name("agent_rig.py")
SAID = "Done: one two three four five six seven eight nine"
RAN = ["one", "two", "three"]
TOOL = {"claude": ("Bash", "command"), "codex": ("exec_command", "cmd")}


def codex_program() -> Path | None:
    """Return the program of Codex: the one that RUNG_CODEX names, or that of `make gate-clients`."""
    named = os.environ.get("RUNG_CODEX")
    found = Path(sys.prefix).glob("clients/codex/node_modules/@openai/codex-linux-*/vendor/*/bin/codex")
    return Path(named) if named else next(found, None)


class Task(NamedTuple):
    """Result of a task; `bodies` holds the requests that the provider received, if they were asked for."""

    said: str
    ran: list[str]
    exit: int
    seconds: float
    struck: int
    attempts: int
    apart: bool
    bodies: list[Any] = []  # noqa: RUF012  # never changed

    @property
    def done(self) -> bool:
        """Return whether the result equals that of a run without faults."""
        return self.said == SAID and self.ran == RAN and self.exit == 0


def turns(agent: str) -> list[Any]:
    """Return a script of three commands and a final message."""
    tool, argument = TOOL[agent]
    commands: list[Any] = [{"tool": tool, "input": {argument: f"echo {word} >> ran.txt"}} for word in RAN]
    return [*commands, {"text": SAID}]


def rules(agent: str, case: Case | None) -> list[Any]:
    """Return rules that fail every second request of the agent, or all requests, or all of its model."""
    if case is None:
        return []
    told = {**case.told, **({"after": min(case.told["after"], 2)} if "after" in case.told else {})}
    strikes: dict[str, Any] = {"every": 2} if "request" in case.strikes else {}
    if "model" in case.strikes:
        strikes = {"model": MODEL[agent]}
    return [{"fault": case.fault, "tools": True, **told, **strikes}]


def task(agent: str, root: Path, faults: list[Any], *, gateway: bool = True, tries: bool | None = None) -> Task:
    """Run the task under these faults; the agent has its own tries if told so, and else without a gateway."""
    return run(agent, root, {"turns": turns(agent), "rules": faults}, gateway=gateway, tries=tries)


def run(
    agent: str,
    root: Path,
    script: dict[str, Any],
    *,
    prompt: str = "do it",
    gateway: bool = True,
    with_bodies: bool = False,
    patient: bool = False,
    tries: bool | None = None,
) -> Task:
    """Run a prompt against a lab with this script."""
    told = {"agent": agent, "root": str(root), "gateway": gateway, "script": script, "prompt": prompt}
    if tries is not None:
        told["tries"] = tries
    program = codex_program() if agent == "codex" else None
    work = subprocess.run(
        [sys.executable, str(RIG)],
        input=json.dumps({**told, "with_bodies": with_bodies, "patient": patient}),
        capture_output=True, text=True, timeout=180, check=False,
        env={**os.environ, **({"RUNG_CODEX": str(program)} if program else {})},
    )  # fmt: skip
    if work.returncode:
        raise RuntimeError(work.stderr[-2_000:])
    found = json.loads(work.stdout)
    return Task(**{field: found[field] for field in Task._fields})


def as_good_as_can_be(name: str, found: Task) -> bool:
    """Return whether the task was done if possible, else ended with an error; no command may run twice."""
    if name not in CASES or CASES[name].best == "whole":
        return found.done
    return found.exit >= 0 and len(found.ran) == len(set(found.ran)) and found.said != SAID
