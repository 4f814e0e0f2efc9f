"""Where an agent's hook begins: an event on standard input, our answer on standard output, in milliseconds.

Run as a file by an interpreter that loads nothing it need not (`python -I -S entry.py AGENT DIRECTORY`), or as
`rung-hook AGENT`. Whatever goes wrong here, the agent gets `{}` and exit code 0, and a line is left in the crash log.
"""

from __future__ import annotations

import os
import sys


def main(arguments: list[str] | None = None) -> int:
    """Answer one event; always exit code 0, always JSON."""
    given = sys.argv[1:] if arguments is None else arguments
    answer, place, wake, near = b"{}", "", False, False
    from rung.hooks.crash_log import SECONDS, crashed, limit

    try:
        from rung.hooks.data_dir import directory

        place = given[1] if len(given) > 1 else directory()
        limit(SECONDS)
        from rung.hooks.resident_client import asked

        told = sys.stdin.buffer.read()
        found = asked(place, given[0] if given else "", told)
        if found is None:
            from rung.hooks.handlers import answered

            answer, wake, near = answered(given[0] if given else "", place, told)
        else:
            answer = found
    except BaseException as error:  # noqa: BLE001  # of all that may happen here, nothing may happen to the agent
        crashed(place, given[0] if given else "", error)
    limit(0)
    try:
        os.write(1, answer)
        if wake:
            from rung.hooks.spool import wake_drain

            wake_drain(place)
        if near:
            from rung.hooks.resident_client import start

            start(place)
    except BaseException as error:  # noqa: BLE001  # as above
        crashed(place, given[0] if given else "", error)
    return 0


if __name__ == "__main__":
    # By the file's own place: with -I -S there is no site-packages to find it in.
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))  # noqa: PTH100, PTH120
    sys.exit(main())
