"""Try the wheel with each extra alone: every command works, or says in one line which extra to install.

A command is not run again where what it needs is missing as it is with `cli` alone.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import urllib.request
import zipfile
from typing import TYPE_CHECKING, Final, NamedTuple

from linked_environment import make_environment, own_requirements, read_metadata, requirement_closure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

USAGE: Final = 2
NO_SERVER: Final = "postgresql://127.0.0.1:1/none"  # nothing listens there: a connection is refused at once
INITIALIZE: Final = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-03-26",
            "capabilities": {},
            "clientInfo": {"name": "try_extras", "version": "1"},
        },
    }
)
UPSTREAMS: Final = {
    "bedrock": 'type = "bedrock"\nregion = "us-east-1"\nurl = "https://bedrock-runtime.us-east-1.amazonaws.com"',
    "vertex": 'type = "vertex"\nproject = "p"\nregion = "us-east5"',
    "azure": 'type = "azure"\nurl = "https://r.openai.azure.com"',
}


class Trial(NamedTuple):
    """Command line, the extras that it needs, and what its output contains when it works."""

    arguments: tuple[str, ...]
    extras: tuple[str, ...]
    expected: str
    serves: bool = False  # runs until it is stopped, and prints its URL
    given: str = ""


def command_trials(folder: Path) -> list[Trial]:
    """Return a trial of every command that needs an extra, and of some that need `rung[cli]` alone."""
    trials = [
        Trial(("run", "--", "echo", "ran"), ("cli",), "ran"),
        Trial(("ladder", "show", "task"), ("cli",), "force-done"),
        Trial(("lab", "faults"), ("cli",), "bad_arguments"),
        Trial(("retry", "none"), ("cli",), "there is no session 'none'"),
        Trial(("serve", "--port", "0"), ("cli", "service"), "gateway: ANTHROPIC_BASE_URL", serves=True),
        Trial(("gateway", "--port", "0"), ("cli", "gateway"), "rung gateway:", serves=True),
        Trial(("mcp",), ("cli", "mcp"), '"serverInfo"', given=INITIALIZE + "\n"),
        Trial(("journal", "export", "events", "-o", str(folder / "e.parquet")), ("cli", "parquet"), "rows of events"),
        Trial(("log", "--journal", NO_SERVER), ("cli", "postgres"), "refused"),
        Trial(("fleet", "init", "--engine", "dbos", "--url", NO_SERVER), ("cli", "dbos"), "cannot be reached"),
    ]
    for extra, table in UPSTREAMS.items():
        file = folder / f"{extra}.toml"
        file.write_text(f"[gateway.upstreams.{extra}]\n{table}\n")
        arguments = ("gateway", "--port", "0", "--config", str(file))
        trials.append(Trial(arguments, ("cli", "gateway", extra), "rung gateway:", serves=True))
    return trials


# What the library does with an extra that has no command of its own.
LIBRARY: Final[Mapping[str, str]] = {
    "postgres": f"""
try:
    rung.journal({NO_SERVER!r})
except rung.errors.RungError as error:
    assert "refused" in str(error), error
else:
    raise AssertionError("a journal without a server")
""",
    "parquet": "import pyarrow.parquet",
    "prices": """
assert rung.report_cost(usage={"input_tokens": 1_000, "output_tokens": 0}, model="claude-sonnet-4-5") > 0
""",
    "temporal": """
from rung.adapters.durable.temporal import RungPlugin, attempt_activity, recover
RungPlugin()
""",
    "dbos": "from rung.adapters.durable.dbos import recover",
    "restate": """
from restate.exceptions import TerminalError
from rung.adapters.durable.restate import as_restate_error
assert isinstance(as_restate_error(HttpError(401, "invalid x-api-key")), TerminalError)
""",
    "inngest": """
from inngest import NonRetriableError
from rung.adapters.durable.inngest import as_inngest_error
assert isinstance(as_inngest_error(HttpError(401, "invalid x-api-key")), NonRetriableError)
""",
    "hatchet": """
from hatchet_sdk import NonRetryableException
from rung.adapters.durable.hatchet import as_hatchet_error
assert isinstance(as_hatchet_error(HttpError(401, "invalid x-api-key")), NonRetryableException)
""",
    "otel": "import opentelemetry.sdk.trace",
}
SMOKE_TEST: Final = """
import rung
from rung.testing import HttpError, Script
outcome = rung.recover_sync(Script(HttpError(529, "Overloaded"), "done"), "go", policy=rung.policy(backoff={"base": 0.001}))
assert (outcome.status, outcome.value) == ("recovered", "done"), outcome
"""
# Imports the module of every command, as its help does.
HELP_OF_ALL: Final = """
from rung.cli.group import COMMANDS, root
for name in COMMANDS:
    root([name, "--help"], standalone_mode=False)
"""


def try_extras(wheel: Path, folder: Path) -> None:
    """Make an environment for each extra, and try every command in it; exit at the first failure."""
    requirements, extras = read_metadata(wheel)
    closures = {extra: requirement_closure(requirements, extra) for extra in extras}
    trials = command_trials(folder)
    untried = set(extras) - {"all", "cli"} - LIBRARY.keys() - {extra for trial in trials for extra in trial.extras}
    assert not untried, f"no trial of {sorted(untried)}"  # noqa: S101  # this script is a test
    unpacked = folder / "unpacked"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(unpacked)
    for extra in extras:
        packages = closures[extra]
        python = make_environment(folder / extra, unpacked, packages)
        _run(python, "-W", "error", "-c", SMOKE_TEST + LIBRARY.get(extra, ""))
        if not closures["cli"] <= packages:
            _try_command(python, trials[0], "cli")
            print(f"rung[{extra}]: library works; commands ask for rung[cli]")
            continue
        _run(python, "-c", HELP_OF_ALL)
        working = []
        for trial in trials:
            missing = next((needed for needed in trial.extras if not closures[needed] <= packages), "")
            own = own_requirements(requirements, missing) - closures["cli"]
            if missing and extra != "cli" and not own & packages:
                continue  # as with `cli` alone: nothing that the missing extra names is there
            _try_command(python, trial, missing)
            if not missing and trial.extras[-1] != "cli":
                working.append(trial.extras[-1])
        print(f"rung[{extra}]: commands work{''.join(f', {name}' for name in working)}; others name their extra")


def _try_command(python: Path, trial: Trial, missing: str) -> None:
    """Run a command that must work, or must name the missing extra."""
    command = [str(python), "-m", "rung", *trial.arguments]
    if trial.serves and not missing:
        output, code = _serve(command), 0
    else:
        done = subprocess.run(  # noqa: S603  # own command
            command, capture_output=True, text=True, check=False, input=trial.given, timeout=120
        )
        output, code = done.stdout + done.stderr, done.returncode
    shown = f"{' '.join(trial.arguments)} in {python.parent.parent.name}: exit code {code}\n{output}"
    assert "Traceback" not in output, shown  # noqa: S101  # this script is a test
    if missing:
        assert code == USAGE, shown  # noqa: S101
        assert f"pip install 'rung[{missing}]'" in output.splitlines()[-1], shown  # noqa: S101
        assert len(output.splitlines()) == 1, shown  # noqa: S101
    else:
        assert trial.expected in output, shown  # noqa: S101
        assert "pip install" not in output, shown  # noqa: S101


def _serve(command: Sequence[str]) -> str:
    """Start a server, ask every address that it prints whether it is healthy, stop it; return its output."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(  # noqa: S603  # own command
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    ) as process:
        assert process.stdout is not None  # noqa: S101  # it is a pipe
        output = ""
        last = "Press Ctrl-C" if "serve" in command else "rung gateway: http"
        for line in process.stdout:
            output += line
            if last in line:
                break
        for address in sorted(set(re.findall(r"http://127\.0\.0\.1:\d+", output))):
            with urllib.request.urlopen(f"{address}/healthz", timeout=30) as answer:  # noqa: S310  # loopback
                assert answer.status == 200, address  # noqa: S101, PLR2004
        process.terminate()
        output += process.stdout.read()
    return output


def _run(python: Path, *arguments: str) -> None:
    done = subprocess.run(  # noqa: S603  # own command
        [str(python), *arguments], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, f"{python.parent.parent.name}: {done.stderr}"  # noqa: S101  # this script is a test
