"""Supervise any command: `rung run` repeats it with the error on its standard input until its check passes."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

AGENT = """
task=$(cat)
case "$task" in
  *"app.py"*) echo "fixed app.py" | tee result ;;
  *) echo "Error: No such file or directory: 'app.py'" >&2; exit 1 ;;
esac
"""


def main() -> None:
    """Run a shell script as the agent. It succeeds once it is told about the file that it did not find."""
    with tempfile.TemporaryDirectory() as folder:
        agent = Path(folder) / "agent.sh"
        agent.write_text(AGENT)
        rung = [sys.executable, "-m", "rung", "run", "--no-journal", "--check", "test -s result"]
        done = subprocess.run(
            [*rung, "--", "sh", str(agent)],
            cwd=folder,
            env={**os.environ, "NO_COLOR": "1"},
            input="Fix the failing test.\n",
            text=True,
            check=False,
        )
        print(f"exit code {done.returncode}: {(Path(folder) / 'result').read_text().strip()}")


if __name__ == "__main__":
    main()
