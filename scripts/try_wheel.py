"""Build the wheel, install it into an empty environment and use it as a new user would; then try each extra alone."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

from locked import locked_versions
from try_extras import try_extras

SMOKE_TEST = """
import sys
import rung
assert "asyncio" not in sys.modules, "import rung must not load asyncio"
def attempt(request):
    if not request.recovery:
        raise FileNotFoundError(2, "no such file")
    return "found " + request.model
outcome = rung.recover_sync(attempt, rung.Request(prompt="Find the file", model="small"))
assert (outcome.status, outcome.value) == ("recovered", "found small"), outcome
print("library: recovered on", outcome.path)
"""


def main() -> None:
    """Build, install and use the wheel, or use the one that is given; exit at the first failure."""
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        os.environ["RUNG_JOURNAL"] = str(folder / "journal.db")  # leave the user's journal and keys alone
        os.environ["XDG_DATA_HOME"] = os.environ["XDG_CONFIG_HOME"] = directory
        if sys.argv[1:]:
            wheel = Path(sys.argv[1]).resolve()
        else:
            run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)], quiet=True)
            wheel = next(folder.glob("rung-*.whl"))
        print("wheel:", wheel.name, f"{wheel.stat().st_size // 1024} KiB")
        require_dashboard(zipfile.ZipFile(wheel).namelist(), "the wheel")
        run([sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(folder)], quiet=True)
        with tarfile.open(next(folder.glob("rung-*.tar.gz"))) as sdist:
            require_dashboard(sdist.getnames(), "the sdist")
        venv.create(folder / "env", with_pip=True)
        python, rung = folder / "env/bin/python", folder / "env/bin/rung"
        pins = folder / "pins.txt"
        pins.write_text("".join(f"{name}=={version}\n" for name, version in locked_versions().items()))
        pip = [str(python), "-m", "pip", "--disable-pip-version-check", "-q"]
        install = [*pip, "install", "--no-compile", "-c", str(pins)]  # few of the packages are imported here

        run([*install, str(wheel)])
        run([str(python), "-W", "error", "-c", SMOKE_TEST])
        without_cli = subprocess.run([str(rung)], capture_output=True, text=True, check=False)  # noqa: S603  # own command
        assert without_cli.returncode == 2, without_cli  # noqa: S101, PLR2004  # this script is a test
        assert "rung[cli]" in without_cli.stderr, without_cli.stderr  # noqa: S101  # as above
        print("without click:", without_cli.stderr.strip())

        run([*install, f"{wheel}[service]"])
        run([str(rung), "serve", "--help"], quiet=True)
        run([*install, f"{wheel}[all]"])
        for arguments in (
            ["--version"],
            ["demo", "--fast"],
            ["ladder", "show", "task"],
            ["schema", "outcome"],
            ["lab", "faults"],
        ):
            run([str(rung), *arguments], quiet=True)
        run([str(rung), "run", "--", "true"])
        print("command line: version, demo, ladder, schema, lab and run work")
        try_extras(wheel, folder)


def require_dashboard(names: list[str], archive: str) -> None:
    """Exit with an error if the archive lacks the built dashboard."""
    if not any(name.endswith("service/static/index.html") for name in names):
        sys.exit(f"{archive} does not contain the dashboard")


def run(command: list[str], *, quiet: bool = False) -> None:
    """Run a command; exit with an error if it fails."""
    completed = subprocess.run(command, capture_output=quiet, text=True, check=False)  # noqa: S603  # own commands
    if completed.returncode != 0:
        sys.exit(
            f"{' '.join(command)} failed with exit code {completed.returncode}\n{completed.stdout or ''}{completed.stderr or ''}"
        )


if __name__ == "__main__":
    main()
