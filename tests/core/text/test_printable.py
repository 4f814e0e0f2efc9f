"""Control sequences in text from elsewhere."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.text.printable import printable, printable_with_styles


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31mb\x1b[0m", "ab"),
        ("a\x1b]0;title\x07b", "ab"),
        ("a\x1b]8;;https://x\x1b\\link\x1b]8;;\x1b\\", "alink"),
        ("a\x1bPq\x1b\\b", "ab"),
        ("a\x1b]never closed", "anever closed"),
        ("a\x1b\x1b[2J[2J", "a\\u001b[2J"),
        ("a\x1bc", "a"),
        ("1\r2\r\n", "1\\u000d2\r\n"),
        ("a\x00\x9b\u202e", "a\\u0000\\u009b\\u202e"),
    ],
)
def test_what_is_shown(text: str, shown: str) -> None:
    """Complete sequences are removed; other control characters are shown by their code."""
    assert printable(text) == shown


def test_plain_text_is_unchanged() -> None:
    """Text without control sequences is the same object, tabs, line breaks and all scripts included."""
    text = "ein Fehler\tin 日本語\r\n👩‍👩‍👧 עברית"
    assert printable(text) is text


def test_styles() -> None:
    """Only visible styles pass: not concealed, black, reversed or with a background."""
    kept = "\x1b[1mbold\x1b[0m \x1b[2;31mred\x1b[m"
    assert printable_with_styles(kept) == kept
    assert printable_with_styles("\x1b[8ma\x1b[30mb\x1b[7mc\x1b[41md\x1b[1;8me\x1b[38;5;0mf") == "abcdef"


@given(st.text(st.sampled_from("\x1b[]P^_\\;0m2J\x07\x9b\r\n\u202ea ") | st.characters()))
def test_no_control_character_remains(text: str) -> None:
    """No text leaves a control character other than a tab or a line break, and cleaning twice changes nothing."""
    shown = printable(text)
    rest = shown.replace("\r\n", "").replace("\n", "").replace("\t", "")
    assert not any(unicodedata.category(character) == "Cc" for character in rest)
    assert printable(shown) == shown


@given(st.text())
def test_json_stays_json(text: str) -> None:
    """Cleaning a JSON document changes no value in it."""
    document = json.dumps(text, ensure_ascii=False)
    assert json.loads(printable(document)) == text
