"""Install hooks into an agent's settings file, and uninstall them, restoring the file byte for byte."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rung.core.domain.errors import ConfigError
from rung.hooks.agent_formats import EVENTS
from rung.hooks.data_dir import interruptions_dir, make_private

MARKER: Final = ": rung-hook;"
ENTRY_PATH: Final = str(Path(__file__).with_name("entry.py"))
ASK_SCRIPT: Final = str(Path(__file__).with_name("ask.sh"))
HOOK_TIMEOUT_SECONDS: Final = 10
END_TIMEOUT_SECONDS: Final = 3  # Codex allows no more
STOP_TIMEOUT_SECONDS: Final = 120  # the checks that the project configures run in this event
AGENTS: Final = ("claude-code", "codex", "gemini-cli")


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallTarget:
    """An agent's settings file, and the directory that keeps its original content."""

    agent: str
    settings: Path
    data_dir: Path
    port: int = 0  # of `rung hooks serve --http`; 0: the server's Unix socket

    @property
    def record_path(self) -> Path:
        """Return the path of the installation record: the original bytes, and the digest of what was written."""
        name = hashlib.sha256(str(self.settings).encode()).hexdigest()[:16]
        return self.data_dir / "installed" / f"{self.agent}-{name}.json"


def settings_path(agent: str, *, user: bool, root: Path) -> Path:
    """Return the settings file in which the agent looks for hooks; for a project, the unshared file if there is one."""
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


def install(target: InstallTarget) -> list[str]:
    """Add our hooks to the settings, and return the names of their events. Idempotent."""
    before = _original_bytes(target)
    table = _parse(target.settings, before)
    ours = hooks_for(target)
    hooks = table.setdefault("hooks", {})
    if not isinstance(hooks, dict):
        raise ConfigError(f"{target.settings}: hooks", hooks, "an object")
    for event, group in ours.items():
        groups = hooks.setdefault(event, [])
        if not isinstance(groups, list):
            raise ConfigError(f"{target.settings}: hooks.{event}", groups, "a list")
        groups.append(group)
    after = json.dumps(table, indent=2, ensure_ascii=False).encode() + b"\n"
    make_private(str(target.data_dir))
    Path(interruptions_dir(str(target.data_dir))).mkdir(exist_ok=True, mode=0o700)
    record = {
        "settings": str(target.settings),
        "before": None if before is None else base64.b64encode(before).decode(),
        "wrote": hashlib.sha256(after).hexdigest(),
    }
    _write(target.record_path, json.dumps(record).encode())  # before the settings, so that the change can be undone
    _write(target.settings, after)
    return list(ours)


def uninstall(target: InstallTarget) -> str:
    """Remove our hooks. Returns `restored` (byte for byte), `removed` (the file was edited since) or `absent`."""
    record, now = _read_record(target), _read(target.settings)
    if record is not None and now is not None and hashlib.sha256(now).hexdigest() == record["wrote"]:
        before = record["before"]
        if before is None:
            target.settings.unlink()
        else:
            _write(target.settings, base64.b64decode(before))
        target.record_path.unlink()
        return "restored"
    target.record_path.unlink(missing_ok=True)
    if now is None or MARKER not in now.decode("utf-8", "replace"):
        return "absent"
    _write(target.settings, _without_our_hooks(target.settings, now))
    return "removed"


def is_installed(target: InstallTarget) -> bool:
    """Return whether our hooks are in the settings."""
    now = _read(target.settings)
    return now is not None and MARKER in now.decode("utf-8", "replace")


def hooks_for(target: InstallTarget) -> dict[str, dict[str, Any]]:
    """Return our group of hooks for each event."""
    return {event: _group(target, event, name) for event, name in EVENTS[target.agent].items()}


def _group(target: InstallTarget, event: str, name: str) -> dict[str, Any]:
    seconds = STOP_TIMEOUT_SECONDS if name == "stop" else END_TIMEOUT_SECONDS if name == "end" else HOOK_TIMEOUT_SECONDS
    hook: dict[str, Any] = {
        "type": "command",
        "command": command_for(target, name),
        "timeout": seconds * 1_000 if target.agent == "gemini-cli" else seconds,
    }
    if target.agent == "gemini-cli":
        return {"matcher": "*", "hooks": [{"name": f"rung-{event}", **hook}]}
    return {"hooks": [hook]}


def command_for(target: InstallTarget, name: str) -> str:
    """Return the shell command of a hook. It always exits 0: exit code 2 would block the agent."""
    if name == "broke":  # the agent does not wait for this event: an interpreter would start too late
        folder = shlex.quote(interruptions_dir(str(target.data_dir)))
        return f"{MARKER} cat > {folder}/$$.json 2>/dev/null || true"
    python, entry, data, ask = (
        shlex.quote(one) for one in (sys.executable, ENTRY_PATH, str(target.data_dir), ASK_SCRIPT)
    )
    how = f"{python} -I -S {entry}" if target.port else f"sh {ask} {python} {entry}"
    port = f" {target.port}" if target.port else ""
    return f"{MARKER} test -f {entry} && {how} {target.agent} {data}{port} 2>/dev/null || true"


def _original_bytes(target: InstallTarget) -> bytes | None:
    """Return the settings without our hooks; None if there is no file."""
    now, record = _read(target.settings), _read_record(target)
    if now is None:
        return None
    if record is not None and hashlib.sha256(now).hexdigest() == record["wrote"]:
        return None if record["before"] is None else base64.b64decode(record["before"])
    return _without_our_hooks(target.settings, now) if MARKER in now.decode("utf-8", "replace") else now


def _without_our_hooks(path: Path, now: bytes) -> bytes:
    """Return the settings without our hooks; the rest is unchanged."""
    table = _parse(path, now)
    hooks = table.get("hooks", {})
    for event, groups in list(hooks.items()) if isinstance(hooks, dict) else []:
        others = [kept for group in groups for kept in _others(group)] if isinstance(groups, list) else groups
        if others:
            hooks[event] = others
        else:
            del hooks[event]
    if not hooks:
        table.pop("hooks", None)
    return json.dumps(table, indent=2, ensure_ascii=False).encode() + b"\n"


def _others(group: Any) -> list[Any]:
    """Return a group without our hooks; none if it has no others."""
    if MARKER not in json.dumps(group):
        return [group]
    rows = group.get("hooks") if isinstance(group, dict) else None
    others = [row for row in rows if MARKER not in json.dumps(row)] if isinstance(rows, list) else []
    return [{**group, "hooks": others}] if others else []


def _parse(path: Path, content: bytes | None) -> dict[str, Any]:
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


def _read_record(target: InstallTarget) -> dict[str, Any] | None:
    content = _read(target.record_path)
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
        raise ConfigError(str(path), error.strerror, "a readable file") from None


def _write(path: Path, content: bytes) -> None:
    """Replace a file atomically."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_name(f"{path.name}.{os.getpid()}.new")
        new.write_bytes(content)
        if path.exists():
            new.chmod(path.stat().st_mode & 0o777)
        new.replace(path.resolve() if path.is_symlink() else path)
    except OSError as error:
        raise ConfigError(str(path), error.strerror, "a writable path") from None
