"""The clients of the suite: what they speak, how their task goes, and where their packages are."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.clients.agents import AGENTS
from bench.clients.cells import PLAIN, ROUTES, TRIES, Cell, faults_of
from bench.clients.provider.script import ANSWER, ROW, Play, ToolCall

if TYPE_CHECKING:
    from collections.abc import Sequence

HERE: Final = Path(__file__).parent
LOCKS: Final = HERE / "locks"
ALL_WIRES: Final = ("messages", "chat", "responses")
BOTH_MODES: Final = ("stream", "whole")
ECHO: Final = f"echo {ROW} >> ran.txt"
SUBMIT: Final = f"echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo '{ANSWER}'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A client at its locked version."""

    name: str
    package: str  # whose version is the client's
    wires: tuple[str, ...]
    modes: tuple[str, ...] = BOTH_MODES
    tries: tuple[str, ...] = TRIES
    play: Play = field(default_factory=Play)
    is_echoed: bool = False  # its output shows a command that has the answer in it

    @property
    def is_agent(self) -> bool:
        """Return whether the client is a command, started anew for each cell."""
        return self.name in AGENTS

    @property
    def is_node(self) -> bool:
        return (LOCKS / self.name / "package.json").exists()

    @property
    def version(self) -> str:
        """Return the locked version."""
        if self.is_node:
            found = json.loads((LOCKS / self.name / "package.json").read_text())["dependencies"][self.package]
            return str(found)
        match = re.search(
            rf"^{re.escape(self.package)}(?:\[.*\])?==(\S+)", (LOCKS / f"{self.name}.in").read_text(), re.MULTILINE
        )
        assert match is not None, self.package
        return match[1]

    @property
    def driver(self) -> Path:
        name = self.name.replace("-", "_")  # a module must not have the name of the package that it imports
        return HERE / "drivers" / (f"{name}.mjs" if self.is_node else f"drive_{name}.py")

    def cells(self, routes: Sequence[str] = ROUTES) -> list[Cell]:
        """Return every cell of this client on these routes, those without a fault first."""
        found = [
            Cell(client=self.name, wire=wire, mode=mode, tries=tries, fault=fault, route=route)
            for tries in self.tries
            for mode in self.modes
            for wire in self.wires
            for route in routes
            for fault in faults_of(mode, has_call=self.play.has_call)
        ]
        return sorted(found, key=lambda cell: cell.fault != PLAIN)


def _agent(
    name: str, package: str, tool: str, *wires: str, argument: str = "command", value: object = ECHO, **more: object
) -> Client:
    play = Play(tool=tool, arguments={argument: value}, **more)  # type: ignore[arg-type]  # fields of Play
    tries = TRIES if name in ("claude-code", "codex", "claude-agent-sdk") else ("default",)
    is_echoed = play.ending is not None
    return Client(
        name=name, package=package, wires=wires, modes=("stream",), tries=tries, play=play, is_echoed=is_echoed
    )


def _sdk(name: str, package: str, *wires: str, **more: object) -> Client:
    return Client(name=name, package=package, wires=wires, **more)  # type: ignore[arg-type]  # fields of Client


_EDIT: Final = f"ran.txt\n```\n{ROW}\n```\n\n{ANSWER}"
_ONCE: Final = Play(has_call=False)

CLIENTS: Final = {
    client.name: client
    for client in (
        _sdk("anthropic-python", "anthropic", "messages"),
        _sdk("openai-python", "openai", "chat", "responses"),
        _sdk("anthropic-node", "@anthropic-ai/sdk", "messages"),
        _sdk("openai-node", "openai", "chat", "responses"),
        _sdk("vercel", "ai", *ALL_WIRES, "compatible"),
        _agent("claude-code", "@anthropic-ai/claude-code", "Bash", "messages"),
        _agent("codex", "@openai/codex", "exec_command", "responses", argument="cmd"),
        _agent("claude-agent-sdk", "@anthropic-ai/claude-agent-sdk", "Bash", "messages"),
        _agent("opencode", "opencode-ai", "bash", *ALL_WIRES),
        _agent("qwen-code", "@qwen-code/qwen-code", "run_shell_command", "chat"),
        _agent("cline", "cline", "run_commands", "chat", argument="commands", value=[ECHO]),
        _agent("pi", "@mariozechner/pi-coding-agent", "bash", *ALL_WIRES),
        _agent("gemini-cli", "@google/gemini-cli", "run_shell_command", "gemini"),
        _agent("aider", "aider-chat", "", "chat", has_call=False, text=_EDIT),
        _agent("mini-swe-agent", "mini-swe-agent", "bash", "chat", ending=ToolCall(name="bash", arguments={"command": SUBMIT})),
        Client(name="llm", package="llm", wires=("chat",), modes=("stream",), tries=("default",)),
        _sdk("langchain-js", "langchain", *ALL_WIRES),
        _sdk("openai-agents-js", "@openai/agents", "chat", "responses"),
        _sdk("langchain", "langchain", *ALL_WIRES),
        _sdk("openai-agents", "openai-agents", "chat", "responses"),
        _sdk("crewai", "crewai", "messages", "chat", modes=("whole",)),
        _sdk("llama-index", "llama-index-core", *ALL_WIRES),
        _sdk("strands", "strands-agents", *ALL_WIRES, modes=("stream",)),
        _sdk("google-adk", "google-adk", "messages", "chat"),
        _sdk("pydantic-ai", "pydantic-ai-slim", *ALL_WIRES),
        _sdk("smolagents", "smolagents", "chat", play=Play(ending=ToolCall(name="final_answer", arguments={"answer": ANSWER}))),
        _sdk("autogen", "autogen-agentchat", "chat"),
        _sdk("dspy", "dspy", "chat", modes=("whole",), play=Play(has_call=False, text=f"[[ ## answer ## ]]\n{ANSWER}\n\n[[ ## completed ## ]]")),
        _sdk("instructor", "instructor", "messages", "chat", modes=("whole",), play=_ONCE),
        _sdk("semantic-kernel", "semantic-kernel", "messages", "chat", play=Play(tool="rows-append_row")),
        _sdk("haystack", "haystack-ai", "chat", "responses"),
    )
}  # fmt: skip
