"""Help and completion: every command is found by name, and shells complete commands, choices and names."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from rung.cli.completion import INSTALL, VARIABLE
from rung.cli.group import COMMANDS, root
from rung.core.domain.failures import Kind
from rung.core.policy.presets import LADDERS
from rung.core.policy.templates import TEMPLATES

if TYPE_CHECKING:
    from pathlib import Path


def completed(*words: str) -> list[str]:
    """Return what a shell offers after these words; the last one is incomplete."""
    *before, incomplete = words
    found = ShellComplete(root, {}, "rung", VARIABLE).get_completions(list(before), incomplete)
    return [item.value for item in found if item.type == "plain"]


@pytest.mark.parametrize("words", [(), ("run",), ("journal", "export"), ("fleet", "worker"), ("help",)])
def test_help_is_that_of_the_command(words: tuple[str, ...]) -> None:
    """`rung help COMMAND` prints what `rung COMMAND --help` and `-h` print."""
    shown = [
        CliRunner().invoke(root, arguments, prog_name="rung").output
        for arguments in (["help", *words], [*words, "--help"], [*words, "-h"])
    ]
    assert shown[0].startswith(" ".join(["Usage: rung", *words]))
    assert shown[0] == shown[1] == shown[2]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["rnu"], "rung: unknown command 'rnu'; did you mean run?"),
        (["ladder", "shw"], "rung: unknown command 'shw'; must be one of check, list, show; did you mean show?"),
        (["log", "x"], "rung: `rung log` has no subcommands, 'x' is none"),
    ],
)
def test_help_of_nothing(words: list[str], line: str) -> None:
    """Help of a command that does not exist suggests one that does."""
    done = CliRunner().invoke(root, ["help", *words], prog_name="rung")
    assert done.exit_code == 2
    assert done.stderr.splitlines()[0] == line


def test_commands_and_choices_are_completed() -> None:
    """Commands, subcommands, options and choices are completed; root commands without importing one."""
    assert completed("") == list(COMMANDS)
    assert completed("lad") == ["ladder"]
    assert completed("ladder", "s") == ["show"]
    assert completed("run", "--par") == ["--park", "--park-max"]
    assert completed("run", "--park", "") == ["wait", "exit", "off"]
    assert completed("help", "journal", "ex") == ["export"]
    assert completed("completion", "") == list(INSTALL)


def test_names_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Templates, ladders, kinds, schemas and the models of rung.toml are completed; odd names are not."""
    monkeypatch.chdir(tmp_path)
    assert completed("run", "--template", "") == list(TEMPLATES)
    assert completed("ladder", "show", "") == list(LADDERS)
    assert completed("explain", "rate") == ["rate_limit"]
    assert completed("log", "--kind", "") == list(Kind)
    assert completed("schema", "doc") == ["doctor"]
    assert completed("run", "--model", "") == []
    (tmp_path / "rung.toml").write_text(
        '[policy]\nmodels = ["small", { name = "large", dollars = 1 }, "a b; rm -rf x", "$(x)"]\n'
    )
    assert completed("run", "--model", "") == ["small", "large"]
    (tmp_path / "rung.toml").write_text("[policy\n")
    assert completed("run", "--model", "") == []


@pytest.mark.parametrize("shell", INSTALL)
def test_the_script_says_how_to_install_it(shell: str) -> None:
    """The script begins with the commands that install it; for zsh after the line that zsh reads."""
    lines = CliRunner().invoke(root, ["completion", shell]).output.splitlines()
    if shell == "zsh":
        assert lines.pop(0) == "#compdef rung"
    assert lines[0] == f"# Completion of rung for {shell}. To install it:"
    assert [line.removeprefix("#   ") for line in lines[1 : 1 + len(INSTALL[shell])]] == list(INSTALL[shell])
    assert any(VARIABLE in line for line in lines)


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes(tmp_path: Path) -> None:
    """A real bash that has read the script completes a command, a choice and a name."""
    (tmp_path / "rung").write_text(f'#!/bin/sh\nexec {sys.executable} -m rung "$@"\n')
    (tmp_path / "rung").chmod(0o755)
    script = """
eval "$(rung completion bash)"
ask() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _rung_completion rung; echo "${COMPREPLY[@]}"; }
ask rung lad
ask rung run --park ''
ask rung explain rate_
"""
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, env=env, cwd=tmp_path)
    assert done.stdout.splitlines() == ["ladder", "wait exit off", "rate_limit"]


def test_the_root_lists_every_command_of_its_table() -> None:
    """Every module of the table exists and defines a command, whose summary is that of the table."""
    context = click.Context(root, **root.context_settings)
    for name, (_, summary) in COMMANDS.items():
        found = root.get_command(context, name)
        assert found is not None
        assert (found.name, found.short_help) == (name, summary)
