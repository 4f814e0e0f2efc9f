"""Checks of coding agents: which are installed, which have our hooks, and which keys the environment has."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rung.cli.doctor.finding import DoctorFinding, State
from rung.core.domain.errors import RungError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rung.hooks.install import InstallTarget

VERSION_SECONDS: Final = 0.8  # an agent that starts slower is shown without its version
AGENT_PROGRAMS: Final = (
    "claude",
    "codex",
    "gemini",
    "opencode",
    "qwen",
    "pi",
    "cline",
    "amp",
    "copilot",
    "cursor-agent",
)
KEY_VARIABLES: Final = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "OPENAI_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "AZURE_OPENAI_API_KEY",
    "AWS_ACCESS_KEY_ID",
    "RUNG_TOKEN",
    "RUNG_ADMIN_TOKEN",
)
_VERSION: Final = re.compile(r"\d+\.\d+[\w.+-]*")
_MAX_VERSION_CHARS: Final = 40


def check_agents() -> Iterator[DoctorFinding]:
    """Yield the agents in PATH, with their versions."""
    places = {name: place for name in AGENT_PROGRAMS if (place := shutil.which(name)) is not None}
    if not places:
        detail = f"none found in PATH (looked for {', '.join(AGENT_PROGRAMS[:4])} and others)"
        yield DoctorFinding(name="agents", state=State.INFO, detail=detail)
    versions: dict[str, str] = {}
    threads = [
        threading.Thread(target=_ask_version, args=(name, place, versions), daemon=True)
        for name, place in places.items()
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(VERSION_SECONDS + 0.5)
    for name, place in places.items():
        version = versions.get(name, "")
        facts = {"path": place, "version": version or None}
        yield DoctorFinding(name=name, state=State.OK, detail=f"{version or 'version unknown'} at {place}", facts=facts)


def _ask_version(name: str, place: str, versions: dict[str, str]) -> None:
    try:
        done = subprocess.run(  # noqa: S603  # a program of the user's PATH
            [place, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=VERSION_SECONDS,
            check=False,
            start_new_session=True,
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return
    found = _VERSION.search(done.stdout.decode("utf-8", "replace"))
    versions[name] = found[0][:_MAX_VERSION_CHARS] if found else ""


def check_hooks() -> Iterator[DoctorFinding]:
    """Yield the agents that have our hooks, and whether these can run."""
    from rung.hooks.data_dir import default_data_dir
    from rung.hooks.install import AGENTS, is_installed, settings_path
    from rung.hooks.install import InstallTarget as Target
    from rung.hooks.resident_client import connect

    data_dir = default_data_dir()
    root = Path.cwd()
    has_any = False
    for agent in AGENTS:
        for user in (True, False):
            settings = settings_path(agent, user=user, root=root)
            target = Target(agent=agent, settings=settings, data_dir=Path(data_dir))
            try:
                installed = is_installed(target)
            except RungError as error:
                yield DoctorFinding(name=agent, state=State.WARNING, detail=str(error))
                continue
            if installed:
                has_any = True
                yield _hook(target, user=user)
    if not has_any:
        detail = "not installed in any coding agent; for example: rung hooks install claude-code"
        yield DoctorFinding(name="hooks", state=State.INFO, detail=detail)
        return
    link = connect(data_dir)
    if link is None:
        detail = (
            "no resident process: each hook starts an interpreter; `rung serve` or `rung hooks serve` answers faster"
        )
        yield DoctorFinding(name="server", state=State.INFO, detail=detail)
    else:
        link.close()
        yield DoctorFinding(name="server", state=State.OK, detail="a resident process answers the hooks")
    yield from _crashes(Path(data_dir) / "crash.log")


def _hook(target: InstallTarget, *, user: bool) -> DoctorFinding:
    from rung.hooks.install import ENTRY_PATH

    scope = "user" if user else "project"
    facts = {"settings": str(target.settings), "scope": scope}
    text = target.settings.read_text("utf-8", "replace")
    if ENTRY_PATH in text:
        detail = f"installed ({scope}: {target.settings})"
        return DoctorFinding(name=target.agent, state=State.OK, detail=detail, facts=facts)
    detail = f"installed by another installation of Rung ({scope}: {target.settings})"
    fix = f"rung hooks install {target.agent}{' --user' if user else ''}"
    return DoctorFinding(name=target.agent, state=State.WARNING, detail=detail, fix=fix, facts=facts)


def _crashes(log: Path) -> Iterator[DoctorFinding]:
    try:
        count = len(log.read_bytes().splitlines())
    except OSError:
        return
    if count:
        detail = f"{count} failed {'run' if count == 1 else 'runs'} in {log}"
        yield DoctorFinding(name="crashes", state=State.WARNING, detail=detail, facts={"count": count, "log": str(log)})


def check_keys() -> Iterator[DoctorFinding]:
    """Yield the names of the keys that the environment has. Their values are never read into a finding."""
    present = [name for name in KEY_VARIABLES if os.environ.get(name)]
    detail = f"set: {', '.join(present)}" if present else "none is set; agents with a login of their own need none"
    yield DoctorFinding(name="keys", state=State.OK if present else State.INFO, detail=detail, facts={"set": present})
