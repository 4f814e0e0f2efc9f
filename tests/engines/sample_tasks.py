"""Tasks of the engine tests. Every step writes down that it begins and ends, and can be held by a file."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import rung


def work(folder: str, name: str) -> str:
    """Record the beginning and the end of a step; wait while a file holds it."""
    note(folder, "begin", name)
    while Path(folder, f"hold-{name}").exists() or Path(folder, "hold-all").exists():
        time.sleep(0.01)  # in another process than the test: nothing else to wait for
    note(folder, "end", name)
    return f"{name} done"


def note(folder: str, what: str, name: str) -> None:
    """Append a line that says which process did what."""
    with Path(folder, "log").open("a") as log:
        log.write(f"{what} {name} {os.getpid()}\n")


def fail(folder: str, text: str) -> None:
    """Fail, as a step."""
    note(folder, "fail", text)
    raise ValueError(text)


def kill_me(folder: str) -> None:
    """Kill the worker, every time."""
    note(folder, "begin", "kill")
    os.kill(os.getpid(), 9)


def call_model(request: rung.Request) -> str:
    """Attempt that fails twice with an overload, then answers with what it was asked."""
    folder = str(request.params["folder"])
    count = sum(line.startswith("begin attempt") for line in read_log(folder))
    work(folder, "attempt")
    rung.report_cost(0.5)
    rung.report_step(f"attempt {count}")
    if count < 2:
        raise rung.AttemptError("overloaded", status=529, retry_after=0.05)
    return f"{request.prompt}!"


def ambiguous(request: rung.Request) -> str:
    """Attempt that needs a person, until one has answered."""
    if "answered" in request.recovery or request.params.get("answered"):
        return "answered"
    raise rung.AttemptError("which one?", finding="strategic_ambiguity")


def read_log(folder: str) -> list[str]:
    """Return the lines that steps wrote."""
    log = Path(folder, "log")
    return log.read_text().splitlines() if log.exists() else []


@rung.durable.task("five")
async def five(folder: str) -> list[str]:
    """Five steps, one after another."""
    return [await rung.durable.step(f"s{n}", work, folder, f"s{n}") for n in range(5)]


@rung.durable.task("caught")
async def caught(folder: str) -> dict[str, Any]:
    """A step that fails, and the step after it."""
    try:
        await rung.durable.step("bad", fail, folder, "no such thing")
    except Exception as error:
        text = str(error)
    after = await rung.durable.step("after", work, folder, "after")
    return {"caught": text, "after": after}


@rung.durable.task("uncaught")
async def uncaught(folder: str) -> None:
    """A step that fails, and nobody catches it."""
    await rung.durable.step("bad", fail, folder, "no such thing")


@rung.durable.task("sleeper")
async def sleeper(folder: str, seconds: float) -> str:
    """A durable timer between two steps."""
    await rung.durable.step("before", work, folder, "before")
    await rung.durable.step("armed", work, folder, "armed")
    await rung.durable.sleep("nap", seconds)
    return str(await rung.durable.step("after", work, folder, "after"))


@rung.durable.task("approval")
async def approval(folder: str, timeout: float | None) -> Any:  # noqa: ASYNC109  # the timeout outlives the process
    """Wait for a message."""
    await rung.durable.step("before", work, folder, "before")
    first = await rung.durable.wait("ok", timeout)
    again = await rung.durable.wait("ok", timeout)
    return [first, again]


@rung.durable.task("recovering")
async def recovering(folder: str, *, idempotent: bool = True) -> dict[str, Any]:
    """A recovery whose attempts are steps."""
    request = rung.Request(prompt="hello", params={"folder": folder}, idempotent=idempotent)
    outcome = await rung.durable.recover_in_task("model", call_model, request)
    return {**outcome.to_dict(), "value": outcome.value}


@rung.durable.task("asking")
async def asking(folder: str) -> dict[str, Any]:
    """A recovery that asks a person."""
    request = rung.Request(prompt="hello", params={"folder": folder})
    outcome = await rung.durable.recover_in_task("model", ambiguous, request, policy="pipeline", attended=True)
    return outcome.to_dict()


@rung.durable.task("deadly")
async def deadly(folder: str) -> None:
    """A step that kills every worker that takes it."""
    await rung.durable.step("before", work, folder, "before")
    await rung.durable.step("kill", kill_me, folder)


@rung.durable.tool
async def use_tool(folder: str, name: str) -> str:
    """Tool with a side effect."""
    return await asyncio.to_thread(work, folder, name)


def ask_model(folder: str, turn: int) -> dict[str, Any]:
    """Model that calls three tools, one of them twice with the same arguments, and then answers."""
    note(folder, "model", str(turn))
    tools = ["tool0", "tool1", "tool1", "tool2"]
    return {"tool": tools[turn]} if turn < len(tools) else {"answer": "done"}


@rung.durable.task("agent")
async def agent(folder: str) -> list[str]:
    """Agent loop: model calls are steps, and so are tool calls."""
    results: list[str] = []
    for turn in range(10):
        answer = await rung.durable.step(f"model.{turn}", ask_model, folder, turn)
        if "answer" in answer:
            break
        results.append(await use_tool(folder, name=answer["tool"]))
    return results
