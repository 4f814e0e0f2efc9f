"""Commands whose extra is missing name the package and the pip command; nothing ends in a traceback."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rung.cli.extras import COMMAND_EXTRAS, EXTRAS

if TYPE_CHECKING:
    from pathlib import Path

# Runs a command in an interpreter that has none of the given packages, as if they were not installed.
WITHOUT = """
import sys
from importlib.abc import MetaPathFinder

class Missing(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {packages!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
sys.argv = ["rung", *{arguments!r}]
from rung.cli.main import main
main()
"""


def run_without(packages: set[str], *arguments: str, cwd: Path, given: str = "") -> subprocess.CompletedProcess[str]:
    code = WITHOUT.format(packages=packages, arguments=list(arguments))
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, input=given, cwd=cwd, timeout=60
    )


def packages_of(extra: str) -> set[str]:
    return {module.partition(".")[0] for module in EXTRAS[extra]}


ALL_PACKAGES = {package for extra in EXTRAS for package in packages_of(extra)}
SHARED = {"google", "azure"}  # namespaces of many packages


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (("serve", "--port", "0"), "service"),
        (("gateway", "--port", "0", "--no-journal"), "gateway"),
        (("gateway", "run", "--no-journal", "--", "true"), "gateway"),
        (("mcp",), "mcp"),
        (("journal", "export", "--format", "parquet", "-o", "x.parquet", "--journal", "journal.db"), "parquet"),
        (("log", "--journal", "postgresql://127.0.0.1:1/x"), "postgres"),
        (("crew", "status", "--db", "postgresql://127.0.0.1:1/x"), "postgres"),
        (("fleet", "init", "--url", "postgresql://127.0.0.1:1/x"), "postgres"),
        (
            ("fleet", "worker", "--import", "my_tasks", "--engine", "dbos", "--url", "postgresql://127.0.0.1:1/x"),
            "dbos",
        ),
        (("fleet", "worker", "--import", "my_tasks", "--engine", "temporal", "--url", "127.0.0.1:1"), "temporal"),
        (("ladder", "show", "task"), "cli"),
        (("--help",), "cli"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else value,
)
def test_a_command_without_its_extra(arguments: tuple[str, ...], extra: str, tmp_path: Path) -> None:
    """A command without the packages of its extra exits with code 2 and names the pip command, in one line."""
    from rung.store import open_journal

    with open_journal(tmp_path / "journal.db"):
        pass
    (tmp_path / "my_tasks.py").write_text('import rung\n\n@rung.durable.task("work")\ndef work(x):\n    return x\n')
    done = run_without(packages_of(extra) - SHARED, *arguments, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("rung: ")
    assert f"pip install 'rung[{extra}]'" in lines[0]


@pytest.mark.parametrize("package", ["httptools", "genai_prices", "aiohappyeyeballs", "uvicorn", "uvloop"])
def test_a_gateway_without_one_package(package: str, tmp_path: Path) -> None:
    """Each package of the gateway that is missing alone is named, with the extra that brings it."""
    done = run_without({package}, "gateway", "run", "--no-journal", "--", "true", cwd=tmp_path)
    assert "Traceback" not in done.stderr
    if done.returncode:  # some packages are only needed for calls
        assert done.returncode == 2
        assert f"needs the package {package}" in done.stderr
        assert "pip install 'rung[gateway]'" in done.stderr


def test_the_doctor_needs_only_click_and_rich(tmp_path: Path) -> None:
    """With click and rich alone, the doctor lists the extras that are missing, and the commands that install them."""
    done = run_without(ALL_PACKAGES - SHARED - {"click", "rich"}, "doctor", cwd=tmp_path)
    assert "Traceback" not in done.stderr
    assert done.returncode == 0, done.stdout
    for extra in set(EXTRAS) - {"vertex", "azure"}:
        assert f"fix: pip install 'rung[{extra}]'" in done.stdout


def test_the_demo_names_the_extras_of_the_next_commands(tmp_path: Path) -> None:
    """Where the commands that the demo recommends lack an extra, it names the command that installs it."""
    done = run_without(packages_of("gateway") - SHARED, "demo", "call", "--fast", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].endswith("need: pip install 'rung[gateway,service]'")
    assert "pip install" not in run_without(set(), "demo", "call", "--fast", cwd=tmp_path).stdout


def test_the_commands_with_an_extra_exist() -> None:
    """Each command that needs an extra is a command, and its extra is one."""
    from rung.cli.group import COMMANDS

    assert COMMAND_EXTRAS.keys() <= COMMANDS.keys()
    assert set(COMMAND_EXTRAS.values()) <= EXTRAS.keys()
