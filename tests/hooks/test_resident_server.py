"""Hooks answered by a resident server, and by a new process if there is none."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any

import pytest

from rung.core.domain.errors import ConfigError
from rung.hooks import resident_client
from rung.hooks.install import InstallTarget, command_for, fallback_command, install
from rung.hooks.resident_server import AlreadyRunning, ResidentServer, ResidentThread, load_token, serve
from tests.hooks.test_handlers import ERROR, tell
from tests.trusting import write_trusted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SAME = [{"tool_name": "Bash", "tool_input": {"command": "ls /nope"}, "tool_response": f"Exit code 2\n{ERROR}"}]


@contextmanager
def serving(place: Path, **how: Any) -> Iterator[ResidentServer]:
    with ResidentServer(place, **how) as server:
        thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.05), daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join(10)


def event(name: str, **facts: Any) -> bytes:
    return json.dumps({"session_id": "s", "cwd": "/", "hook_event_name": name, **facts}).encode()


def run(place: Path, told: bytes, *, resident: str = "0", agent: str = "claude-code") -> dict[str, Any]:
    """Run the command as an agent's shell does."""
    command = command_for(InstallTarget(agent=agent, settings=place / "s.json", data_dir=place), "after")
    env = {**os.environ, resident_client.RESIDENT_VARIABLE: resident, "RUNG_JOURNAL": str(place / "journal.db")}
    done = subprocess.run(["/bin/sh", "-c", command], input=told, capture_output=True, env=env, timeout=60, check=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def context(answer: dict[str, Any]) -> str:
    return str(answer.get("hookSpecificOutput", {}).get("additionalContext", ""))


@pytest.mark.parametrize("there", [True, False])
def test_the_same_answers_with_and_without(tmp_path: Path, there: bool) -> None:
    """A loop is reported at three and five with a server, without one, and when it goes away in between."""
    told = []
    if there:
        with serving(tmp_path):
            told = [context(run(tmp_path, event("PostToolBatch", tool_calls=SAME))) for _ in range(4)]
        assert resident_client.find_server(str(tmp_path)) is None
    else:
        told = [context(run(tmp_path, event("PostToolBatch", tool_calls=SAME))) for _ in range(4)]
    told.append(context(run(tmp_path, event("PostToolBatch", tool_calls=SAME))))
    assert [text[:5] for text in told] == ["", "", "STOP ", "", "STILL"]


def test_one_that_is_gone_is_done_without(tmp_path: Path) -> None:
    """With the stale address file of a killed server, the command answers by itself."""
    with serving(tmp_path) as server:
        left = (tmp_path / resident_client.ADDRESS_FILE).read_text()
        assert server.port
    (tmp_path / resident_client.ADDRESS_FILE).write_text(left)
    assert run(tmp_path, event("PreToolUse", tool_name="Bash", tool_input={})) == {}
    assert not (tmp_path / "crash.log").exists()


def test_one_of_another_installation_is_not_asked(tmp_path: Path) -> None:
    """A server that runs other code is not used."""
    with serving(tmp_path) as server:
        (tmp_path / resident_client.ADDRESS_FILE).write_text(f"{server.port} {server.token} /elsewhere/rung/hooks\n")
        assert resident_client.send_event(str(tmp_path), "claude-code", event("PreToolUse")) is None


def post(
    server: ResidentServer, body: bytes, headers: dict[str, str], path: str = "/claude-code"
) -> tuple[int, dict[str, Any]]:
    link = HTTPConnection("127.0.0.1", server.port, timeout=30)
    try:
        link.request("POST", path, body, headers)
        found = link.getresponse()
        return found.status, json.loads(found.read())
    finally:
        link.close()


def test_posted_events(tmp_path: Path) -> None:
    """Posted events get the same answers; requests without the token are rejected."""
    with serving(tmp_path) as server:
        known = {"x-rung-token": server.token}
        told = [post(server, event("PostToolBatch", tool_calls=SAME), known) for _ in range(3)]
        assert [status for status, _ in told] == [200] * 3
        assert context(told[2][1]).startswith("STOP")
        assert post(server, event("Stop"), {})[0] == 401
        assert post(server, event("Stop"), {"x-rung-token": "other"})[0] == 401
        assert post(server, b"no json", known) == (200, {})
        assert post(server, event("Stop"), known, "/nobody") == (200, {})
    lines = [json.loads(line) for line in (tmp_path / "crash.log").read_text().splitlines()]
    assert len(lines) == 2
    assert (tmp_path / "hook.token").stat().st_mode & 0o077 == 0


def test_one_at_a_time_and_a_persons_before_a_hooks(tmp_path: Path) -> None:
    """A second server started by a hook ends at once; one started by the user takes over."""
    first = threading.Thread(target=serve, args=(tmp_path,), kwargs={"idle": 60.0}, daemon=True)
    first.start()
    until = time.monotonic() + 10
    while resident_client.find_server(str(tmp_path)) is None and time.monotonic() < until:
        time.sleep(0.02)
    with pytest.raises(AlreadyRunning):
        ResidentServer(tmp_path, idle=60.0)
    second = ResidentThread(tmp_path, 0)
    assert second.started.wait(10)
    assert second.server is not None
    assert resident_client.find_server(str(tmp_path)) == (second.server.port, second.server.token)
    first.join(10)
    assert not first.is_alive()
    second.stop()
    assert resident_client.find_server(str(tmp_path)) is None


def test_it_ends_when_it_is_not_asked(tmp_path: Path) -> None:
    """A server ends after its idle timeout."""
    server = ResidentServer(tmp_path / "hooks", idle=0.1)
    thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.02), daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()
    server.server_close()
    assert not (tmp_path / "hooks" / resident_client.ADDRESS_FILE).exists()


def test_a_hook_starts_one_for_what_comes(tmp_path: Path) -> None:
    """A prompt starts a server, which answers the next events."""
    assert run(tmp_path, event("UserPromptSubmit", prompt="go"), resident="1") == {}
    until = time.monotonic() + 30
    while resident_client.find_server(str(tmp_path)) is None and time.monotonic() < until:
        time.sleep(0.02)
    assert resident_client.send_event(str(tmp_path), "claude-code", event("PreToolUse", tool_name="Bash")) == b"{}"
    (tmp_path / resident_client.ADDRESS_FILE).unlink()


def test_a_taken_port_is_said(tmp_path: Path) -> None:
    """A port in use is an error that names it; the thread of the service picks another port."""
    with serving(tmp_path / "a") as server:
        with pytest.raises(ConfigError, match="port"):
            ResidentServer(tmp_path / "b", server.port)
        other = ResidentThread(tmp_path / "b", server.port)
        assert other.started.wait(10)
        assert other.server is not None
        assert other.server.port != server.port
        other.stop()


def test_settings_that_post(tmp_path: Path) -> None:
    """With --http each event is posted, and the fallback command is a no-op while the service runs."""
    with serving(tmp_path) as server:
        place = InstallTarget(agent="claude-code", settings=tmp_path / "s.json", data_dir=tmp_path, port=server.port)
        install(place)
        hooks = json.loads(place.settings.read_text())["hooks"]
        kinds = {name: [hook["type"] for hook in groups[0]["hooks"]] for name, groups in hooks.items()}
        assert kinds["PostToolBatch"] == kinds["Stop"] == ["http", "command"]
        assert kinds["SessionStart"] == kinds["StopFailure"] == ["command"]
        posted = hooks["PostToolBatch"][0]["hooks"][0]
        assert posted["headers"]["x-rung-token"] == load_token(tmp_path)
        command = ["/bin/sh", "-c", fallback_command(place, "after")]
        told = event("PostToolBatch", tool_calls=SAME)
        assert subprocess.run(command, input=told, capture_output=True, check=True).stdout == b""
    assert subprocess.run(command, input=told, capture_output=True, check=True).stdout == b"{}"


def test_a_check_runs_in_a_thread_too(tmp_path: Path) -> None:
    """The check of the stop gate also runs in a thread, where signals cannot be used."""
    write_trusted(tmp_path / "rung.toml", '[stop]\ncheck = "false"\n')
    found: list[dict[str, Any]] = []
    thread = threading.Thread(
        target=lambda: found.append(tell(tmp_path, "claude-code", "stop", last_assistant_message="Done."))
    )
    thread.start()
    thread.join(30)
    assert found[0]["decision"] == "block"
