"""The real Codex and Gemini CLI against a scripted model, alone in a network of its own: run as a program, told on stdin."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rung.testing import lab
from tests.hooks.rig import isolate_network

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX = "RUNG_AGENTS"  # where npm has put them
FAILING = "ls /nowhere/at/all"
TIMES = 11


def program(name: str) -> str | None:
    """The agent's command, where it is installed."""
    prefix = os.environ.get(PREFIX)
    return shutil.which(name, path=f"{prefix}/node_modules/.bin" if prefix else None)


@contextmanager
def gemini_model() -> Iterator[tuple[str, list[Any]]]:
    """A model on Google's wire that repeats one failing command; and what it was told before each turn."""
    heard: list[Any] = []

    class Answers(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
            said = body.get("contents") or [{}]
            if body.get("tools"):
                heard.append(json.dumps(said[-1]))
            call = {"functionCall": {"name": "run_shell_command", "args": {"command": FAILING}}}
            part = call if body.get("tools") and len(heard) < TIMES else {"text": "I could not list it."}
            answer = {
                "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
                "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
            }
            streams = "stream" in self.path
            text = json.dumps(answer).encode()
            out = b"data: " + text + b"\r\n\r\n" if streams else text
            self.send_response(200)
            self.send_header("content-type", "text/event-stream" if streams else "application/json")
            self.send_header("content-length", str(len(out)))
            self.end_headers()
            self.wfile.write(out)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", heard
    finally:
        server.shutdown()


def codex(home: Path, project: Path, env: dict[str, str]) -> dict[str, Any]:
    turns = [{"tool": "exec_command", "input": {"cmd": FAILING}}] * TIMES + [{"text": "I could not list it."}]
    with lab(script={"turns": turns}) as provider:
        settings = (
            'model = "small"\nmodel_provider = "lab"\n[model_providers.lab]\nname = "lab"\nwire_api = "responses"\n'
            f'base_url = "{provider.url}/v1"\nenv_key = "LAB_KEY"\nrequest_max_retries = 0\nstream_max_retries = 0\n'
        )
        (home / ".codex" / "config.toml").write_text(settings)
        command = [
            str(program("codex")), "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox",
            "--dangerously-bypass-hook-trust", "--json", "do it",
        ]  # fmt: skip
        done = _run(command, project, {**env, "CODEX_HOME": str(home / ".codex"), "LAB_KEY": "any"})
        heard = [json.dumps(call.json["input"]) for call in provider.calls]
    return {**done, "heard": heard}


def gemini(home: Path, project: Path, env: dict[str, str]) -> dict[str, Any]:  # both alike
    with gemini_model() as (url, heard):
        command = [str(program("gemini")), "-p", "do it", "--yolo", "-m", "gemini-2.5-flash", "-o", "json"]
        keys = {"GEMINI_API_KEY": "any", "GOOGLE_GEMINI_BASE_URL": url, "GEMINI_CLI_TRUST_WORKSPACE": "true"}
        return {**_run(command, project, {**env, **keys}), "heard": heard}


def _run(command: list[str], project: Path, env: dict[str, str]) -> dict[str, Any]:
    done = subprocess.run(
        command,
        cwd=project,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    return {"exit": done.returncode, "said": done.stdout[-4_000:], "errors": done.stderr[-4_000:]}


if __name__ == "__main__":
    told = json.load(sys.stdin)
    isolate_network()
    root = Path(told["root"])
    env = {
        "PATH": f"{Path(str(program(told['agent']))).parent}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(root / "home"),
        "RUNG_HOOKS_RESIDENT": "0",
        "RUNG_JOURNAL": str(root / "journal.db"),
    }
    answer = {"codex": codex, "gemini": gemini}[told["agent"]](root / "home", root / "project", env)
    sys.stdout.write(json.dumps(answer))
    sys.stdout.flush()
    os._exit(0)  # whatever the lab's threads are doing
