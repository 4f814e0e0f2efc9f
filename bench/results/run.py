"""Run a benchmark in its environment and record its figures."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import rung
from bench.clients.store import gateway_state, litellm_version
from bench.results.benchmarks import LINES, OUT, ROOT
from bench.results.record import Record, machine, rounded

if TYPE_CHECKING:
    from bench.results.benchmarks import Benchmark

_VERSIONS: Final = """
import importlib.metadata as m, json, sys
found = {}
for name in sys.argv[1:]:
    try: found[name] = m.version(name)
    except m.PackageNotFoundError: pass
print(json.dumps(found))
"""


class NotMeasured(Exception):
    """The benchmark gave no figures; the message says why."""


def measure(one: Benchmark) -> Record:
    """Run a benchmark, and return what it measured; raise `NotMeasured` if it gave no figures."""
    if not one.python.exists():
        raise NotMeasured(f"{one.name}: {one.python} does not exist; run `make results NAME={one.name}`")
    began = machine()
    with tempfile.TemporaryDirectory() as folder:
        found = _run(one, Path(folder, "out.json"))
    return Record(
        name=one.name,
        date=datetime.now(UTC).date().isoformat(),
        command=one.command,
        versions={"rung": f"{rung.__version__} ({gateway_state()})", **versions(one)},
        machine=began,
        figures=rounded(one.reduce(found)),
    )


def _run(one: Benchmark, out: Path) -> Any:
    """Return the JSON of a benchmark. Some exit with 1 when a goal is missed: that is a result, too."""
    stdout = None if one.output == OUT else subprocess.PIPE
    done = subprocess.run(one.words(out), cwd=ROOT, env=_environment(), stdout=stdout, text=True, check=False)
    if done.returncode > 1:
        raise NotMeasured(f"{one.name}: `{one.command}` exited with {done.returncode}")
    text = out.read_text(encoding="utf-8") if one.output == OUT and out.exists() else done.stdout or ""
    try:
        return [json.loads(line) for line in text.splitlines()] if one.output == LINES else json.loads(text)
    except ValueError as error:
        raise NotMeasured(f"{one.name}: `{one.command}` wrote no JSON: {error}") from error


def versions(one: Benchmark) -> dict[str, str]:
    """Return the versions of a benchmark's packages that its environment has."""
    locked = {name: _LOCKED[name]() for name in one.locked}
    if not one.packages:
        return locked
    words = [str(one.python), "-c", _VERSIONS, *one.packages]
    found: dict[str, str] = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    return found | locked


def _portkey_version() -> str:
    lock = json.loads((ROOT / "bench/peers/portkey/package-lock.json").read_text(encoding="utf-8"))
    return str(lock["packages"]["node_modules/@portkey-ai/gateway"]["version"])


_LOCKED: Final = {"litellm": litellm_version, "portkey": _portkey_version}


def _environment() -> dict[str, str]:
    """Return the variables of a benchmark: rung is found by its path where it is not installed."""
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    return {**os.environ, "PYTHONPATH": path}
