"""What the loader of a discovered `rung.toml` does, in this process."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from rung.core.domain.errors import FileError
from rung.wiring import trust
from rung.wiring.settings_file import MAX_FOUND_BYTES, SettingsFile, find
from rung.wiring.trust import Decision

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COMMAND = 'journal = "x.db"\n[stop]\ncheck = "make test"\n'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory with a settings file that nobody has decided about; decisions go to a directory of the test."""
    monkeypatch.setenv(trust.STATE_VARIABLE, str(tmp_path / "state"))
    found = tmp_path / "project"
    found.mkdir()
    (found / "rung.toml").write_text(COMMAND)
    before = trust.ask, trust.notify
    yield found
    trust.use_terminal(*before)


@pytest.mark.parametrize("answer", [Decision.TRUSTED, Decision.DENIED])
def test_the_answer_is_kept(project: Path, answer: Decision) -> None:
    """The user is asked once about a content; the answer decides what the file may set."""
    asked: list[Path] = []

    def ask(file: SettingsFile) -> Decision:
        asked.append(file.path)
        return answer

    trust.use_terminal(ask, lambda _: None)
    for _ in range(2):
        file = find(project)
        assert file is not None
        assert ("journal" in file.table) == (answer is Decision.TRUSTED)
    assert len(asked) == 1


def test_nobody_to_ask(project: Path) -> None:
    """Without a terminal the file is policy data alone, which is told once, and a caller that needs more fails."""
    told: list[str] = []
    trust.use_terminal(lambda _: None, told.append)
    for _ in range(2):
        file = find(project)
        assert file is not None
        assert "journal" not in file.table
    assert len(told) == 1
    assert "rung trust" in told[0]
    with pytest.raises(FileError, match="is not trusted"):
        find(project, needs=("stop",))
    assert trust.known_paths() == [project / "rung.toml"]


def test_decisions_that_cannot_be_stored(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that cannot be stored holds for this call, and that is told."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(trust.STATE_VARIABLE, str(tmp_path / "file"))
    told: list[str] = []
    trust.use_terminal(lambda _: Decision.TRUSTED, told.append)
    file = find(project)
    assert file is not None
    assert "journal" in file.table
    assert "cannot be written" in told[0]


def test_what_is_no_settings_file(project: Path) -> None:
    """A device, a file that is too large and a missing file are not read."""
    settings = project / "rung.toml"
    settings.write_bytes(b"#" * (MAX_FOUND_BYTES + 1))
    with pytest.raises(FileError, match="is larger than"):
        find(project)
    settings.unlink()
    assert find(project) is None
    os.mkfifo(settings)
    with pytest.raises(FileError, match="is not a regular file"):
        find(project)
