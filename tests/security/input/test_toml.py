"""Policy files and plans in TOML are read within limits: nothing in one is a fault of ours or takes minutes."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from rung.cli.group import root
from rung.core.text.toml_document import parse_toml

if TYPE_CHECKING:
    from pathlib import Path

ODD = {
    "deep array": ("a = " + "[" * 100_000, "nested too deeply"),
    "deep inline table": ("a = " + "{b = " * 100_000, "nested too deeply"),
    "long dotted key": (".".join("a" * 100_000) + " = 1", "nested too deeply"),
    "long quoted key": ('"a" . ' * 50_000 + "a = 1", "nested too deeply"),
    "long header": ("[" + ".".join("a" * 100_000) + "]", "nested too deeply"),
    "deep, but short": ("a = " + "[" * 40 + "]" * 40, "nested too deeply"),
    "huge integer": ("[policy]\nretries = " + "9" * 5_000, "64 bits"),
    "huge hexadecimal": ("[policy]\nretries = 0x" + "f" * 500, "64 bits"),
    "huge text": ('[policy]\nname = "' + "x" * 2_000_000 + '"', "1,000,000 bytes"),
    "unclosed escapes": ('a = "' + '\\"' * 400_000, "is not TOML"),
    "NUL": ("a = \0", "is not TOML"),
}


@pytest.mark.parametrize(("text", "words"), ODD.values(), ids=ODD)
def test_odd_files(tmp_path: Path, text: str, words: str) -> None:
    """A deep, huge or malformed file is one line that names the file and the limit, for every command that reads it."""
    (tmp_path / "odd.toml").write_text(text)
    file = str(tmp_path / "odd.toml")
    for command in (["policy", "check", file], ["crew", "run", file, "--db", str(tmp_path / "crew.db")]):
        done = CliRunner().invoke(root, command)
        assert (done.exit_code, words in done.stderr, len(done.stderr.splitlines())) == (2, True, 1), done.output
        assert "odd.toml" in done.stderr


def test_what_is_deep_only_in_texts() -> None:
    """Dots and brackets in texts and comments are no nesting."""
    dots = "." * 500
    text = f'a = "{dots}" # {dots}\nb = \'{dots}\'\nc = """\n{dots}\\" {dots}"""\nd = \'\'\'{dots}\'\'\'\n"{dots}" = 1'
    assert parse_toml(text) == tomllib.loads(text)
