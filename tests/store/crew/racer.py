"""One of many processes that want the same: claims what it is told to, and says what came of it."""

from __future__ import annotations

import sys

from rung.core.domain.errors import ClaimBlocked
from rung.store.crew.table import CrewTable


def say(words: str) -> None:
    """A line, at once."""
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def main(place: str, session: str) -> None:
    """For each line, a task: `won` and the generation, or `blocked`; for `next`, which one it got."""
    with CrewTable.open(place) as table:
        say("ready")
        for line in sys.stdin:
            if line == "next\n":
                got = table.claim_next(session)
                say(got.task_id if got else "nothing")
                continue
            try:
                say(f"won {table.claim(line.strip(), session).generation}")
            except ClaimBlocked:
                say("blocked")


if __name__ == "__main__":
    main(*sys.argv[1:])
