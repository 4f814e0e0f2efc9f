"""The entry point of `rung`: nothing but click is loaded here, and each command only when it is used."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; misuse ends with exit code 2 and nothing run."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal that cannot show a character shows a "?"
    try:
        from rung.cli.group import root

        root(prog_name="rung")
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in ("click", "rich"):
            raise
        sys.exit(_missing(package))


def _missing(name: str) -> int:
    sys.stderr.write(f"rung: the command line needs {name}: pip install 'rung[cli]'\n")
    return 2


if __name__ == "__main__":
    main()
