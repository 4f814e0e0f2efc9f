"""Entry point of a hook: reads an event from standard input and writes the response to standard output.

Runs as a file with minimal imports (`python -I -S entry.py AGENT DIRECTORY [PORT]`), or as `rung-hook AGENT`. On any error
the agent gets `{}` and exit code 0, and the crash log gets a line.
"""

from __future__ import annotations

import os
import sys


def main(arguments: list[str] | None = None) -> int:
    """Answer one event. Writes JSON, except for --help, and always returns 0."""
    args = sys.argv[1:] if arguments is None else arguments
    agent = args[0] if args else ""
    if agent in ("-h", "--help"):
        sys.stdout.write(
            "rung-hook AGENT [DATA_DIR [PORT]]: answers an event of a coding agent, which is on standard input.\n"
        )
        sys.stdout.write("Agents call it; install it with: rung hooks install\n")
        return 0
    answer, data_dir, needs_drain, needs_server = b"{}", "", False, False
    from rung.hooks.crash_log import MAX_HOOK_SECONDS, log_crash, set_time_limit

    try:
        from rung.hooks.data_dir import default_data_dir

        data_dir = args[1] if len(args) > 1 else default_data_dir()
        set_time_limit(MAX_HOOK_SECONDS)
        from rung.hooks.resident_client import send_event

        payload = sys.stdin.buffer.read()
        port = int(args[2]) if len(args) > 2 else 0  # noqa: PLR2004  # of `rung hooks serve --http`
        received = send_event(data_dir, agent, payload, port)
        if received is None:
            from rung.hooks.handlers import handle_event

            answer, needs_drain, needs_server = handle_event(agent, data_dir, payload)
            needs_server = needs_server and not port
        else:
            answer = received
    except BaseException as error:  # noqa: BLE001  # a failing hook must never affect the agent
        log_crash(data_dir, agent, error)
    set_time_limit(0)
    try:
        os.write(1, answer)
        if needs_drain:
            from rung.hooks.spool import start_drain

            start_drain(data_dir)
        if needs_server:
            from rung.hooks.resident_client import start_server

            start_server(data_dir)
    except BaseException as error:  # noqa: BLE001  # as above
        log_crash(data_dir, agent, error)
    return 0


if __name__ == "__main__":
    # With -I -S there is no site-packages, so the package is found relative to this file.
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))  # noqa: PTH100, PTH120
    sys.exit(main())
