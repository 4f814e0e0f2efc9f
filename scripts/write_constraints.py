"""Write constraints.txt and requirements/: every package of an environment, with version and hashes.

Run by `make constraints`; needs uv. Versions that are locked already stay; `--upgrade` takes the newest. The files name
no package index; each machine configures its own.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
LOCKS: Final = {
    "constraints.txt": ("pyproject.toml", "--all-extras", "--group", "dev"),
    "requirements/corpus.txt": ("pyproject.toml", "--group", "corpus"),
    "requirements/fuzz.txt": (
        "pyproject.toml",
        *("--extra", "gateway", "--extra", "service", "--extra", "mcp"),
        "--group",
        "fuzz",
    ),
    "requirements/litellm.txt": ("--group", "litellm"),
    "requirements/node.txt": ("--group", "node"),
    "requirements/temporal-server.txt": ("--group", "temporal-server"),
    # The demo of `make run` has the versions that the gate tests.
    "requirements/run.txt": ("pyproject.toml", "--extra", "service", "--group", "run", "-c", "constraints.txt"),
    "requirements/temporal-openai-agents.txt": ("--group", "temporal-openai-agents"),
    # The image has the versions that the gate tests.
    "deploy/requirements.txt": (
        "pyproject.toml",
        *("--extra", "gateway", "--extra", "service", "--extra", "postgres"),
        *("--extra", "dbos", "--extra", "temporal", "--extra", "otel", "-c", "constraints.txt"),
    ),
    "deploy/build-requirements.txt": ("deploy/build-requirements.in", "-c", "requirements/node.txt"),
    "requirements/deploy.txt": ("requirements/deploy.in",),
    "requirements/docs.txt": ("requirements/docs.in",),
    "requirements/release.txt": ("requirements/release.in",),
    # Each client of `make clients` has an environment of its own.
    **{
        f"bench/clients/locks/{path.stem}.txt": (str(path.relative_to(ROOT)),)
        for path in sorted(ROOT.glob("bench/clients/locks/*.in"))
    },
}


def main() -> None:
    """Lock each environment."""
    uv = shutil.which("uv")
    if uv is None:
        sys.exit("write_constraints: needs uv")
    compile_ = [
        uv,
        "pip",
        "compile",
        "-q",
        "--universal",
        "--python-version",
        "3.11",
        "--generate-hashes",
        "--no-annotate",
    ]
    for name, sources in LOCKS.items():
        command = [*compile_, "--custom-compile-command", "make constraints", *sys.argv[1:], *sources, "-o", name]
        subprocess.run(command, cwd=ROOT, check=True)  # noqa: S603  # own commands


if __name__ == "__main__":
    main()
