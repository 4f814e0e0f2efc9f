"""The page on fleets names what the commands have."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from rung.cli.fleet.group import COMMANDS

PAGE = Path(__file__).parents[2] / "docs/howto/run-a-fleet.md"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_fleet_is_documented(name: str) -> None:
    """The page names every command of `rung fleet` and every option it has."""
    page = PAGE.read_text()
    assert f"rung fleet {name}" in page
    for parameter in import_module(f"rung.cli.fleet.{name}").command.params:
        for option in parameter.opts:
            assert not option.startswith("--") or f"{option}" in page, option


def test_the_settings_and_exit_codes_are_documented() -> None:
    """The page names the exit codes of `init` and the variables that the processes read."""
    from rung.cli.exit_codes import TRY_LATER, USAGE
    from rung.wiring.fleet_heartbeat import LEASE_VARIABLE

    page = PAGE.read_text()
    for code in (0, USAGE, TRY_LATER):
        assert f"| {code} |" in page
    for name in (LEASE_VARIABLE, "RUNG_JOURNAL", "RUNG_ADMIN_TOKEN"):
        assert name in page
