"""Settings of `[[hooks]]` and `[stop]` in a policy file."""

from __future__ import annotations

from typing import Any

import pytest

from rung.adapters.system.user_hooks import CommandHook
from rung.core.domain.errors import ConfigError
from rung.core.domain.settings_schema import read_rows
from rung.core.policy.stop_settings import read_stop_settings

GOOD = {"when": "attempt.pre", "run": "true"}


def test_good_rows_are_kept_as_they_are() -> None:
    """All four keys, or only those that must be there."""
    rows: list[dict[str, Any]] = [GOOD, {**GOOD, "when": "rung.post", "seconds": 1.5, "fail_closed": True}]
    assert read_rows(CommandHook, rows, "hooks") == tuple(CommandHook(**row) for row in rows)


@pytest.mark.parametrize(
    ("rows", "key"),
    [
        ({}, "hooks"),
        (["x"], "hooks[0]"),
        ([GOOD, {**GOOD, "then": 1}], "hooks[1].then"),
        ([{**GOOD, "when": "later"}], "hooks[0].when"),
        ([{"when": "attempt.pre"}], "hooks[0].run"),
        ([{**GOOD, "run": " "}], "hooks[0].run"),
        ([{**GOOD, "seconds": 0}], "hooks[0].seconds"),
        ([{**GOOD, "seconds": "1"}], "hooks[0].seconds"),
        ([{**GOOD, "fail_closed": 1}], "hooks[0].fail_closed"),
    ],
)
def test_every_error_names_its_key(rows: Any, key: str) -> None:
    """And what would be allowed there."""
    with pytest.raises(ConfigError) as found:
        read_rows(CommandHook, rows, "hooks")
    assert found.value.key == key


@pytest.mark.parametrize("sections", ["Summary", [1], [" "]])
def test_sections_are_headings(sections: Any) -> None:
    """A list of texts, none of them blank."""
    with pytest.raises(ConfigError) as found:
        read_stop_settings({"sections": sections})
    assert found.value.key == "stop.sections"
