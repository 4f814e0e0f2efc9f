"""Find the Chromium that the browser tests drive; with `--install`, get one by apt where there is none."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def find() -> str | None:
    """The path of a Chromium: what RUNG_CHROMIUM names, or the first one on PATH."""
    named = os.environ.get("RUNG_CHROMIUM")
    return named or next((path for path in map(shutil.which, NAMES) if path), None)


def install() -> str:
    """Get one by apt, saying so; a machine without apt is told what to do."""
    root = [] if os.geteuid() == 0 else [word for word in ("sudo", "-n") if shutil.which("sudo")]
    apt = shutil.which("apt-get")
    if apt is None or (os.geteuid() != 0 and not root):
        sys.exit("the browser tests need Chromium: install it, or set RUNG_CHROMIUM to its path")
    print("no Chromium found: installing it with apt-get install chromium", flush=True)
    wait = ["-o", "DPkg::Lock::Timeout=300", "-q"]
    for words in (["update"], ["install", "-y", "--no-install-recommends", "chromium"]):
        done = subprocess.run([*root, apt, *wait, *words], check=False, stdout=subprocess.DEVNULL)  # noqa: S603  # our own words
        if done.returncode != 0:
            sys.exit(f"apt-get {' '.join(words)} failed: install Chromium by hand, or set RUNG_CHROMIUM to its path")
    return find() or sys.exit("apt installed Chromium, but none is on PATH: set RUNG_CHROMIUM to its path")


if __name__ == "__main__":
    print(find() or (install() if "--install" in sys.argv else sys.exit("no Chromium found")))
