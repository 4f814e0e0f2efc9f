"""Sealed texts of a journal, and the key file they need."""

from __future__ import annotations

from multiprocessing.pool import ThreadPool
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rung.core.domain.errors import ConfigError, SealedElsewhere, StoreDamaged, StoreError
from rung.store.sealing import KEY_VARIABLE, JournalKey, key_file

if TYPE_CHECKING:
    from pathlib import Path

SECRET = '{"token":"ghp_' + "a1B2c3D4e5" * 3 + 'f6G7h8"}'


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An account without a key."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    return tmp_path


def test_only_secrets_are_sealed() -> None:
    """A text without a secret stays readable and needs no key; one with a secret is sealed, and comes back whole."""
    key = JournalKey()
    assert key.protect('{"value":42}', "here") == '{"value":42}'
    assert key.reveal('{"value":42}', "here") == '{"value":42}'
    assert not key_file().exists()
    stored = key.protect(SECRET, "here")
    assert stored.startswith("sealed:1:")
    assert SECRET[10:20] not in stored
    assert JournalKey().reveal(stored, "here") == SECRET
    assert key_file().stat().st_mode & 0o777 == 0o600


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters()), st.text())
def test_every_text_comes_back(text: str, place: str) -> None:
    """Any text, also with lone surrogates, comes back from its seal; two seals of one text differ."""
    key = JournalKey()
    sealed = key.seal(text, place)
    assert sealed.isascii()
    assert key.unseal(sealed, place) == text
    assert key.seal(text, place) != sealed


def test_another_key() -> None:
    """A text that was sealed under another key is refused in one sentence that says what to do."""
    sealed = JournalKey().seal("x", "run 'r', result")
    key_file().unlink()
    with pytest.raises(SealedElsewhere, match=r"run 'r', result is sealed under another key: .*RUNG_JOURNAL_KEY"):
        JournalKey().unseal(sealed, "run 'r', result")
    assert not key_file().exists()
    JournalKey().seal("y", "there")
    with pytest.raises(SealedElsewhere):
        JournalKey().unseal(sealed, "run 'r', result")


def test_a_changed_or_moved_text() -> None:
    """A seal is bound to its place and to every byte."""
    key = JournalKey()
    sealed = key.seal("a text", "here")
    for stored, place in (
        (sealed, "there"),
        (sealed[:-8] + "AAAAAAA=", "here"),
        (sealed[:40], "here"),
        (sealed[:60] + "é", "here"),
    ):
        with pytest.raises(StoreDamaged, match="was changed, or moved"):
            key.unseal(stored, place)


def test_a_key_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Machines that share a journal share the key by a variable; a short one is refused."""
    monkeypatch.setenv(KEY_VARIABLE, "a key for all our machines")
    sealed = JournalKey().seal("x", "here")
    assert JournalKey().unseal(sealed, "here") == "x"
    assert not key_file().exists()
    monkeypatch.setenv(KEY_VARIABLE, "short")
    with pytest.raises(ConfigError, match="at least 16"):
        JournalKey().seal("x", "here")


def test_bad_key_files(home: Path) -> None:
    """A key that others can read, or that is damaged, is not used and not replaced."""
    sealed = JournalKey().seal("x", "here")
    secret = key_file().read_text()
    key_file().chmod(0o644)
    with pytest.raises(StoreError, match="nobody else may read it"):
        JournalKey().unseal(sealed, "here")
    key_file().chmod(0o600)
    key_file().write_text("abc")
    with pytest.raises(StoreError, match="damaged"):
        JournalKey().seal("x", "here")
    key_file().write_text(secret)
    assert JournalKey().unseal(sealed, "here") == "x"
    key_file().unlink()
    key_file().mkdir()
    with pytest.raises(StoreError, match="cannot be read"):
        JournalKey().seal("x", "here")


def test_a_key_that_cannot_be_stored(home: Path) -> None:
    """Without a place for the key, the error names the variable."""
    (home / "rung").write_text("a file where the directory should be")
    with pytest.raises(StoreError, match=f"cannot be read: .*{KEY_VARIABLE}"):
        JournalKey().seal("x", "here")
    (home / "rung").unlink()
    (home / "rung").symlink_to(home / "nowhere")
    with pytest.raises(StoreError, match=f"cannot be stored: .*{KEY_VARIABLE}"):
        JournalKey().seal("x", "here")


def test_many_begin_at_once() -> None:
    """Threads or processes that need the first key at the same moment end up with one."""
    with ThreadPool(8) as pool:
        sealed = pool.map(lambda n: JournalKey().seal(f"text {n}", "here"), range(40))
    key = JournalKey()
    assert [key.unseal(text, "here") for text in sealed] == [f"text {n}" for n in range(40)]
    assert [file.name for file in key_file().parent.iterdir()] == ["journal.key"]
