"""Policy files and plans in TOML are read within limits: nothing in one is a fault of ours or takes minutes."""

from __future__ import annotations

import os
import tomllib
from contextlib import suppress
from typing import TYPE_CHECKING

import hypothesis
import pytest
from click.testing import CliRunner
from hypothesis import strategies as st

from rung.cli.group import root
from rung.core.domain.errors import ConfigError
from rung.core.policy.parser import FILE_KEYS, POLICY_KEYS, parse_policy_file
from rung.core.text.toml_document import MAX_TOML_BYTES, MAX_TOML_DEPTH, TomlError, check_document, parse_toml

if TYPE_CHECKING:
    from pathlib import Path

EXAMPLES = int(os.environ.get("RUNG_FUZZ_EXAMPLES", "150"))
fuzzing = hypothesis.settings(
    max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(hypothesis.HealthCheck)
)
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


@fuzzing
@hypothesis.given(st.text(st.sampled_from("ab.=[]{}\"'#\\\n ,1_-x\0é"), max_size=200) | st.text(max_size=100))
def test_as_the_standard_parser(text: str) -> None:
    """Within the limits the result is the standard parser's, and every refusal is a TomlError."""
    try:
        expected = tomllib.loads(text)
    except ValueError:
        with pytest.raises(TomlError):
            parse_toml(text)
        return
    assert parse_toml(text) == expected
    assert len(text) <= MAX_TOML_BYTES
    assert text.count(".") < MAX_TOML_DEPTH * 200


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.dates()
    | st.sampled_from(POLICY_KEYS),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(POLICY_KEYS) | st.text(max_size=5), inner)
    ),
    max_leaves=10,
)


@fuzzing
@hypothesis.given(
    st.dictionaries(st.sampled_from(FILE_KEYS), st.dictionaries(st.sampled_from(POLICY_KEYS), values) | values)
)
def test_any_table(table: dict[str, object]) -> None:
    """A policy file with any values is read, or refused by a ConfigError or a TomlError; nothing else is raised."""
    with suppress(ConfigError, TomlError):
        check_document(table)
        parse_policy_file(table)
