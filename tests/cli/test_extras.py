"""Missing extras: each has a module that is known, and the message names the right one."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from rung.cli.extras import COMMAND_EXTRAS, EXTRAS, missing_package
from rung.cli.group import COMMANDS

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]


def test_every_extra_is_known() -> None:
    """Each extra of the package is in the table, except `all`; each command of the other table exists."""
    assert EXTRAS.keys() == PROJECT["optional-dependencies"].keys() - {"all"}
    assert COMMAND_EXTRAS.keys() <= COMMANDS.keys()


@pytest.mark.parametrize(
    ("module", "command", "extra"),
    [
        ("uvicorn", "serve", "service"),
        ("uvicorn.server", "gateway", "gateway"),
        ("typing_extensions", "mcp", "mcp"),
        ("psycopg", "crew", "postgres"),
        ("orjson", "lab", "cli"),
    ],
)
def test_the_extra_of_the_command(module: str, command: str, extra: str) -> None:
    """A module that several extras bring is attributed to the command that was run."""
    missing = missing_package(ModuleNotFoundError(name=module), command)
    assert missing is not None
    assert missing.message.endswith(f": pip install 'rung[{extra}]'")


def test_a_module_of_the_user() -> None:
    """A module that no extra brings has no explanation: the error is somebody else's."""
    assert missing_package(ModuleNotFoundError(name="my_tasks"), "fleet") is None
