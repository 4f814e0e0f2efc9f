"""Known agents are pointed at an address by their own settings; the others by environment variables, or refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from rung.cli.agent_endpoints import find_agent, point_command
from rung.core.domain.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

URL = "http://127.0.0.1:8484"


def point(tmp_path: Path, *words: str, **env: str) -> Any:
    """Point a command whose home is empty but for what a test put there."""
    home, scratch = tmp_path / "home", tmp_path / "scratch"
    home.mkdir(exist_ok=True)
    scratch.mkdir(exist_ok=True)
    return point_command(words, URL, {"HOME": str(home), "OPENAI_API_KEY": "k", **env}, scratch)


def write(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))


def test_any_command_gets_the_variables(tmp_path: Path) -> None:
    """A program that is not known keeps its words; LlamaIndex and LiteLLM read OPENAI_API_BASE."""
    found = point(tmp_path, "python", "agent.py")
    assert found.words == ("python", "agent.py")
    assert found.env == {
        "ANTHROPIC_BASE_URL": URL,
        "OPENAI_BASE_URL": URL + "/v1",
        "OPENAI_API_BASE": URL + "/v1",
        "GOOGLE_GEMINI_BASE_URL": URL,
    }


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["/opt/bin/codex", "exec"], "codex"),
        (["npx", "-y", "@openai/codex@0.166.0", "exec"], "codex"),
        (["npx", "opencode-ai", "run"], "opencode"),
        (["uvx", "aider"], "aider"),
        (["npx"], "npx"),
    ],
)
def test_the_agent_of_a_command_is_found(words: list[str], name: str) -> None:
    """An agent is known by its program, or by the package that a runner such as npx starts."""
    assert find_agent(words)[0] == name


def test_codex_gets_a_provider(tmp_path: Path) -> None:
    """Codex reads no variable for its address: flags before its arguments define a provider and choose it."""
    found = point(tmp_path, "codex", "exec", "do it")
    assert found.words[0] == "codex"
    assert found.words[-2:] == ("exec", "do it")
    assert f'base_url="{URL}/v1"' in found.words[2]
    assert found.words[3:5] == ("-c", 'model_provider="rung"')


@pytest.mark.parametrize("word", ["--profile=work", "-p", "--oss", "-cmodel_provider=azure"])
def test_codex_with_another_provider_is_refused(tmp_path: Path, word: str) -> None:
    """A flag that names another provider would pass the gateway by; the error says what to do by hand."""
    with pytest.raises(ConfigError, match=r"config\.toml"):
        point(tmp_path, "codex", "exec", word)


def test_codex_with_a_profile_in_its_settings_is_refused(tmp_path: Path) -> None:
    """A profile that the settings choose may name another provider."""
    write(tmp_path / "home/.codex/config.toml", 'profile = "work"\n')
    with pytest.raises(ConfigError, match="without `profile`"):
        point(tmp_path, "codex")
    write(tmp_path / "other/config.toml", 'model = "m"\n')
    assert point(tmp_path, "codex", CODEX_HOME=str(tmp_path / "other")).words[0] == "codex"


def test_settings_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    """A settings file that is no TOML ends the command before it runs."""
    write(tmp_path / "home/.codex/config.toml", "profile = ")
    with pytest.raises(ConfigError, match="readable settings file"):
        point(tmp_path, "codex")


def test_codex_without_a_key_is_refused(tmp_path: Path) -> None:
    """Codex's login works with its own provider only."""
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        point(tmp_path, "codex", OPENAI_API_KEY="")


def test_opencode_keeps_its_settings(tmp_path: Path) -> None:
    """The addresses are added to the settings that the environment holds."""
    found = point(
        tmp_path, "opencode", "run", OPENCODE_CONFIG_CONTENT='{"model": "openai/m", "provider": {"openai": {}}}'
    )
    settings = json.loads(found.env["OPENCODE_CONFIG_CONTENT"])
    assert settings["model"] == "openai/m"
    assert {name: each["options"]["baseURL"] for name, each in settings["provider"].items()} == {
        "anthropic": URL + "/v1",
        "openai": URL + "/v1",
    }


def test_pi_gets_a_copy_of_its_settings(tmp_path: Path) -> None:
    """Pi's login and settings are kept as links; its own file is not changed."""
    own = tmp_path / "home/.pi/agent"
    write(own / "auth.json", {"anthropic": "login"})
    write(own / "models.json", {"providers": {"local": {"baseUrl": "x"}}})
    for _ in range(2):
        found = point(tmp_path, "pi", "-p", "hello")
    copy = tmp_path / "scratch/pi"
    assert found.env["PI_CODING_AGENT_DIR"] == str(copy)
    assert json.loads((copy / "auth.json").read_text()) == {"anthropic": "login"}
    models = json.loads((copy / "models.json").read_text())["providers"]
    assert models == {"local": {"baseUrl": "x"}, "anthropic": {"baseUrl": URL}, "openai": {"baseUrl": URL + "/v1"}}
    assert json.loads((own / "models.json").read_text()) == {"providers": {"local": {"baseUrl": "x"}}}


def test_cline_gets_a_copy_of_its_settings(tmp_path: Path) -> None:
    """The provider that cline uses gets the address in a copy of its data."""
    entry = {"settings": {"provider": "openai-native", "apiKey": "k"}}
    settings = {"lastUsedProvider": "openai-native", "providers": {"openai-native": entry}}
    write(tmp_path / "home/.cline/data/settings/providers.json", settings)
    for _ in range(2):
        found = point(tmp_path, "cline", "say hello")
    copy = tmp_path / "scratch/cline"
    assert found.words == ("cline", "--data-dir", str(copy), "say hello")
    pointed = json.loads((copy / "settings/providers.json").read_text())["providers"]["openai-native"]["settings"]
    assert pointed == {"provider": "openai-native", "apiKey": "k", "baseUrl": URL + "/v1"}


@pytest.mark.parametrize("words", [["cline", "say hello"], ["cline", "--data-dir", "x", "say hello"]])
def test_cline_with_another_provider_is_refused(tmp_path: Path, words: list[str]) -> None:
    """Cline's own service, or another directory, cannot be pointed; the error says how to set a provider."""
    with pytest.raises(ConfigError, match="cline auth -p openai-compatible"):
        point(tmp_path, *words)


def test_qwen_gets_a_flag(tmp_path: Path) -> None:
    """Qwen's flag precedes its settings; another address is refused."""
    assert point(tmp_path, "qwen", "-p", "x").words[3:5] == ("--openai-base-url", URL + "/v1")
    with pytest.raises(ConfigError, match="without an address"):
        point(tmp_path, "qwen", "--openai-base-url=http://x")


def test_gemini_gets_a_variable(tmp_path: Path) -> None:
    """Gemini CLI is pointed by a variable if it uses an API key; a login with Google goes elsewhere, and is refused."""
    assert point(tmp_path, "npx", "@google/gemini-cli@latest", "-p", "x").env["GOOGLE_GEMINI_BASE_URL"] == URL
    settings = tmp_path / "home/.gemini/settings.json"
    write(settings, {"security": {"auth": {"selectedType": "gemini-api-key"}}})
    assert point(tmp_path, "gemini").words == ("gemini",)
    write(settings, {"security": {"auth": {"selectedType": "oauth-personal"}}})
    with pytest.raises(ConfigError, match="gemini with an API key"):
        point(tmp_path, "gemini")


@pytest.mark.parametrize("command", [["gateway", "--no-journal", "run"], ["lab", "test"]])
def test_an_agent_that_cannot_be_pointed_is_not_run(tmp_path: Path, command: list[str]) -> None:
    """Amp would go to its provider at real cost: the command ends before it starts, and says why."""
    program = tmp_path / "amp"
    program.write_text("#!/bin/sh\ntouch started\n")
    program.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-m", "rung", *command, "--", str(program), "hello"],
        cwd=tmp_path, env=dict(os.environ), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    assert done.returncode == 2, done
    assert "it talks to its own service only; run it without rung" in done.stderr
    assert not (tmp_path / "started").exists()
