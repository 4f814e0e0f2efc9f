"""The root of the command line: exit codes, imports, and missing packages."""

from __future__ import annotations

import subprocess
import sys

import pytest

import rung
from rung.cli.group import COMMANDS

LOADED = """
import sys
from rung.cli.main import main
sys.argv = ["rung", *{arguments!r}]
try:
    main()
except SystemExit as end:
    code = end.code
print("loaded:", *sorted(sys.modules), file=sys.stderr)
sys.exit(code)
"""


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, input="")


def run(*arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rung", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, input=given)


def loaded(*arguments: str) -> set[str]:
    done = python(LOADED.format(arguments=arguments))
    assert done.returncode == 0, done.stderr
    return set(done.stderr.rpartition("loaded:")[2].split())


def test_help_lists_every_command_and_loads_none() -> None:
    """`rung --help` lists every command without importing one, nor Rich."""
    assert all(name in run("--help").stdout for name in COMMANDS)
    modules = loaded("--help")
    assert modules.isdisjoint(f"rung.cli.{module}" for module, _ in COMMANDS.values())
    assert "rich" not in modules


def test_version() -> None:
    """`rung --version` prints the version of the package, also as a module."""
    assert run("--version").stdout == f"rung {rung.__version__}\n"


def test_json_commands_stay_light() -> None:
    """A `--json` command imports neither Rich nor asyncio: hooks call it many times."""
    for arguments in (
        ("classify", "x", "--json"),
        ("ladder", "show", "task", "--json"),
        ("explain", "timeout", "--json"),
    ):
        assert loaded(*arguments).isdisjoint({"rich", "asyncio", "apsw"}), arguments


@pytest.mark.parametrize(
    "arguments", [("clasify",), ("--nonsense",), ("classify", "--status", "abc"), ("ladder", "draw")]
)
def test_misuse_is_exit_2(arguments: tuple[str, ...]) -> None:
    """A command, option or value that does not exist exits with code 2 and an error on stderr."""
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Error" in done.stderr


@pytest.mark.parametrize(("missing", "arguments"), [("click", ["--help"]), ("rich", ["ladder", "show", "task"])])
def test_without_the_extra(missing: str, arguments: list[str]) -> None:
    """Without click or Rich, one line names the package to install; exit code 2."""
    code = f"import sys; sys.modules[{missing!r}] = None\n" + LOADED.format(arguments=arguments)
    done = python(code)
    assert done.returncode == 2
    line = f"rung: the command line needs {missing}: pip install 'rung[cli]'"
    assert done.stderr.splitlines()[0] == line


def test_a_screen_without_unicode() -> None:
    """An ASCII-only terminal gets an ASCII ladder, not an error."""
    command = [sys.executable, "-m", "rung", "ladder", "show", "task"]
    done = subprocess.run(command, capture_output=True, check=True, env={"PYTHONIOENCODING": "ascii", "COLUMNS": "80"})
    assert b"+==" in done.stdout
    assert b"?" not in done.stdout


def test_a_closed_pipe_is_no_traceback() -> None:
    """A closed pipe (`rung schema event | head -1`) causes no traceback."""
    shell = f"{sys.executable} -m rung schema event | head -1"
    done = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=False)
    assert done.stdout == "{\n"
    assert "Traceback" not in done.stderr
