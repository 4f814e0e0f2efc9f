"""SHA-256 in SQL: equal to the standard library's, in the stranger's old SQLite."""

from __future__ import annotations

import sqlite3
from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st

from rung.store.crew.sql_sha256 import KEY_CHARS, sha256_sql

CONNECTION = sqlite3.connect(":memory:", check_same_thread=False)


@given(st.text(st.characters(min_codepoint=1, max_codepoint=127), min_size=KEY_CHARS, max_size=KEY_CHARS))
def test_the_digest_is_that_of_the_standard_library(key: str) -> None:
    """Any text of 32 ASCII characters has the same digest in SQL as in Python."""
    ((digest,),) = CONNECTION.execute(f"SELECT {sha256_sql('key')} FROM (SELECT ? AS key)", [key])
    assert digest == sha256(key.encode()).hexdigest()
