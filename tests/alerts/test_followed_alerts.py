"""Alerts of a process that reads its settings file again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import rung
from rung.core.domain.errors import ConfigError
from rung.wiring.followed_alerts import FollowedAlerts
from rung.wiring.settings_file import named
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rung.store.journal.journal import Journal

INTERVAL = "[alerts]\ninterval = 0.1\n"
RULE = '[alerts.rules.{name}]\nwhen = "stuck"\nthreshold = 1\n'


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Journal]:
    with rung.journal(tmp_path / "j.db") as journal:
        yield journal


@pytest.mark.parametrize("before", ["", RULE.format(name="first")], ids=["no rules", "one rule"])
def test_rules_follow_the_file(tmp_path: Path, opened: Journal, before: str) -> None:
    """A changed file replaces the rules that are evaluated; a wrong one changes nothing; one without rules ends them."""
    file, warnings = tmp_path / "named.toml", list[str]()
    file.write_text(INTERVAL + before)
    with FollowedAlerts(opened, lambda: named(file), warnings.append) as followed:
        file.write_text(INTERVAL + RULE.format(name="second"))
        followed.reload()
        wait_until(lambda: _evaluated(followed) == {"second"})
        file.write_text(INTERVAL + RULE.format(name="third").replace("stuck", "stcuk"))
        with pytest.raises(ConfigError, match="stcuk"):
            followed.reload()
        assert _evaluated(followed) == {"second"}
        file.write_text("")
        followed.reload()
        assert _evaluated(followed) == set()
    assert warnings == []


def _evaluated(followed: FollowedAlerts) -> set[str]:
    return set(followed.rule_names)


def test_an_untrusted_file_is_refused(tmp_path: Path, opened: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    """The alerts of a `rung.toml` that nobody has trusted are not applied; the error names the command that trusts it."""
    monkeypatch.chdir(tmp_path)
    with FollowedAlerts(opened, lambda: None, lambda _: None) as followed:
        (tmp_path / "rung.toml").write_text(INTERVAL + RULE.format(name="first"))
        with pytest.raises(ConfigError, match="rung trust"):
            followed.reload()
        assert _evaluated(followed) == set()
