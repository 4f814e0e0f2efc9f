"""Hooks answered by a resident server, and by a new process if there is none."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from rung.core.domain.errors import ConfigError
from rung.hooks import resident_client
from rung.hooks.install import ASK_SCRIPT, InstallTarget, command_for, install
from rung.hooks.resident_server import AlreadyRunning, ResidentServer, ResidentThread, serve
from tests.hooks.test_handlers import ERROR, tell
from tests.trusting import write_trusted
from tests.waiting import wait_until

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
        thread.join(60)


def is_served(place: Path) -> bool:
    """Return whether a server answers."""
    link = resident_client.connect(str(place))
    if link is not None:
        link.close()
    return link is not None


def event(name: str, **facts: Any) -> bytes:
    return json.dumps({"session_id": "s", "cwd": "/", "hook_event_name": name, **facts}).encode()


def run(
    place: Path, told: bytes, *, resident: str = "0", agent: str = "claude-code", port: int = 0, journal: str = ""
) -> dict[str, Any]:
    """Run the command as an agent's shell does."""
    command = command_for(InstallTarget(agent=agent, settings=place / "s.json", data_dir=place, port=port), "after")
    env = {
        **os.environ,
        resident_client.RESIDENT_VARIABLE: resident,
        "RUNG_JOURNAL": journal or str(place / "journal.db"),
    }
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
        assert not is_served(tmp_path)
    else:
        told = [context(run(tmp_path, event("PostToolBatch", tool_calls=SAME))) for _ in range(4)]
    told.append(context(run(tmp_path, event("PostToolBatch", tool_calls=SAME))))
    assert [text[:5] for text in told] == ["", "", "STOP ", "", "STILL"]


@pytest.mark.parametrize("by", ["sh", "python"])
def test_one_that_was_killed_is_done_without(tmp_path: Path, by: str) -> None:
    """With the socket that a killed server left behind, the command answers by itself, and a new server can start."""
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(str(tmp_path / resident_client.SOCKET_FILE))
    assert run(tmp_path, event("PreToolUse", tool_name="Bash", tool_input={}), port=1 if by == "python" else 0) == {}
    assert not (tmp_path / "crash.log").exists()
    with serving(tmp_path):
        assert is_served(tmp_path)


def test_one_of_another_installation_is_not_asked(tmp_path: Path) -> None:
    """A server that runs other code is not used."""
    with serving(tmp_path):
        assert resident_client.send_event(str(tmp_path), "claude-code", event("PreToolUse")) == b"{}"
        told = subprocess.run(
            ["sh", ASK_SCRIPT, "echo", "/elsewhere/rung/hooks/entry.py", "claude-code", str(tmp_path)],
            input=event("PreToolUse"), capture_output=True, check=True,
        ).stdout  # fmt: skip
        assert told.startswith(b"-I -S /elsewhere")


@pytest.mark.parametrize("port", [None, 0])
def test_every_way_to_ask(tmp_path: Path, port: int | None) -> None:
    """The socket and HTTP give the same answers; what is no event is `{}` and a line in the log."""
    with serving(tmp_path, port=port) as server:

        def ask(told: bytes, agent: str = "claude-code") -> dict[str, Any]:
            answer = resident_client.send_event(str(tmp_path), agent, told, server.port)
            assert answer is not None
            table: dict[str, Any] = json.loads(answer)
            return table

        told = [ask(event("PostToolBatch", tool_calls=SAME)) for _ in range(3)]
        assert context(told[2]).startswith("STOP")
        assert ask(b"no json") == {}
        assert ask(event("Stop"), "nobody") == {}
        large = event("PostToolBatch", tool_calls=[{**SAME[0], "tool_response": "x" * 3_000_000}])
        assert ask(large) == run(tmp_path, large, port=server.port) == {}
    lines = [json.loads(line) for line in (tmp_path / "crash.log").read_text().splitlines()]
    assert len(lines) == 2


@pytest.mark.parametrize("port", [None, 0])
def test_the_journal_of_the_agent_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, port: int | None) -> None:
    """The server writes to the journal that the hook's environment names, also one with letters outside ASCII."""
    with serving(tmp_path / "hooks", port=port) as server:
        told = event("PostToolUseFailure", tool_name="Bash", tool_input={}, tool_use_id="1", error=ERROR)
        monkeypatch.setenv("RUNG_JOURNAL", str(tmp_path / "jöurnal.db"))
        assert resident_client.send_event(str(tmp_path / "hooks"), "claude-code", told, server.port) == b"{}"
        if port is None:
            (tmp_path / "hooks").joinpath("spool").rename(tmp_path / "first")
            assert run(tmp_path / "hooks", told, journal=str(tmp_path / "jöurnal.db")) == {}
    lines = [json.loads(line) for path in tmp_path.rglob("*.jsonl") for line in path.read_text().splitlines()]
    named = [line["journal"] for line in lines if "journal" in line]
    assert set(named) == {str(tmp_path / "jöurnal.db")}


def test_what_is_too_large_is_refused(tmp_path: Path) -> None:
    """An event without a length, or with one above the limit, is refused before it is read."""
    with serving(tmp_path) as server:
        for length in ("", "x", "-1", "33554433", "9" * 5_000):
            with socket.socket(socket.AF_UNIX) as link:
                link.connect(server.server_address)
                link.sendall(f"POST /claude-code HTTP/1.1\r\ncontent-length: {length}\r\n\r\n".encode())
                assert link.recv(100).startswith(b"HTTP/1.1 411")


def test_one_at_a_time_and_a_persons_before_a_hooks(tmp_path: Path) -> None:
    """A second server started by a hook ends at once; one started by the user takes over."""
    first = threading.Thread(target=serve, args=(tmp_path,), kwargs={"idle": 60.0}, daemon=True)
    first.start()
    wait_until(lambda: is_served(tmp_path))
    with pytest.raises(AlreadyRunning):
        ResidentServer(tmp_path, idle=60.0)
    second = ResidentThread(tmp_path)
    assert second.started.wait(60)
    assert second.server is not None
    first.join(60)
    assert not first.is_alive()
    assert is_served(tmp_path)
    with pytest.raises(AlreadyRunning):  # one of the user's does not give way to another one
        ResidentServer(tmp_path)
    assert is_served(tmp_path)
    second.stop()
    assert not is_served(tmp_path)
    assert not (tmp_path / "serve.handover").exists()


def test_it_ends_when_it_is_not_asked(tmp_path: Path) -> None:
    """A server ends after its idle timeout."""
    server = ResidentServer(tmp_path / "hooks", idle=0.1)
    thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.02), daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    server.server_close()
    assert not (tmp_path / "hooks" / resident_client.SOCKET_FILE).exists()


def test_a_hook_starts_one_for_what_comes(tmp_path: Path) -> None:
    """A prompt starts a server, which answers the next events."""
    assert run(tmp_path, event("UserPromptSubmit", prompt="go"), resident="1") == {}
    wait_until(lambda: is_served(tmp_path))
    assert resident_client.send_event(str(tmp_path), "claude-code", event("PreToolUse", tool_name="Bash")) == b"{}"
    (tmp_path / resident_client.SOCKET_FILE).unlink()  # it ends when its socket is gone


def test_what_cannot_be_served_is_said(tmp_path: Path) -> None:
    """A port in use and a path that is too long for a socket are errors that name them; nothing stays locked."""
    with serving(tmp_path / "a", port=0) as server:
        for _ in range(2):
            with pytest.raises(ConfigError, match="port"):
                ResidentServer(tmp_path / "b", server.port)
    with serving(tmp_path / "b"):
        assert is_served(tmp_path / "b")
    with pytest.raises(ConfigError, match="RUNG_HOOKS"):
        ResidentServer(tmp_path / ("long" * 40))


def test_settings_with_a_port(tmp_path: Path) -> None:
    """With --http every event is a command that asks the port, and answers by itself if nobody is there."""
    with serving(tmp_path, port=0) as server:
        place = InstallTarget(agent="codex", settings=tmp_path / "s.json", data_dir=tmp_path, port=server.port)
        install(place)
        hooks = json.loads(place.settings.read_text())["hooks"]
        assert {hook["type"] for groups in hooks.values() for hook in groups[0]["hooks"]} == {"command"}
        command = ["/bin/sh", "-c", hooks["PostToolUse"][0]["hooks"][0]["command"]]
        told = event("PostToolUse", tool_name="Bash", tool_input={})
        assert subprocess.run(command, input=told, capture_output=True, check=True).stdout == b"{}"
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
