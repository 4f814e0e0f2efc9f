"""Runs a real coding agent behind `rung gateway` with its own provider and one of another wire; reads its task from stdin.

Agent, gateway and both providers are as in `agent_rig`. A relay between agent and gateway notes each request and the head
of each response: the agent's own retries are enabled, and must not be needed.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))
from bench.clients.agents import Setting, gemini_cli
from bench.clients.driver import environment, node_binaries
from bench.gateway.subjects import free_port

from rung.testing.provider import Lab
from tests.gateway.agent_rig import MODEL, SECONDS, TIMEOUTS, answer, claude, codex
from tests.hooks.rig import isolate_network

API = {"claude": "anthropic", "codex": "openai", "gemini": "gemini"}
# Wire of the other provider: its settings, and its model.
OTHER = {
    "messages": ('wire = "anthropic"', "claude-sonnet-4-5"),
    "chat": ('wire = "openai"\napis = ["chat"]', "gpt-5.1"),
    "responses": ('wire = "openai"\napis = ["responses"]', "gpt-5.1"),
    "gemini": ('type = "gemini"', "gemini-2.5-pro"),
}
CLIENTS = Path(sys.prefix) / "clients"
KEY = "key-of-the-other-provider"
KEY_HEADERS = ("x-api-key", "authorization", "x-goog-api-key")
_REQUEST = re.compile(rb"(GET|POST|HEAD) (\S+) HTTP/1\.1\r\n")  # a body follows the one before without a line break
_HEAD = re.compile(rb"HTTP/1\.1 (\d{3}) .*?\r\n\r\n", re.DOTALL)


class Relay:
    """Relay to the gateway that notes what passes, on a thread of its own."""

    def __init__(self, port: int) -> None:
        self.port, self._to = 0, port
        self._sent: list[bytearray] = []
        self._received: list[bytearray] = []
        self._up = threading.Event()
        threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True).start()
        assert self._up.wait(60)

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._relay, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._up.set()
        await server.serve_forever()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, forth = await asyncio.open_connection("127.0.0.1", self._to)
        self._sent.append(bytearray())
        self._received.append(bytearray())
        await asyncio.gather(_copy(reader, forth, self._sent[-1]), _copy(back, writer, self._received[-1]))

    def requests(self) -> list[str]:
        """Return the requests of the agent."""
        return [f"{method.decode()} {path.decode()}" for each in self._sent for method, path in _REQUEST.findall(each)]

    def responses(self) -> list[dict[str, str]]:
        """Return status and headers of the responses to the agent."""
        return [_headers(found) for each in self._received for found in _HEAD.finditer(each)]


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seen: bytearray) -> None:
    with suppress(OSError):
        while data := await reader.read(65_536):
            seen += data
            writer.write(data)
            await writer.drain()
    writer.close()


def _headers(head: re.Match[bytes]) -> dict[str, str]:
    lines = head[0].decode("latin-1").splitlines()[1:]
    pairs = (line.partition(":") for line in lines if ":" in line)
    return {"status": head[1].decode(), **{name.lower(): value.strip() for name, _, value in pairs}}


def gemini(url: str, root: Path) -> tuple[list[str], dict[str, str]]:
    """Run Gemini CLI with the prompt of the real clients; the script decides what it does."""
    home = root / "home"
    launch = gemini_cli(Setting(home=home, packages=CLIENTS / "gemini-cli", url=url, wire="gemini"))
    for path, content in launch.files.items():
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text(content)
    return launch.command, {**environment(home, node_binaries(CLIENTS)), **launch.env}


def config(told: dict[str, Any], own: str, other: str) -> str:
    """Return the gateway's settings: the agent's model, then one of another provider."""
    agent, (wire, model) = told["agent"], OTHER[told["other"]["wire"]]
    timeouts = "\n".join(f"{name} = {max(value, 20.0)}" for name, value in TIMEOUTS.items() if "factor" not in name)
    return (
        f'[policy]\nmodels = ["{MODEL[agent]}", "other/{model}"]\nretries = 2\nbackoff = {{base = 0.05, cap = 0.3}}\n'
        f"[gateway]\nprobe_seconds = {told.get('probe_seconds', 0.05)}\n"
        + (f'{API[agent]} = "{own}"\n' if own else "")
        + f'[gateway.timeouts]\n{timeouts}\n[gateway.upstreams.other]\n{wire}\nurl = "{other}"\nkey_env = "OTHER_KEY"\n'
    )


def start_gateway(root: Path, settings: str, port: int) -> subprocess.Popen[bytes]:
    """Start `rung gateway`, and wait until it serves."""
    (root / "rung.toml").write_text(settings)
    command = [sys.executable, "-m", "rung", "gateway", "--config", str(root / "rung.toml"), "--port", str(port)]
    log = (root / "gateway.log").open("wb")
    env = {**os.environ, "OTHER_KEY": KEY, "HOME": str(root)}
    process = subprocess.Popen([*command, "--journal", str(root / "journal.db")], stdout=log, stderr=log, env=env)
    until = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < until:
        with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=2):
            return process
        time.sleep(0.05)
    raise RuntimeError((root / "gateway.log").read_text())


def run(told: dict[str, Any]) -> dict[str, Any]:
    """Run one task; return how it ended, the commands that ran, and what agent and providers have asked and got."""
    apart = isolate_network()
    root, agent = Path(told["root"]), told["agent"]
    MODEL[agent] = told["model"]
    for name in ("home", "project"):
        (root / name).mkdir(exist_ok=True)
    with ExitStack() as stack:
        other = stack.enter_context(Lab(told["other"]["script"]))
        own = None if isinstance(told["own"], str) else stack.enter_context(Lab(told["own"]))
        own_url = {"absent": "", "dead": f"http://127.0.0.1:{free_port()}"}[told["own"]] if own is None else own.url
        port = free_port()
        gateway = start_gateway(root, config(told, own_url, other.url), port)
        relay = Relay(port)
        try:
            done, seconds = _run_agent(told, root, f"http://127.0.0.1:{relay.port}")
        finally:
            gateway.terminate()
            gateway.wait(60)
        ran = root / "project" / "ran.txt"
        return {
            "apart": apart,
            "exit": done.returncode,
            "said": done.stdout.strip() if agent == "gemini" else answer(agent, root, done.stdout),
            "output": (done.stdout + done.stderr)[-3_000:],
            "ran": ran.read_text().split() if ran.exists() else [],
            "seconds": seconds,
            "requests": relay.requests(),
            "responses": relay.responses(),
            "own": [] if own is None else [_call(each) for each in own.calls],
            "other": [_call(each) for each in other.calls],
            "log": (root / "gateway.log").read_text()[-2_000:],
        }


def _call(record: Any) -> dict[str, Any]:
    headers = {name: value for name, value in record.headers.items() if name in KEY_HEADERS}
    found = {"path": record.path, "status": record.status, "fault": record.fault, "stream": record.stream}
    return {**found, "model": record.model, "headers": headers, "body": record.json}


def _run_agent(told: dict[str, Any], root: Path, url: str) -> tuple[subprocess.CompletedProcess[str], float]:
    if told["agent"] == "gemini":
        command, env = gemini(url, root)
    else:
        start = claude if told["agent"] == "claude" else codex
        command, env = start(url, root, "do it", tries=True)
    began = time.monotonic()
    try:
        done = subprocess.run(
            command, cwd=root / "project", env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        done = subprocess.CompletedProcess(command, -1, "hung", "")
    return done, time.monotonic() - began


if __name__ == "__main__":
    ended = run(json.load(sys.stdin))
    sys.stdout.write(json.dumps(ended))
    sys.stdout.flush()
    os._exit(0)  # whatever the threads are doing
