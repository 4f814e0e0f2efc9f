"""Regular expressions that are compiled on first use."""

from __future__ import annotations

import re

import pytest

from rung.core.classify.lazy_regex import LazyPattern


def test_as_the_compiled_one() -> None:
    """A lazy pattern finds what the compiled pattern finds, with its flags, in text and in bytes."""
    assert LazyPattern("A+", re.IGNORECASE).findall("aa b A") == ["aa", "A"]
    assert LazyPattern("b").sub("x", "abc") == "axc"
    found = LazyPattern(rb"\d+").search(b"at 42", 3)
    assert found is not None
    assert found[0] == b"42"


def test_compiled_when_first_asked() -> None:
    """An unused pattern is never compiled; after its first use it is the compiled one."""
    broken = LazyPattern("(")
    with pytest.raises(re.error, match="unterminated"):
        broken.match("x")
    kept = LazyPattern("x")
    assert kept.search is kept.search
