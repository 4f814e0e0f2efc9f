"""Installing hooks merges with other settings, and can be undone byte for byte."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rung.core.domain.errors import ConfigError
from rung.hooks.agent_formats import EVENTS
from rung.hooks.install import AGENTS, MARKER, InstallTarget, install, is_installed, settings_path, uninstall

if TYPE_CHECKING:
    from pathlib import Path

ODD = b'{"model":"x",\n\t"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "mine"}]}]},  "z": "\xc3\xa4"}'


def place(tmp_path: Path, agent: str) -> InstallTarget:
    return InstallTarget(
        agent=agent, settings=settings_path(agent, user=False, root=tmp_path), data_dir=tmp_path / "data"
    )


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("before", [None, ODD, b"", b"{}\n"])
def test_uninstalling_restores_to_the_byte(tmp_path: Path, agent: str, before: bytes | None) -> None:
    """After install (even twice) and uninstall, the settings have the same bytes as before."""
    where = place(tmp_path, agent)
    if before is not None:
        where.settings.parent.mkdir(parents=True)
        where.settings.write_bytes(before)
    assert set(install(where)) == set(EVENTS[agent])
    install(where)
    assert is_installed(where)
    table = json.loads(where.settings.read_bytes())
    for event in EVENTS[agent]:
        assert json.dumps(table["hooks"][event]).count(MARKER) == 1
    if before == ODD:
        assert table["model"] == "x"
        assert any(group["hooks"][0]["command"] == "mine" for group in table["hooks"]["Stop"])
    assert uninstall(where) == "restored"
    assert (where.settings.read_bytes() if where.settings.exists() else None) == before
    assert uninstall(where) == "absent"


@pytest.mark.parametrize("agent", AGENTS)
def test_what_was_changed_meanwhile_stays(tmp_path: Path, agent: str) -> None:
    """Settings edited after the installation lose our hooks and nothing else."""
    where = place(tmp_path, agent)
    install(where)
    table = json.loads(where.settings.read_bytes())
    table["added"] = 1
    where.settings.write_text(json.dumps(table))
    assert uninstall(where) == "removed"
    assert json.loads(where.settings.read_bytes()) == {"added": 1}


@pytest.mark.parametrize(
    "content", [b"// a comment\n{}", b"[1]", b'{"hooks": []}', b'{"hooks": {"Stop": 1, "AfterAgent": 1}}']
)
def test_settings_that_cannot_be_merged_are_left_alone(tmp_path: Path, content: bytes) -> None:
    """Invalid settings are an error that names the file, and are not changed."""
    for agent in AGENTS:
        where = place(tmp_path / agent, agent)
        where.settings.parent.mkdir(parents=True)
        where.settings.write_bytes(content)
        with pytest.raises(ConfigError, match=r"settings|hooks"):
            install(where)
        assert where.settings.read_bytes() == content


def test_the_commands(tmp_path: Path) -> None:
    """`rung hooks` installs, shows status and uninstalls; an unknown agent is exit code 2."""

    def rung(*arguments: str) -> subprocess.CompletedProcess[str]:
        env = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "RUNG_HOOKS": str(tmp_path / "hooks")}
        command = [sys.executable, "-m", "rung", "hooks", *arguments]
        return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)

    assert rung("install", "nobody").returncode == 2
    assert rung("install", "codex", "--user").returncode == 0
    assert (tmp_path / ".codex" / "hooks.json").exists()
    assert "codex        user     installed" in rung("status").stdout
    assert "byte for byte" in rung("uninstall", "codex", "--user").stdout
    assert not (tmp_path / ".codex" / "hooks.json").exists()


def test_a_users_hook_in_our_group_stays(tmp_path: Path) -> None:
    """Uninstalling removes our hooks from a group, and leaves one that the user added to it."""
    where = InstallTarget(agent="claude-code", settings=tmp_path / "s.json", data_dir=tmp_path / "hooks")
    install(where)
    table = json.loads(where.settings.read_text())
    own = {"type": "command", "command": "mine"}
    table["hooks"]["Stop"][0]["hooks"].append(own)
    where.settings.write_text(json.dumps(table))
    assert uninstall(where) == "removed"
    assert json.loads(where.settings.read_text()) == {"hooks": {"Stop": [{"hooks": [own]}]}}
