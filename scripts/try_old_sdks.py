"""Run the adapters' tests with the SDKs' previous major versions, and with litellm, which needs one of them.

They cannot share an environment with today's, so each gets one of its own under a temporary directory.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
NEEDED = ("hypothesis", "jsonschema", "pytest", "pytest-xdist", "requests")  # by the tests themselves


class Tried(NamedTuple):
    """How one package did: its version, and the last line of its tests."""

    good: bool
    line: str


def anthropic(environment: Path) -> Tried:
    """Before 2, it spoke through httpx."""
    return _try(environment, "anthropic", "anthropic<2", "test_reads_anthropic.py")


def openai(environment: Path) -> Tried:
    """Before 3, it spoke through httpx."""
    return _try(environment, "openai", "openai<3", "test_reads_openai.py")


def google_genai(environment: Path) -> Tried:
    """Before 3."""
    return _try(environment, "google-genai", "google-genai<3", "test_reads_genai.py", "google-api-core")


def mcp(environment: Path) -> Tried:
    """Before 2: McpError, isError, FastMCP; our server on it too."""
    return _try(environment, "mcp", "mcp<2", "test_reads_mcp.py ../mcp", "click", "rich")


def litellm(environment: Path) -> Tried:
    """Today's, with the openai it asks for."""
    return _try(environment, "litellm", "litellm", "../old_sdks/test_reads_litellm.py")


def _try(environment: Path, package: str, wanted: str, tests: str, *more: str) -> Tried:
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    installed = _run(python, "-m", "pip", "install", "-q", "-e", str(ROOT), wanted, *more, *NEEDED)
    if installed.returncode:
        return Tried(good=False, line=f"{wanted}: not installed\n{installed.stdout[-2_000:]}")
    asked = _run(python, "-c", f"from importlib.metadata import version; print(version({package!r}))")
    # Their warnings are their own: today's versions are tested with warnings as errors.
    done = _run(python, "-m", "pytest", "-W", "default", "-rs", *[f"tests/adapters/{one}" for one in tests.split()])
    said = done.stdout.strip().splitlines()
    # A package that is there must not be skipped: then nothing would have been tried.
    good = done.returncode == 0 and "could not import" not in done.stdout
    end = said[-1] if said else f"exit code {done.returncode}"
    return Tried(good=good, line=f"{package} {asked.stdout.strip()}: {end if good else done.stdout[-4_000:]}")


def _run(python: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603  # our own interpreter, our own words
        [python, *words], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )


def main() -> int:
    """Try each; 1 if one failed."""
    with tempfile.TemporaryDirectory() as directory, ThreadPoolExecutor() as pool:
        each = [anthropic, openai, google_genai, mcp, litellm]
        results = pool.map(lambda one: one(Path(directory) / one.__name__), each)
        failed = 0
        for result in results:
            print("ok  " if result.good else "FAIL", result.line, flush=True)
            failed += not result.good
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
