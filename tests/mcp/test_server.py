"""The MCP server with the real client, over standard input and output and over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from rung.core.classify.classifier import classify
from rung.core.domain import events as ev
from rung.core.domain.failures import Evidence, Phase
from rung.core.domain.incident import Incident
from rung.core.domain.request import Request
from rung.core.policy.templates import preset
from rung.core.recovery.decide import decide
from rung.store import open_journal
from tests.trusting import write_trusted

pytest.importorskip("mcp")

from mcp.client.stdio import stdio_client

from mcp import ClientSession, StdioServerParameters

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

TOOLS = {"report_failure", "known_about_error", "am_i_looping", "report_progress", "ask_escalation", "finish_partial"}
MISSING = "cat: notes.txt: No such file or directory"


def environment(tmp_path: Path) -> dict[str, str]:
    coverage = {name: value for name, value in os.environ.items() if name.startswith(("COVERAGE_", "PYTHONPATH"))}
    own = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "RUNG_JOURNAL": str(tmp_path / "journal.db")}
    return {**coverage, **own, "XDG_STATE_HOME": os.environ["XDG_STATE_HOME"]}


@asynccontextmanager
async def over_stdio(tmp_path: Path, *arguments: str) -> AsyncIterator[ClientSession]:
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "rung", "mcp", *arguments], env=environment(tmp_path), cwd=tmp_path
    )
    async with stdio_client(server) as (read, write), ClientSession(read, write) as client:
        await client.initialize()
        yield client


async def call(client: ClientSession, name: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool, and return its structured result; 1.x and 2.x name it differently."""
    answer: Any = await client.call_tool(name, arguments)
    failed = getattr(answer, "is_error", getattr(answer, "isError", False))
    assert not failed, answer
    found = getattr(answer, "structured_content", None) or getattr(answer, "structuredContent", None)
    assert isinstance(found, dict), answer
    return found


async def read(client: ClientSession, address: str) -> Any:
    answer: Any = await client.read_resource(address)
    return json.loads(answer.contents[0].text)


def test_an_agent_is_told_the_same_as_everybody_else(tmp_path: Path) -> None:
    """Each reported failure gets the decision of `decide` for the same failures and ladder."""
    errors = [MISSING, "Error 529: overloaded_error", "401 invalid x-api-key"]

    async def talk() -> list[dict[str, Any]]:
        async with over_stdio(tmp_path) as client:
            assert {tool.name for tool in (await client.list_tools()).tools} >= TOOLS
            return [
                await call(client, "report_failure", error=error, task="read notes", session="s") for error in errors
            ]

    told = asyncio.run(talk())
    policy = preset("task")
    rungs = tuple(rung.name for rung in policy.ladder.rungs)
    incident = Incident.of(
        [
            ev.Opened(
                0.0, "i", ev.IncidentContext("task", "default", rungs=rungs), Request(prompt="read notes", agent="mcp")
            )
        ]
    )
    for error, answer in zip(errors, told, strict=True):
        failure = classify(Evidence(text=error, phase=Phase.CALL))
        incident.fold(ev.AttemptFailed(0.0, failure, 0.0, 0.0, may_retry=True))
        decision = decide(incident, failure, policy, 0.0, 0.5)
        incident.fold(ev.Decided(0.0, decision))
        assert (answer["kind"], answer["rung"]) == (failure.kind, policy.ladder.rungs[decision.rung].name)
    assert told[0]["step"] == "change"
    assert "notes.txt" in told[0]["instructions"]
    assert told[1]["step"] == "repeat"
    with open_journal(str(tmp_path / "journal.db")) as journal:
        names = [type(event).__name__ for event in journal.events(told[0]["incident"])]
    assert names.count("AttemptFailed") == names.count("Decided") == 3


def test_a_loop_progress_and_an_honest_end(tmp_path: Path) -> None:
    """Three equal calls are a loop, once with a next step; progress is in the outcome; resources show the incident."""

    async def talk() -> None:
        async with over_stdio(tmp_path) as client:
            step = {"tool": "bash", "arguments": {"command": "cat notes.txt"}, "error": MISSING, "session": "s"}
            told = [await call(client, "am_i_looping", **step) for _ in range(4)]
            assert [one["looping"] for one in told] == [False, False, True, True]
            assert told[2]["stage"] == "replan"
            assert told[2]["next"]["rung"] == "replan"
            assert told[3]["next"] is None
            assert (await call(client, "report_progress", step="read the index", session="s"))["noted"]
            assert not (await call(client, "report_progress", step="x", session="nobody"))["noted"]
            end = await call(client, "finish_partial", reason="the notes are gone", done=["wrote a list"], session="s")
            assert end["status"] == "partial"
            assert end["completedSteps"] == ["read the index", "wrote a list"]
            listed = await read(client, "rung://incidents")
            assert [row["id"] for row in listed] == [end["incident"]]
            one = await read(client, f"rung://incidents/{end['incident']}")
            assert one["status"] == "partial"
            assert one["events"][-1]["name"] == "closed"
            assert isinstance(await read(client, "rung://learnings"), list)

    asyncio.run(talk())


def test_what_is_known_and_who_takes_over(tmp_path: Path) -> None:
    """An error is explained; an escalation hands over to the next model of the policy."""
    write_trusted(tmp_path / "rung.toml", '[policy]\nladder = "task"\nmodels = ["small", "large"]\n')

    async def talk() -> None:
        async with over_stdio(tmp_path) as client:
            known = await call(client, "known_about_error", error="429 rate limit exceeded, retry after 7 seconds")
            assert (known["kind"], known["retryable"], known["wait_seconds"]) == ("rate_limit", True, 7.0)
            assert known["helps"]
            await call(client, "report_failure", error=MISSING, session="s", model="small")
            step = await call(client, "ask_escalation", reason="I cannot read images", session="s")
            assert (step["step"], step["model"]) == ("hand_over", "large")

    asyncio.run(talk())


def test_a_server_that_starts_again_forgets_no_try(tmp_path: Path) -> None:
    """After a restart the ladder continues: used tries stay used."""

    async def once() -> dict[str, Any]:
        async with over_stdio(tmp_path) as client:
            return await call(client, "report_failure", error=MISSING, session="s")

    told = [asyncio.run(once()) for _ in range(4)]
    assert len({one["incident"] for one in told}) == 1
    assert [one["rung"] for one in told] == ["nudge", "nudge", "nudge", "replan"]


def test_over_http(tmp_path: Path) -> None:
    """The tools work over streamable HTTP."""
    pytest.importorskip("mcp.client.streamable_http")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "rung", "mcp", "--http", "--port", str(port)],
        cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            with socket.socket() as knock:
                if knock.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        token = (tmp_path / ".local/share/rung/mcp.token").read_text()
        assert asyncio.run(_over_http(port, token))["kind"] == "not_found"
    finally:
        server.kill()
        server.wait()


async def _over_http(port: int, token: str) -> dict[str, Any]:
    import mcp.client.streamable_http as transport

    names: dict[str, Any] = vars(transport)
    headers: dict[str, str] = {"Authorization": f"Bearer {token}"}
    how: dict[str, Any] = {"headers": headers}
    connect = names.get("streamable_http_client") or names["streamablehttp_client"]
    async with AsyncExitStack() as stack:
        if "streamable_http_client" in names:  # 2.x
            package = names.get("httpx2") or names["httpx"]
            http_client = package.AsyncClient(headers=headers, timeout=60)
            how = {"http_client": await stack.enter_async_context(http_client)}
        streams = await stack.enter_async_context(connect(f"http://127.0.0.1:{port}/mcp", **how))
        client = await stack.enter_async_context(ClientSession(*streams[:2]))
        await client.initialize()
        return await call(client, "report_failure", error=MISSING)


@pytest.mark.parametrize("arguments", [("--port", "-1"), ("--host", "0.0.0.0"), ("--nonsense",)])
def test_what_cannot_be_is_exit_code_2(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """An invalid option exits with code 2."""
    done = subprocess.run(
        [sys.executable, "-m", "rung", "mcp", *arguments], cwd=tmp_path, env=environment(tmp_path), check=False,
        capture_output=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 2
