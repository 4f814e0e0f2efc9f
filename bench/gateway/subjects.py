"""Start the subjects, each as a process: direct, minimal proxy, rung, LiteLLM, Portkey."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

HERE = Path(__file__).parent
DIRECT, MINIMAL, OURS, LITELLM, PORTKEY = "direct", "minimal", "rung", "LiteLLM", "Portkey"
START_TIMEOUT_SECONDS = 300.0  # for the slowest subject on a busy machine


class Subject(NamedTuple):
    """A running server."""

    name: str
    port: int
    process: subprocess.Popen[bytes]
    ready: float  # seconds until it was ready
    headers: str = ""  # header lines to add to each request


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def start(
    name: str, port: int, *command: str, path: str = "", env: Mapping[str, str] | None = None, headers: str = ""
) -> Subject:
    """Start a server, and wait until `path` returns 200; without a path, until it accepts connections."""
    began = time.perf_counter()
    process_env = None if env is None else {"PATH": os.environ["PATH"], **env}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=None if env is None else subprocess.DEVNULL, env=process_env)  # fmt: skip
    while time.perf_counter() - began < START_TIMEOUT_SECONDS and process.poll() is None:
        with contextlib.suppress(OSError):
            if path:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=2):
                    pass
            else:
                socket.create_connection(("127.0.0.1", port), 0.2).close()
            return Subject(name, port, process, time.perf_counter() - began, headers)
        time.sleep(0.005)
    process.kill()
    raise SystemExit(f"{name} did not start")


def lab(delay: float, scratch: Path) -> Subject:
    """Start the lab, which is the upstream."""
    port = free_port()
    script = scratch / f"lab{port}.json"
    script.write_text(json.dumps({"delay": delay}))
    return start(DIRECT, port, sys.executable, "-m", "rung", "lab", "--port", str(port), "--script", str(script))


def minimal(url: str) -> Subject:
    port = free_port()
    return start(MINIMAL, port, sys.executable, str(HERE / "minimal.py"), url, str(port))


def ours(url: str, scratch: Path) -> Subject:
    """Start rung's gateway with its defaults and two models."""
    port = free_port()
    flags = ("--anthropic", url, "--openai", url, "--models", "small,large", "--journal", str(scratch / f"j{port}.db"))
    return start(OURS, port, sys.executable, "-m", "rung", "gateway", "--port", str(port), *flags, path="/readyz")


def litellm(url: str, scratch: Path, program: Path) -> Subject:
    """Start LiteLLM's proxy in its leanest form: no key, no database, one worker, local price list."""
    port = free_port()
    params = {"model": "anthropic/small", "api_base": url, "api_key": "sk-test"}
    settings = {
        "model_list": [{"model_name": "small", "litellm_params": params}],
        "litellm_settings": {"telemetry": False},
    }
    file = scratch / f"litellm{port}.yaml"
    file.write_text(json.dumps(settings))  # JSON is valid YAML
    run = "import sys; from litellm import run_server; sys.argv[0] = 'litellm'; run_server()"
    flags = ("--config", str(file), "--host", "127.0.0.1", "--port", str(port), "--telemetry", "False")
    env = {
        "HOME": str(scratch),
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
        "LITELLM_LOG": "ERROR",
    }
    return start(LITELLM, port, str(program), "-c", run, *flags, path="/health/liveliness", env=env)


def portkey(url: str, scratch: Path, program: Path) -> Subject:
    port = free_port()
    headers = f"x-portkey-provider: anthropic\r\nx-portkey-custom-host: {url}/v1\r\n"
    env = {"HOME": str(scratch), "TRUSTED_CUSTOM_HOSTS": "127.0.0.1"}
    return start(
        PORTKEY, port, "node", str(program), f"--port={port}", "--headless", path="/", env=env, headers=headers
    )


@contextlib.contextmanager
def running(delay: float, scratch: Path, peers: Mapping[str, Path | None]) -> Iterator[list[Subject]]:
    """Start all subjects in front of one lab; stop them at the end of the block."""
    found: list[Subject] = []
    try:
        found.append(lab(delay, scratch))
        url = f"http://127.0.0.1:{found[0].port}"
        found.append(minimal(url))
        found.append(ours(url, scratch))
        for make, name in ((litellm, LITELLM), (portkey, PORTKEY)):
            program = peers.get(name)
            if program is not None:
                found.append(make(url, scratch, program.absolute()))
        yield found
    finally:
        stop_all(found)


def stop_all(found: list[Subject]) -> None:
    """Stop all subjects."""
    for subject in found:
        subject.process.terminate()
    for subject in found:
        with contextlib.suppress(subprocess.TimeoutExpired):
            subject.process.wait(20)
        if subject.process.poll() is None:
            subject.process.kill()
            subject.process.wait(10)
