"""The how-to page on fault injection is complete, and its example script is valid."""

from __future__ import annotations

import re
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from rung.cli.lab.lab import command
from rung.testing import FAULTS
from rung.testing.provider.fault_report import FaultVerdict
from rung.testing.provider.request_log import RequestRecord
from rung.testing.provider.script import LabRule, LabScript, script_from

PAGE = (Path(__file__).parents[2] / "docs/howto/inject-faults.md").read_text(encoding="utf-8")
SCRIPT = tomllib.loads(re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)[0])


def test_the_script_shown_can_be_used() -> None:
    """The example script can be loaded and has the values it shows."""
    script = script_from(SCRIPT)
    assert [rule.fault.name for rule in script.rules] == ["rate_limit", "model_gone", "stall", "unavailable"]
    assert script.rules[0].request == ((1, 1), (4, 6))
    assert script.turns[0].tools == (("Bash", {"command": "make test"}),)


def test_every_setting_and_every_key_is_shown() -> None:
    """The example script uses every key that a script can contain."""
    assert {each.name for each in fields(LabScript)} == set(SCRIPT)
    keys = {each.name for each in fields(LabRule)} - {"parameters", "requests"} | {"request"}
    assert keys <= set().union(*SCRIPT["rules"])


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_has_its_row(name: str) -> None:
    """The page lists every fault with all its parameters."""
    row = re.search(rf"^\| `{name}` \| .*$", PAGE, re.MULTILINE)
    assert row
    assert all(f"`{key}`" in row[0] for key in FAULTS[name].takes if key != "message" and name != "wall")


def test_every_option_verdict_and_field_is_named() -> None:
    """The page names the options of `rung lab` and `rung lab test`, the verdicts and the fields of a record."""
    for each in (command, command.commands["test"]):
        for parameter in each.params:
            assert all(option in PAGE for option in parameter.opts if option.startswith("--"))
    assert all(f"| {verdict} |" in PAGE for verdict in FaultVerdict)
    assert all(f"`{each.name}`" in PAGE for each in fields(RequestRecord) if each.name != "at")
