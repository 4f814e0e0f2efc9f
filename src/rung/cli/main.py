"""Entry point of `rung`. It imports only click; each command is imported when it is used."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; wrong usage exits with code 2 before anything runs."""
    from rung.cli.terminal import use_printable_streams

    use_printable_streams()
    try:
        from rung.cli.group import root

        root(prog_name="rung")
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in ("click", "rich"):
            raise
        sys.exit(_report_missing_package(package))


def _report_missing_package(name: str) -> int:
    sys.stderr.write(f"rung: the command line needs {name}: pip install 'rung[cli]'\n")
    return 2


if __name__ == "__main__":
    main()
