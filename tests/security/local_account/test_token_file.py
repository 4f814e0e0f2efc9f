"""Another account on this machine can neither choose nor learn the administrator's token."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from rung.core.domain.errors import StoreError
from rung.service.token_file import admin_token
from rung.store import open_journal
from tests.store.rights import bound

if TYPE_CHECKING:
    from pathlib import Path

PLANTED = "a-token-that-the-attacker-knows"


@pytest.mark.parametrize("mode", [0o666, 0o644, 0o620, 0o604])
def test_a_file_that_others_could_write_or_read(tmp_path: Path, mode: int) -> None:
    """A token file that others can read or write is refused, and the message says what to do."""
    file = tmp_path / "journal.token"
    file.write_text(PLANTED)
    file.chmod(mode)
    with pytest.raises(StoreError, match=f"mode {mode:04o}.*delete it"):
        admin_token(None, file)
    assert admin_token("x" * 20, file) == "x" * 20


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_owner(tmp_path: Path) -> None:
    """A token file of another account is refused, however private its mode."""
    file = tmp_path / "journal.token"
    file.write_text(PLANTED)
    file.chmod(0o600)
    os.chown(file, 12_345, -1)
    with pytest.raises(StoreError, match="belongs to user 12345"):
        admin_token(None, file)


def test_what_is_no_file(tmp_path: Path) -> None:
    """A link, a pipe, a directory and a file without a token are refused in one line; none is followed or filled."""
    target, link, pipe, folder, empty = (tmp_path / name for name in ("target", "link", "pipe", "folder", "empty"))
    target.write_text(PLANTED)
    target.chmod(0o600)
    link.symlink_to(target)
    os.mkfifo(pipe, 0o600)
    folder.mkdir()
    empty.touch(0o600)
    for wrong in (link, pipe, folder, empty):
        with pytest.raises(StoreError, match=wrong.name):
            admin_token(None, wrong)
    assert target.read_text() == PLANTED
    link.unlink()
    link.symlink_to(tmp_path / "made-through-the-link")
    with pytest.raises(StoreError):
        admin_token(None, link)
    assert not (tmp_path / "made-through-the-link").exists()


def test_a_read_only_directory(tmp_path: Path) -> None:
    """`rung serve` over a journal in a read-only directory says in one line why it cannot start."""
    path = tmp_path / "sealed" / "journal.db"
    with open_journal(path):
        pass
    path.parent.chmod(0o500)
    done = bound("-m", "rung.cli.main", "serve", "--port", "0", "--no-gateway", "--journal", path)
    path.parent.chmod(0o700)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
    assert "--token" in done.stderr.splitlines()[-1]
    assert "Permission denied" in done.stderr.splitlines()[-1]
