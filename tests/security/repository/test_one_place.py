"""One place decides what a discovered settings file may set, and no started interpreter imports from a repository."""

from __future__ import annotations

import re
from pathlib import Path

import rung

SOURCE = Path(rung.__file__).parent


def files_with(pattern: str) -> set[str]:
    """Return the modules that contain a pattern."""
    return {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if re.search(pattern, path.read_text(encoding="utf-8"))
    }


def test_no_way_in_reads_a_discovered_file_by_itself() -> None:
    """The name of the file stands in its loader, and where its existence is looked at: a new way in uses the loader."""
    assert files_with(r'"rung\.toml"[^,\]]') == {
        "wiring/settings_file.py",  # the loader
        "hooks/handlers.py",  # whether to import the loader
        "cli/serve/gateway.py",  # which file to watch
    }


def test_no_interpreter_imports_from_the_working_directory() -> None:
    """`python -m` finds modules in the working directory first: every interpreter that Rung starts has -P or -I."""
    assert files_with(r'sys\.executable, "-m"') == set()
    assert files_with(r'sys\.executable, "-P", "-m"') == {
        "crew/conductor_process.py", "adapters/system/command_line.py", "adapters/system/list_prices.py",
            "hooks/resident_server.py", "hooks/spool.py", "cli/run/named_run.py", "cli/run/parked_call.py",
    }  # fmt: skip
