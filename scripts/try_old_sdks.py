"""Run the adapter tests with the previous major version of each SDK, and with litellm, which requires one of them.

These versions conflict with the current ones, so each gets its own environment in a temporary directory.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from locked import locked_versions

ROOT = Path(__file__).parent.parent
TEST_REQUIREMENTS = ("hypothesis", "jsonschema", "pytest", "pytest-xdist", "requests")


class Result(NamedTuple):
    """Test result of one package: its version and the last line of the test output."""

    passed: bool
    line: str


def anthropic(environment: Path) -> Result:
    """Test anthropic before version 2, which uses httpx."""
    return _run_tests(environment, "anthropic", "anthropic==1.17.0", "test_reads_anthropic.py")


def openai(environment: Path) -> Result:
    """Test openai before version 3, which uses httpx."""
    return _run_tests(environment, "openai", "openai==2.54.0", "test_reads_openai.py")


def google_genai(environment: Path) -> Result:
    """Test google-genai before version 3."""
    return _run_tests(environment, "google-genai", "google-genai==2.34.0", "test_reads_genai.py", "google-api-core")


def mcp(environment: Path) -> Result:
    """Test mcp before version 2 (McpError, isError, FastMCP), including Rung's MCP server."""
    return _run_tests(environment, "mcp", "mcp==1.30.0", "test_reads_mcp.py ../../mcp", "click", "rich")


def litellm(environment: Path) -> Result:
    """Test litellm with the openai version it requires."""
    return _run_tests(environment, "litellm", "litellm==1.108.4", "../../old_sdks/test_reads_litellm.py")


def _run_tests(environment: Path, package: str, requirement: str, tests: str, *extra: str) -> Result:
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    versions = locked_versions()
    pinned = [f"{name}=={versions[name]}" for name in (*extra, *TEST_REQUIREMENTS)]
    installed = _run(python, "-m", "pip", "install", "-q", "-e", str(ROOT), requirement, *pinned)
    if installed.returncode:
        return Result(passed=False, line=f"{requirement}: installation failed\n{installed.stdout[-2_000:]}")
    version = _run(python, "-c", f"from importlib.metadata import version; print(version({package!r}))")
    # Warnings of old versions are ignored; current versions are tested with warnings as errors.
    completed = _run(
        python, "-m", "pytest", "-W", "default", "-rs", *[f"tests/adapters/errors/{path}" for path in tests.split()]
    )
    lines = completed.stdout.strip().splitlines()
    # A skipped import means that the installed package was not tested.
    passed = completed.returncode == 0 and "could not import" not in completed.stdout
    summary = lines[-1] if lines else f"exit code {completed.returncode}"
    return Result(
        passed=passed, line=f"{package} {version.stdout.strip()}: {summary if passed else completed.stdout[-4_000:]}"
    )


def _run(python: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603  # own interpreter, fixed arguments
        [python, *arguments], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )


def main() -> int:
    """Test each package; return 1 if one failed, otherwise 0."""
    with tempfile.TemporaryDirectory() as directory, ThreadPoolExecutor() as pool:
        packages = [anthropic, openai, google_genai, mcp, litellm]
        results = pool.map(lambda test: test(Path(directory) / test.__name__), packages)
        failed = 0
        for result in results:
            print("ok  " if result.passed else "FAIL", result.line, flush=True)
            failed += not result.passed
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
