"""Build the wheel, put it into an empty environment, and use it as a stranger would."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent

USE = """
import sys
import rung
assert "asyncio" not in sys.modules, "import rung must not load asyncio"
def attempt(request):
    if not request.recovery:
        raise FileNotFoundError(2, "no such file")
    return "found " + request.model
outcome = rung.recover_sync(attempt, rung.Request(prompt="look", model="small"))
assert (outcome.status, outcome.value) == ("recovered", "found small"), outcome
print("library: recovered on", outcome.path)
"""


def main() -> None:
    """Build, install, use; stop at the first thing that does not work."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        os.environ["RUNG_JOURNAL"] = str(place / "journal.db")  # not this user's own
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
        run([*pip, "wheel", "--no-deps", "-w", str(place), str(ROOT)])
        wheel = next(place.glob("rung-*.whl"))
        print("wheel:", wheel.name, f"{wheel.stat().st_size // 1024} KiB")
        has_page(zipfile.ZipFile(wheel).namelist(), "the wheel")
        run([sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(place)], quiet=True)
        with tarfile.open(next(place.glob("rung-*.tar.gz"))) as sdist:
            has_page(sdist.getnames(), "the sdist")
        venv.create(place / "env", with_pip=True)
        python, rung = place / "env/bin/python", place / "env/bin/rung"
        into = [str(python), "-m", "pip", "--disable-pip-version-check", "-q", "install"]

        run([*into, str(wheel)])
        run([str(python), "-W", "error", "-c", USE])
        bare = subprocess.run([str(rung)], capture_output=True, text=True, check=False)  # noqa: S603  # our own command
        assert bare.returncode == 2, bare  # noqa: S101, PLR2004  # this script is a test
        assert "rung[cli]" in bare.stderr, bare.stderr  # noqa: S101  # as above
        print("without click:", bare.stderr.strip())

        run([*into, f"{wheel}[all]"])
        for words in (
            ["--version"],
            ["ladder", "show", "task"],
            ["schema", "outcome"],
            ["lab", "faults"],
        ):
            run([str(rung), *words], quiet=True)
        run([str(rung), "run", "--", "true"])
        print("command: version, ladder, schema, lab, run work")


def has_page(names: list[str], where: str) -> None:
    """Does it carry the built dashboard?"""
    if not any(name.endswith("service/static/index.html") for name in names):
        sys.exit(f"{where} carries no dashboard")


def run(words: list[str], *, quiet: bool = False) -> None:
    """Run a command; its failure is ours."""
    done = subprocess.run(words, capture_output=quiet, text=True, check=False)  # noqa: S603  # our own commands
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)} failed with {done.returncode}\n{done.stdout or ''}{done.stderr or ''}")


if __name__ == "__main__":
    main()
