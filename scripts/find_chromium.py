"""Find the Chromium for the browser tests; with `--install`, install one with apt if there is none."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def find() -> str | None:
    """Return the path in RUNG_CHROMIUM, or the first Chromium on PATH."""
    configured = os.environ.get("RUNG_CHROMIUM")
    return configured or next((path for path in map(shutil.which, NAMES) if path), None)


def install() -> str:
    """Install Chromium with apt and return its path; exit with instructions if that is not possible."""
    sudo = [] if os.geteuid() == 0 else [argument for argument in ("sudo", "-n") if shutil.which("sudo")]
    apt = shutil.which("apt-get")
    if apt is None or (os.geteuid() != 0 and not sudo):
        sys.exit("the browser tests require Chromium: install it, or set RUNG_CHROMIUM to its path")
    print("Chromium not found: running apt-get install chromium", flush=True)
    options = ["-o", "DPkg::Lock::Timeout=300", "-q"]
    for command in (["update"], ["install", "-y", "--no-install-recommends", "chromium"]):
        completed = subprocess.run([*sudo, apt, *options, *command], check=False, stdout=subprocess.DEVNULL)  # noqa: S603  # fixed arguments
        if completed.returncode != 0:
            sys.exit(f"apt-get {' '.join(command)} failed: install Chromium manually, or set RUNG_CHROMIUM to its path")
    return find() or sys.exit("Chromium is installed but not on PATH: set RUNG_CHROMIUM to its path")


if __name__ == "__main__":
    print(find() or (install() if "--install" in sys.argv else sys.exit("Chromium not found")))
