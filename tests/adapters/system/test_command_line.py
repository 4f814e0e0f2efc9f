"""Command lines of users: words and programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rung.adapters.system.command_line import require_program, split_command
from rung.core.domain.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path


def test_a_program_is_found_in_path_or_beside_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name is found in PATH, a path below the folder that the command runs in."""
    tool = tmp_path / "tool"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    assert require_program("COMMAND", "sh -c 'exit 0'") == ["sh", "-c", "exit 0"]
    assert require_program("COMMAND", ["./tool", "x"], tmp_path) == ["./tool", "x"]
    assert require_program("COMMAND", [str(tool)]) == [str(tool)]
    monkeypatch.chdir(tmp_path)
    assert require_program("COMMAND", ["./tool"]) == ["./tool"]


def test_a_placeholder_is_filled_in_later() -> None:
    """A program that is a placeholder is not looked for."""
    assert require_program("COMMAND", "{model} -p") == ["{model}", "-p"]


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("no-such-program-here", "not found in PATH"),
        ("./nothing", "no such file"),
        ("./data", "not executable"),
        ("./folder/", "a directory"),
        ("", "must be a command"),
        ("a 'b", "no closing quotation"),
        ([], "not found in PATH"),
        (["sh -c true"], "separate words, without quotes around both: sh -c true"),
        (["./my agent"], "no such file"),
        (["cd", "/"], "sh -c 'cd …'"),
        ("--", "a value is missing before --"),
    ],
)
def test_a_program_that_cannot_be_run(tmp_path: Path, command: str | list[str], why: str) -> None:
    """The error names the key, the program and the reason."""
    (tmp_path / "data").write_text("")
    (tmp_path / "folder").mkdir()
    with pytest.raises(ConfigError, match=why) as caught:
        require_program("--check", command, tmp_path)
    assert caught.value.key == "--check"


def test_words_are_split_as_a_shell_does() -> None:
    """Quotes join words."""
    assert split_command("--check", "make 'a b'") == ["make", "a b"]


@pytest.mark.parametrize(
    ("command", "operator"),
    [
        ("true && false", "&&"),
        ("make test | tee log", "|"),
        ("a || b", "||"),
        ("make > log", ">"),
        ("make 2>&1", "2>&1"),
    ],
)
def test_operators_of_a_shell_are_refused(command: str, operator: str) -> None:
    """A command with a shell's operator is refused: it would run only its first part, and might pass."""
    with pytest.raises(ConfigError, match=r"no shell reads it; or write: sh -c '") as raised:
        split_command("--check", command)
    assert f"a command without {operator}, since" in str(raised.value)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("sh -c 'true && false'", ["sh", "-c", "true && false"]),
        ("test a '<' b", ["test", "a", "<", "b"]),
        ("find . -exec ls {} \\;", ["find", ".", "-exec", "ls", "{}", ";"]),
        ("curl http://x/?a=1&b=2", ["curl", "http://x/?a=1&b=2"]),
        ("echo it\\'s '#'", ["echo", "it's", "#"]),
    ],
)
def test_quoted_operators_are_words(command: str, words: list[str]) -> None:
    """Operators that are quoted, escaped or part of a word are arguments."""
    assert split_command("--check", command) == words
