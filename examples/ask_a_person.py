"""Ask a person when no rung can help: the recovery pauses until the answer."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import rung

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rung.core.domain.events import Ask
    from rung.core.domain.incident import Incident

replies: Iterator[ValueError | str] = iter([ValueError("the invoice has no date"), "invoice 17 booked"])


def book(_: rung.Request) -> str:
    """Fail once, then succeed."""
    reply = next(replies)
    if isinstance(reply, ValueError):
        raise reply
    return reply


def ask(question: Ask, _: Incident) -> str:
    """Ask on the terminal; answer `retry` where there is none."""
    print(question.question)
    for option in question.options:
        print(f"  {option.id:12} {option.label}")
    return input("> ").strip() if sys.stdin.isatty() else "retry"


def main() -> None:
    """Recover with a person at hand."""
    outcome = rung.recover_sync(book, "Book the invoice", policy="call", ask=ask)
    print(f"{outcome.status}: {outcome.value}")


if __name__ == "__main__":
    main()
