"""The real Codex and Gemini CLI with our hooks in their settings: `make agents` installs both and runs this."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rung.hooks.install import InstallTarget, install, uninstall
from tests.other_agents.other_rig import PREFIX, program

BEFORE = '{\n  "security": {"auth": {"selectedType": "gemini-api-key"}},\n  "general": {"disableAutoUpdate": true}\n}'


def run(agent: str, root: Path) -> dict[str, Any]:
    if program(agent) is None:
        pytest.fail(f"{agent} is not installed; {PREFIX} says where it is: make agents")
    done = subprocess.run(
        [sys.executable, "-m", "tests.other_agents.other_rig"],
        input=json.dumps({"agent": agent, "root": str(root)}), capture_output=True, text=True, timeout=200, check=True,
        cwd=Path(__file__).parents[2],
    )  # fmt: skip
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def place(agent: str, settings: str, root: Path) -> InstallTarget:
    (root / "project").mkdir()
    path = root / "home" / settings
    path.parent.mkdir(parents=True)
    return InstallTarget(agent=agent, settings=path, data_dir=root / "hooks")


def first(heard: list[str], words: str) -> int | None:
    return next((number for number, text in enumerate(heard) if words in text), None)


def test_codex(tmp_path: Path) -> None:
    """Told at three and five, denied after eight; it ends well, and its settings are as they were."""
    ours = place("codex", ".codex/hooks.json", tmp_path)
    install(ours)
    done = run("codex", tmp_path)
    heard = done["heard"]
    assert done["exit"] == 0, done
    assert first(heard, "STOP and make a new plan") == 3
    assert first(heard, "entirely different tool or method") == 5
    assert first(heard, "Denied by rung") == 9
    assert not (tmp_path / "hooks" / "crash.log").exists()
    assert uninstall(ours) == "restored"
    assert not ours.settings.exists()


def test_gemini_cli(tmp_path: Path) -> None:
    """Told at three; at five its own detector takes over. Its settings are as they were, to the byte."""
    ours = place("gemini-cli", ".gemini/settings.json", tmp_path)
    ours.settings.write_text(BEFORE)
    install(ours)
    done = run("gemini", tmp_path)
    heard = done["heard"]
    assert done["exit"] == 0, done
    assert first(heard, "STOP and make a new plan") == 3
    assert "compacted" not in done["errors"]
    assert not (tmp_path / "hooks" / "crash.log").exists()
    written = json.loads(ours.settings.read_text())
    assert written["security"] == json.loads(BEFORE)["security"]
    if uninstall(ours) == "restored":
        assert ours.settings.read_text() == BEFORE
    else:  # it writes into its own settings
        assert "rung" not in ours.settings.read_text()
