"""Points known agents at an address on this machine: by environment variables, flags, or a copy of their own settings."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.errors import ConfigError
from rung.wires.wire_json import object_field

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

# Programs that run a package by its name: the agent is the first word after their flags.
_RUNNERS: Final = frozenset({"npx", "pnpx", "bunx", "uvx"})
_PACKAGES: Final = {
    "@openai/codex": "codex",
    "@mariozechner/pi-coding-agent": "pi",
    "@qwen-code/qwen-code": "qwen",
    "@google/gemini-cli": "gemini",
    "opencode-ai": "opencode",
}
# Agents that no setting of their own points at another address.
_UNREACHABLE: Final = {
    "amp": "it talks to its own service only; run it without rung",
    "cursor-agent": "it talks to its own service only; run it without rung",
    "copilot": "it talks to its own service only; run it without rung",
}
_GOOGLE_LOGINS: Final = ("GOOGLE_GENAI_USE_GCA", "GOOGLE_GENAI_USE_VERTEXAI")
_CODEX_BY_HAND: Final = (
    "give codex a provider of its own: [model_providers.rung] with base_url and env_key in config.toml, "
    'model_provider = "rung"'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PointedCommand:
    """A command that uses an address: its words, and the variables to add to its environment."""

    words: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)


def endpoint_variables(url: str) -> dict[str, str]:
    """Return the variables that SDKs and most agents read; OPENAI_API_BASE is LlamaIndex's and LiteLLM's."""
    return {
        "ANTHROPIC_BASE_URL": url,
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_API_BASE": f"{url}/v1",
        "GOOGLE_GEMINI_BASE_URL": url,
    }


def point_command(words: Sequence[str], url: str, env: Mapping[str, str], scratch: Path) -> PointedCommand:
    """Return the command so that it uses `url`; `scratch` holds files for it. Refuse an agent that would go elsewhere."""
    name, place = find_agent(words)
    if name in _UNREACHABLE:
        raise ConfigError("COMMAND", name, f"an agent that can be pointed at another address: {_UNREACHABLE[name]}")
    variables = endpoint_variables(url)
    pointed = PointedCommand(words=tuple(words))
    if name in _AGENTS:
        at = _Pointing(tuple(words[: place + 1]), tuple(words[place + 1 :]), url, {**env, **variables}, scratch)
        pointed = _AGENTS[name](at)
    return PointedCommand(words=pointed.words, env={**variables, **pointed.env})


def find_agent(words: Sequence[str]) -> tuple[str, int]:
    """Return the name of the program that a command runs, and its place in the command."""
    place = 0
    if Path(words[0]).name in _RUNNERS:
        place = next((n for n, word in enumerate(words) if n and not word.startswith("-")), 0)
    word = words[place]
    package = word[:1] + word[1:].partition("@")[0]  # without its version
    return _PACKAGES.get(package) or Path(package).name, place


@dataclass(frozen=True, slots=True)
class _Pointing:
    program: tuple[str, ...]
    arguments: tuple[str, ...]
    url: str
    env: Mapping[str, str]
    scratch: Path

    @property
    def home(self) -> Path:
        return Path(self.env.get("HOME") or Path.home())


def _codex(at: _Pointing) -> PointedCommand:
    """Override the provider with -c: Codex reads no variable for it."""
    for word in at.arguments:
        if word.startswith(("-p", "--profile", "--oss")) or "model_provider" in word:
            raise ConfigError("COMMAND", f"codex {word}", f"codex without a provider or profile; or {_CODEX_BY_HAND}")
    file = Path(at.env.get("CODEX_HOME") or at.home / ".codex") / "config.toml"
    if "profile" in _read(file, tomllib.loads):
        raise ConfigError("COMMAND", "codex", f"codex without `profile` in {file}; or {_CODEX_BY_HAND}")
    if not at.env.get("OPENAI_API_KEY"):
        allowed = "started with OPENAI_API_KEY in the environment: codex uses its login only with its own provider"
        raise ConfigError("COMMAND", "codex", allowed)
    name = "rung"
    provider = f'{{name="{name}",base_url="{at.url}/v1",wire_api="responses",env_key="OPENAI_API_KEY"}}'
    flags = ("-c", f"model_providers.{name}={provider}", "-c", f'model_provider="{name}"')
    return PointedCommand(words=(*at.program, *flags, *at.arguments))


def _opencode(at: _Pointing) -> PointedCommand:
    """Add the addresses of both providers to the settings that a variable holds."""
    variable = "OPENCODE_CONFIG_CONTENT"
    settings = json.loads(at.env.get(variable) or "{}")
    providers = settings.setdefault("provider", {})
    for name in ("anthropic", "openai"):
        providers.setdefault(name, {}).setdefault("options", {})["baseURL"] = f"{at.url}/v1"
    return PointedCommand(words=(*at.program, *at.arguments), env={variable: json.dumps(settings)})


def _pi(at: _Pointing) -> PointedCommand:
    """Give it a copy of its settings directory whose models.json names the addresses."""
    variable = "PI_CODING_AGENT_DIR"
    directory = Path(at.env.get(variable) or at.home / ".pi/agent")
    models = _read(directory / "models.json", json.loads)
    providers = models.setdefault("providers", {})
    for name, url in (("anthropic", at.url), ("openai", f"{at.url}/v1")):
        providers.setdefault(name, {})["baseUrl"] = url
    copy = _overlay(directory, at.scratch / "pi", {"models.json": json.dumps(models)})
    return PointedCommand(words=(*at.program, *at.arguments), env={variable: str(copy)})


def _cline(at: _Pointing) -> PointedCommand:
    """Give it a copy of its data directory whose providers have the addresses."""
    directory = at.home / ".cline/data"
    known = _read(directory / "settings/providers.json", json.loads)
    entries = known.get("providers") or {}
    urls = {"anthropic": at.url, "openai-native": f"{at.url}/v1", "openai-compatible": f"{at.url}/v1"}
    used = known.get("lastUsedProvider")
    if used not in urls or any(word.startswith(("--data-dir", "--config")) for word in at.arguments):
        raise ConfigError(
            "COMMAND", "cline",
            f"cline with one of {', '.join(urls)}, and its default directories: cline auth -p openai-compatible -k KEY -m MODEL",
        )  # fmt: skip
    for name, url in urls.items():
        if name in entries:
            entries[name].setdefault("settings", {})["baseUrl"] = url
    settings = _overlay(directory / "settings", at.scratch / "cline-settings", {"providers.json": json.dumps(known)})
    copy = _overlay(directory, at.scratch / "cline", {})
    (copy / "settings").unlink(missing_ok=True)
    (copy / "settings").symlink_to(settings)
    return PointedCommand(words=(*at.program, "--data-dir", str(copy), *at.arguments))


def _qwen(at: _Pointing) -> PointedCommand:
    """Name the address by a flag, which precedes its settings."""
    if any(word.startswith("--openai-base-url") for word in at.arguments):
        raise ConfigError("COMMAND", "qwen --openai-base-url", "qwen without an address of its own")
    flags = ("--auth-type", "openai", "--openai-base-url", f"{at.url}/v1")
    return PointedCommand(words=(*at.program, *flags, *at.arguments))


def _gemini(at: _Pointing) -> PointedCommand:
    """Refuse a login with Google: its requests go to another service, which the variable does not move."""
    settings = _read(at.home / ".gemini/settings.json", json.loads)
    auth = object_field(object_field(settings, "security"), "auth").get("selectedType")
    by_variable = next((name for name in _GOOGLE_LOGINS if at.env.get(name) == "true"), "")
    if auth not in (None, "gemini-api-key", "gateway") or (auth is None and by_variable):
        raise ConfigError(
            "COMMAND", f"gemini with {auth or by_variable}", "gemini with an API key: GEMINI_API_KEY, and /auth"
        )
    return PointedCommand(words=(*at.program, *at.arguments))


_AGENTS: Final[Mapping[str, Callable[[_Pointing], PointedCommand]]] = {
    "codex": _codex,
    "opencode": _opencode,
    "pi": _pi,
    "cline": _cline,
    "qwen": _qwen,
    "gemini": _gemini,
}


def _read(file: Path, parse: Callable[[str], Any]) -> dict[str, Any]:
    """Return the settings in a file; none if there is no such file."""
    try:
        found = parse(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigError("COMMAND", str(file), f"a readable settings file ({error})") from None
    return dict(found)


def _overlay(directory: Path, copy: Path, files: Mapping[str, str]) -> Path:
    """Make a directory of links to the entries of another one, beside these files."""
    copy.mkdir(mode=0o700, parents=True, exist_ok=True)
    for entry in directory.iterdir() if directory.is_dir() else ():
        if entry.name not in files and not (copy / entry.name).is_symlink():
            (copy / entry.name).symlink_to(entry)
    for name, content in files.items():
        (copy / name).write_text(content, encoding="utf-8")
        (copy / name).chmod(0o600)
    return copy
