"""How each command-line agent is started: its command, its environment and its own configuration."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from bench.clients.provider.script import PROMPT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

KEY: Final = "sk-test-0123456789"


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One start of an agent."""

    command: list[str]
    env: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)  # path below the home directory → content


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a start is made from."""

    home: Path
    packages: Path  # environment of the agent
    url: str
    wire: str
    tries: str = "default"  # the agent's own: default, zero, or a number
    model: str = ""  # empty: the agent's usual one

    @property
    def retries(self) -> str:
        """Return the number of the agent's own retries; empty: as many as it makes by itself."""
        return "" if self.tries == "default" else self.tries.replace("zero", "0")

    @property
    def v1(self) -> str:
        return self.url + "/v1"

    def node(self, path: str) -> str:
        return str(self.packages / "node_modules" / path)


def claude_code(at: Setting) -> Launch:
    tries = {"CLAUDE_CODE_MAX_RETRIES": at.retries} if at.retries else {}
    model = at.model or "claude-sonnet-4-5"
    small = {"ANTHROPIC_DEFAULT_HAIKU_MODEL": at.model} if at.model else {}
    env = {"ANTHROPIC_BASE_URL": at.url, "ANTHROPIC_API_KEY": KEY, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1", **small, **tries}  # fmt: skip
    program = at.node("@anthropic-ai/claude-code-linux-x64/claude")
    return Launch(
        command=[program, "-p", PROMPT, "--model", model, "--allowedTools", "Bash"],
        env=env,
    )


def codex(at: Setting) -> Launch:
    tries = f"request_max_retries = {at.retries}\nstream_max_retries = {at.retries}\n" if at.retries else ""
    settings = (
        f'model = "{at.model or "gpt-5.1"}"\nmodel_provider = "up"\n[model_providers.up]\nname = "up"\nbase_url = "{at.v1}"\n'
        f'wire_api = "responses"\nenv_key = "OPENAI_API_KEY"\n{tries}'
    )
    flags = ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
    return Launch(
        command=[at.node(".bin/codex"), *flags, PROMPT],
        env={"OPENAI_API_KEY": KEY},
        files={".codex/config.toml": settings},
    )


def gemini_cli(at: Setting) -> Launch:
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}, "general": {"disableAutoUpdate": True}}
    return Launch(
        command=[at.node(".bin/gemini"), "-m", "gemini-2.5-pro", "--yolo", "-p", PROMPT],
        env={"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": at.url, "GEMINI_CLI_TRUST_WORKSPACE": "true"},
        files={".gemini/settings.json": json.dumps(settings)},
    )


def opencode(at: Setting) -> Launch:
    package, model = {
        "messages": ("@ai-sdk/anthropic", "claude-sonnet-4-5"),
        "chat": ("@ai-sdk/openai-compatible", "gpt-x"),
        "responses": ("@ai-sdk/openai", "gpt-5.1"),
    }[at.wire]
    options = {"baseURL": at.v1, "apiKey": KEY}
    provider = {"npm": package, "name": "up", "options": options, "models": {model: {"name": model}}}
    settings = {"provider": {"up": provider}, "model": f"up/{model}", "small_model": f"up/{model}", "autoupdate": False, "permission": "allow"}  # fmt: skip
    return Launch(
        command=[at.node("opencode-linux-x64/bin/opencode"), "run", "-m", f"up/{model}", PROMPT],
        env={"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"},
        files={".config/opencode/opencode.json": json.dumps(settings)},
    )


def qwen_code(at: Setting) -> Launch:
    command = [at.node(".bin/qwen"), "--yolo", "-m", "qwen-x", "--auth-type", "openai", "-p", PROMPT]
    return Launch(command=command, env={"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": at.v1, "OPENAI_MODEL": "qwen-x"})


def pi(at: Setting) -> Launch:
    api, model, url = {
        "messages": ("anthropic-messages", "claude-x", at.url),
        "chat": ("openai-completions", "gpt-x", at.v1),
        "responses": ("openai-responses", "gpt-y", at.v1),
    }[at.wire]
    entry = {"id": model, "name": model, "contextWindow": 200_000, "maxTokens": 8_000}
    settings = {"providers": {"up": {"baseUrl": url, "apiKey": KEY, "api": api, "models": [entry]}}}
    return Launch(
        command=[at.node(".bin/pi"), "--provider", "up", "--model", model, "-p", PROMPT],
        env={"PI_OFFLINE": "1"},
        files={".pi/agent/models.json": json.dumps(settings)},
    )


def cline(at: Setting) -> Launch:
    provider = {"provider": "openai-compatible", "apiKey": KEY, "model": "gpt-x", "baseUrl": at.v1}
    entry = {"settings": provider, "updatedAt": "2026-01-01T00:00:00.000Z", "tokenSource": "manual"}
    settings = {"version": 1, "lastUsedProvider": "openai-compatible", "modes": {}, "providers": {"openai-compatible": entry}}  # fmt: skip
    return Launch(
        command=[at.node(".bin/cline"), "--provider", "openai-compatible", "--model", "gpt-x", PROMPT],
        files={".cline/data/settings/providers.json": json.dumps(settings)},
    )


def aider(at: Setting) -> Launch:
    flags = "--yes-always --no-git --no-check-update --no-analytics --no-show-model-warnings --no-pretty --edit-format whole --model openai/gpt-x"
    command = [str(at.packages / "bin/aider"), *flags.split(), "--message", PROMPT, "ran.txt"]
    return Launch(command=command, env={"OPENAI_API_KEY": KEY, "OPENAI_API_BASE": at.v1})


def mini_swe_agent(at: Setting) -> Launch:
    command = [str(at.packages / "bin/mini"), "-y", "--exit-immediately", "-m", "openai/gpt-x", "-t", PROMPT, "-l", "0"]
    env = {"OPENAI_API_KEY": KEY, "OPENAI_API_BASE": at.v1, "MSWEA_CONFIGURED": "true", "MSWEA_COST_TRACKING": "ignore_errors", "MSWEA_SILENT_STARTUP": "1"}  # fmt: skip
    return Launch(command=command, env=env)


def llm(at: Setting) -> Launch:
    model = f"- model_id: up\n  model_name: gpt-x\n  api_base: {at.v1}\n  api_key_name: up\n  supports_tools: true\n"
    function = 'def append_row(row: str) -> str:\n    "Append a row."\n    open("ran.txt", "a").write(row + "\\n")\n    return "appended"\n'
    command = [str(at.packages / "bin/llm"), "-m", "up", "--functions", str(at.home / "tool.py"), PROMPT]
    files = {"llm/extra-openai-models.yaml": model, "llm/keys.json": json.dumps({"up": KEY}), "tool.py": function}
    return Launch(command=command, env={"LLM_USER_PATH": str(at.home / "llm")}, files=files)


AGENTS: Final[dict[str, Callable[[Setting], Launch]]] = {
    "claude-code": claude_code,
    "codex": codex,
    "gemini-cli": gemini_cli,
    "opencode": opencode,
    "qwen-code": qwen_code,
    "cline": cline,
    "pi": pi,
    "aider": aider,
    "mini-swe-agent": mini_swe_agent,
    "llm": llm,
}
