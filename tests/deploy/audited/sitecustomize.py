"""Loaded by Python at its start: appends every path that the process creates or writes to the file RUNG_TEST_WRITES."""

import os
import sys
from typing import Any

_LOG = os.open(os.environ["RUNG_TEST_WRITES"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_PATHS = {"os.mkdir": 0, "os.rename": 1, "os.link": 1, "os.symlink": 1, "os.remove": 0, "os.chmod": 0}


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and isinstance(arguments[0], (str, bytes)) and arguments[2] & _WRITES:
        path = arguments[0]
    elif event == "socket.bind" and isinstance(arguments[1], (str, bytes)):
        path = arguments[1]
    elif event in _PATHS:
        path = arguments[_PATHS[event]]
    else:
        return
    os.write(_LOG, os.path.abspath(os.fsdecode(path)).encode() + b"\n")  # noqa: PTH100  # pathlib opens files


sys.addaudithook(_hook)
