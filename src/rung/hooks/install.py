"""Writing our hooks into an agent's own settings, and taking them out again, to the byte."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rung.core.domain.errors import ConfigError
from rung.hooks.agent_formats import EVENTS
from rung.hooks.data_dir import cut_folder

MARK: Final = ": rung-hook;"
ENTRY: Final = str(Path(__file__).with_name("entry.py"))
ASK: Final = str(Path(__file__).with_name("ask.sh"))
SECONDS: Final = 10
END_SECONDS: Final = 3  # Codex allows no more
STOP_SECONDS: Final = 120  # a check that the project asks for runs there
BY_COMMAND: Final = ("start", "broke")  # which are not posted, or not waited for
AGENTS: Final = ("claude-code", "codex", "gemini-cli")


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallTarget:
    """An agent's settings file, and where we keep what was in it before."""

    agent: str
    settings: Path
    data: Path
    port: int = 0  # of a running service that the agent posts its events to; 0: a command for each

    @property
    def record(self) -> Path:
        """What we know of this file: its bytes before, and what we made of it."""
        name = hashlib.sha256(str(self.settings).encode()).hexdigest()[:16]
        return self.data / "installed" / f"{self.agent}-{name}.json"


def settings_of(agent: str, *, user: bool, root: Path) -> Path:
    """The file in which this agent looks for hooks. A project's own is one that is not shared, where there is one."""
    if agent not in AGENTS:
        raise ConfigError("agent", agent, "one of " + ", ".join(AGENTS))
    home = Path.home()
    if agent == "claude-code":
        own = os.environ.get("CLAUDE_CONFIG_DIR")
        base = Path(own) if own else home / ".claude"
        return base / "settings.json" if user else root / ".claude" / "settings.local.json"
    if agent == "codex":
        own = os.environ.get("CODEX_HOME")
        return (Path(own) if own else home / ".codex") / "hooks.json" if user else root / ".codex" / "hooks.json"
    return (home if user else root) / ".gemini" / "settings.json"


def install(place: InstallTarget) -> list[str]:
    """Write our hooks into the settings; the names of the events they are for. Installed twice is installed once."""
    before = _before(place)
    table = _parsed(place.settings, before)
    ours = hooks_for(place)
    hooks = table.setdefault("hooks", {})
    if not isinstance(hooks, dict):
        raise ConfigError(f"{place.settings}: hooks", hooks, "an object")
    for event, group in ours.items():
        groups = hooks.setdefault(event, [])
        if not isinstance(groups, list):
            raise ConfigError(f"{place.settings}: hooks.{event}", groups, "a list")
        groups.append(group)
    after = json.dumps(table, indent=2, ensure_ascii=False).encode() + b"\n"
    Path(cut_folder(str(place.data))).mkdir(parents=True, exist_ok=True, mode=0o700)
    kept = {
        "settings": str(place.settings),
        "before": None if before is None else base64.b64encode(before).decode(),
        "wrote": hashlib.sha256(after).hexdigest(),
    }
    _write(place.record, json.dumps(kept).encode())  # first: what we change can be put back
    _write(place.settings, after)
    return list(ours)


def uninstall(place: InstallTarget) -> str:
    """Take our hooks out: `restored` to the byte, `removed` from a file that was changed since, or `absent`."""
    record, now = _record(place), _read(place.settings)
    if record is not None and now is not None and hashlib.sha256(now).hexdigest() == record["wrote"]:
        before = record["before"]
        if before is None:
            place.settings.unlink()
        else:
            _write(place.settings, base64.b64decode(before))
        place.record.unlink()
        return "restored"
    place.record.unlink(missing_ok=True)
    if now is None or MARK not in now.decode("utf-8", "replace"):
        return "absent"
    _write(place.settings, _stripped(place.settings, now))
    return "removed"


def installed(place: InstallTarget) -> bool:
    """Are our hooks in the settings?"""
    now = _read(place.settings)
    return now is not None and MARK in now.decode("utf-8", "replace")


def hooks_for(place: InstallTarget) -> dict[str, dict[str, Any]]:
    """By event, the group of hooks that is ours."""
    return {event: _group(place, event, name) for event, name in EVENTS[place.agent].items()}


def _group(place: InstallTarget, event: str, name: str) -> dict[str, Any]:
    seconds = STOP_SECONDS if name == "stop" else END_SECONDS if name == "end" else SECONDS
    if place.port and name not in BY_COMMAND:
        return {
            "hooks": [_posted(place, seconds), {"type": "command", "command": instead(place, name), "timeout": seconds}]
        }
    hook: dict[str, Any] = {
        "type": "command",
        "command": command_for(place, name),
        "timeout": seconds * 1_000 if place.agent == "gemini-cli" else seconds,
    }
    if place.agent == "gemini-cli":
        return {"matcher": "*", "hooks": [{"name": f"rung-{event}", **hook}]}
    return {"hooks": [hook]}


def _posted(place: InstallTarget, seconds: int) -> dict[str, Any]:
    """An event that the agent posts itself: no process is started for it."""
    from rung.hooks.resident_server import token_of

    place.data.mkdir(parents=True, exist_ok=True, mode=0o700)
    headers = {"x-rung-token": token_of(place.data), "x-rung": MARK}
    url = f"http://127.0.0.1:{place.port}/{place.agent}"
    return {"type": "http", "url": url, "headers": headers, "timeout": seconds}


def instead(place: InstallTarget, name: str) -> str:
    """The command for when nobody takes what is posted: where the service runs, it does nothing."""
    there = shlex.quote(str(place.data / "serve"))
    return f'{MARK} read -r port rest 2>/dev/null < {there}; [ "$port" = {place.port} ] || {{ {command_for(place, name)}; }}'


def command_for(place: InstallTarget, name: str) -> str:
    """A line for the agent's shell. Whatever is missing or breaks, it ends with 0: 2 would block the agent."""
    if name == "broke":  # the agent does not wait for this one: a shell is fast enough, an interpreter is not
        folder = shlex.quote(cut_folder(str(place.data)))
        return f"{MARK} cat > {folder}/$$.json 2>/dev/null || true"
    python, entry, data, ask = (shlex.quote(one) for one in (sys.executable, ENTRY, str(place.data), ASK))
    how = f"bash {ask} {python} {entry}" if shutil.which("bash") else f"{python} -I -S {entry}"
    return f"{MARK} test -f {entry} && {how} {place.agent} {data} 2>/dev/null || true"


def _before(place: InstallTarget) -> bytes | None:
    """What was there without us."""
    now, record = _read(place.settings), _record(place)
    if now is None:
        return None
    if record is not None and hashlib.sha256(now).hexdigest() == record["wrote"]:
        return None if record["before"] is None else base64.b64decode(record["before"])
    return _stripped(place.settings, now) if MARK in now.decode("utf-8", "replace") else now


def _stripped(path: Path, now: bytes) -> bytes:
    """The settings without our hooks, for the rest as they are."""
    table = _parsed(path, now)
    hooks = table.get("hooks", {})
    for event, groups in list(hooks.items()) if isinstance(hooks, dict) else []:
        kept = [group for group in groups if MARK not in json.dumps(group)] if isinstance(groups, list) else groups
        if kept:
            hooks[event] = kept
        else:
            del hooks[event]
    if not hooks:
        table.pop("hooks", None)
    return json.dumps(table, indent=2, ensure_ascii=False).encode() + b"\n"


def _parsed(path: Path, content: bytes | None) -> dict[str, Any]:
    if content is None or not content.strip():
        return {}
    try:
        table = json.loads(content.decode("utf-8-sig"))
    except ValueError as error:
        raise ConfigError(
            str(path), f"not JSON: {error}", "a JSON object without comments; nothing was changed"
        ) from None
    if not isinstance(table, dict):
        raise ConfigError(str(path), table, "a JSON object; nothing was changed")
    return table


def _record(place: InstallTarget) -> dict[str, Any] | None:
    content = _read(place.record)
    try:
        table = json.loads(content) if content else None
    except ValueError:
        return None
    return table if isinstance(table, dict) and {"before", "wrote"} <= table.keys() else None


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(str(path), error.strerror, "a file that can be read") from None


def _write(path: Path, content: bytes) -> None:
    """Whole or not at all."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_name(f"{path.name}.{os.getpid()}.new")
        new.write_bytes(content)
        if path.exists():
            new.chmod(path.stat().st_mode & 0o777)
        new.replace(path.resolve() if path.is_symlink() else path)
    except OSError as error:
        raise ConfigError(str(path), error.strerror, "a place that can be written") from None
