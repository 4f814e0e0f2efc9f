"""Stored references: sealed, found again by name, and kept for a bounded time and number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rung
from rung.store.references import KEEP_SECONDS, load_references, name_of, store_references

if TYPE_CHECKING:
    import pytest

ITEM = {"type": "message", "content": [{"type": "output_text", "text": "a private text"}]}


def test_references_are_found_again(url: str) -> None:
    """What stands for an id is found by caller and id after a restart, and its text is not readable in the store."""
    mine, other = name_of("sk-mine", "msg_1"), name_of("sk-other", "msg_1")
    assert mine != other
    assert "sk-mine" not in mine
    with rung.journal(url) as journal:
        store_references(journal, {mine: ITEM, other: None}, at=100.0)
        store_references(journal, {mine: "msg_2"}, at=200.0)
    with rung.journal(url) as journal:
        assert {each.name: each.replacement for each in load_references(journal, 0.0)} == {mine: "msg_2", other: None}
        assert [each.name for each in load_references(journal, 150.0)] == [mine]
        assert [each.name for each in load_references(journal, 0.0, known={mine})] == [other]
        assert "private" not in str(journal.read("SELECT * FROM message"))


def test_old_references_are_deleted(url: str) -> None:
    """References older than providers keep responses are deleted, and the oldest beyond the maximum."""
    with rung.journal(url) as journal:
        store_references(journal, {"a": 1}, at=100.0)
        store_references(journal, {"b": 2}, at=100.0 + 2 * KEEP_SECONDS)
        assert [each.name for each in load_references(journal, 0.0)] == ["b"]
        store_references(journal, {"c": 3}, at=101.0 + 2 * KEEP_SECONDS, most=2)
        store_references(journal, {"d": 4}, at=102.0 + 2 * KEEP_SECONDS, most=2)
        assert [each.name for each in load_references(journal, 0.0)] == ["c", "d"]


def test_references_of_another_key_are_left_out(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reference that another machine sealed under its own key is not known here, and does not hide the others."""
    with rung.journal(url) as journal:
        monkeypatch.setenv("RUNG_JOURNAL_KEY", "the key of another machine")
        store_references(journal, {"theirs": 1}, at=100.0)
        monkeypatch.setenv("RUNG_JOURNAL_KEY", "the key of this machine")
        store_references(journal, {"ours": 2}, at=101.0)
        assert [each.name for each in load_references(journal, 0.0)] == ["ours"]
