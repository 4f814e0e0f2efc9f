"""`rung` that kills itself at a write: python killed_rung.py NUMBER before|after WORDS… The number of writes is in the file `writes`."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from rung.cli.main import main
from rung.store.journal.journal import Journal


def kill_at(number: int, when: str) -> None:
    """Let every write of a journal count, and be the last if it is the one."""
    writes = 0

    def mortal(write: Any) -> Any:
        def counted(journal: Journal, *arguments: Any) -> Any:
            nonlocal writes
            mine, writes = writes, writes + 1
            Path("writes").write_text(str(writes))
            if mine == number and when == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            future = write(journal, *arguments)
            if mine == number:
                future.exception()
                os.kill(os.getpid(), signal.SIGKILL)
            return future

        return counted

    for name in ("write", "append_if"):
        setattr(Journal, name, mortal(getattr(Journal, name)))


if __name__ == "__main__":
    _, place, moment, *words = sys.argv
    sys.argv = ["rung", *words]
    kill_at(int(place), moment)
    main()
