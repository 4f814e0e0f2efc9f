"""Entry point of `rung`. It imports only click; each command is imported when it is used."""

from __future__ import annotations

import sys
from importlib.util import find_spec


def main() -> None:
    """Run the command line; wrong usage exits with code 2 before anything runs."""
    from rung.cli.lost_interrupts import deliver_lost_interrupts
    from rung.cli.terminal import use_printable_streams
    from rung.engine.log_switch import LOG_SWITCH

    deliver_lost_interrupts()
    use_printable_streams()
    LOG_SWITCH.is_on = False  # the commands show recoveries in their own way
    for package in ("click", "rich"):  # other packages bring click alone, and commands load rich late
        if not _is_installed(package):
            sys.exit(_report_missing_package(package))
    from rung.cli.group import root

    root(prog_name="rung")


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # what an import hook says of a package that it hides
        return False


def _report_missing_package(name: str) -> int:
    sys.stderr.write(f"rung: the command line needs the package {name}: pip install 'rung[cli]'\n")
    return 2


if __name__ == "__main__":
    main()
