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
    """`rung --help`, `rung help` and `rung --version` import no command, nor Rich, asyncio or the events."""
    assert all(name in run("--help").stdout for name in COMMANDS)
    for arguments in (["--help"], ["help"], ["--version"]):
        modules = loaded(*arguments)
        assert modules.isdisjoint(f"rung.cli.{module}" for module, _ in COMMANDS.values() if module != "help")
        assert modules.isdisjoint({"rich", "asyncio", "apsw", "rung.core.domain.events"})


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_version(option: str) -> None:
    """`rung --version` and `-V` print the version of the package, also as a module."""
    assert run(option).stdout == f"rung {rung.__version__}\n"


def test_json_commands_stay_light() -> None:
    """A `--json` command imports neither Rich nor asyncio: hooks call it many times."""
    for arguments in (
        ("classify", "x", "--json"),
        ("ladder", "show", "task", "--json"),
        ("explain", "timeout", "--json"),
    ):
        assert loaded(*arguments).isdisjoint({"rich", "asyncio", "apsw"}), arguments


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        (("rum",), ["rung: unknown command 'rum'; did you mean run or resume?", "See: rung help"]),
        (("laddr",), ["rung: unknown command 'laddr'; did you mean ladder?", "See: rung help"]),
        (
            ("ladder", "shw"),
            [
                "rung: unknown command 'shw'; must be one of check, list, show; did you mean show?",
                "See: rung help ladder",
            ],
        ),
        (("--nonsense",), ["rung: unknown option '--nonsense'", "See: rung help"]),
        (("log", "--limt", "3"), ["rung: unknown option '--limt'; did you mean --limit?", "See: rung help log"]),
        (
            ("classify", "--status", "abc"),
            ["rung: --status: 'abc' is invalid; must be a whole number from 100 to 599", "See: rung help classify"],
        ),
        (
            ("journal", "export", "evnts"),
            [
                "rung: WHAT: 'evnts' is invalid; must be one of attempts, incidents, events; did you mean events?",
                "See: rung help journal export",
            ],
        ),
        (("retry",), ["rung: SESSION is missing", "See: rung help retry"]),
        (("completion",), ["rung: SHELL is missing; must be one of bash, zsh, fish", "See: rung help completion"]),
        (("log", "--limit"), ["rung: --limit: its value is missing"]),
        (
            ("run", "ls", "-la"),
            [
                "rung: unknown option '-l'",
                "Options of COMMAND itself follow `--`: rung run [OPTIONS] -- COMMAND …",
                "See: rung help run",
            ],
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_wrong_use_has_one_style(arguments: tuple[str, ...], lines: list[str]) -> None:
    """Wrong use exits with code 2; stderr says what is wrong, what is allowed, and where to read on."""
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.splitlines() == lines


@pytest.mark.parametrize(("missing", "arguments"), [("click", ["--help"]), ("rich", ["run", "--", "true"])])
def test_without_the_extra(missing: str, arguments: list[str]) -> None:
    """Without click or Rich, one line names the package to install; exit code 2."""
    code = f"import sys; sys.modules[{missing!r}] = None\n" + LOADED.format(arguments=arguments)
    done = python(code)
    assert done.returncode == 2
    line = f"rung: the command line needs the package {missing}: pip install 'rung[cli]'"
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
