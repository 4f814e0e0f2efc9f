"""The journal a program asks for: a given one, or this machine's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rung.store import open_journal
from rung.wiring.journals import where as chosen

if TYPE_CHECKING:
    from pathlib import Path

    from rung.store.journal import Journal


def journal(where: str | Path | None = None, *, project: str = "") -> Journal:
    """Open the journal at a path or a `postgresql://` URL; without one, this machine's, shared by all ways in."""
    return open_journal(chosen(None if where is None else str(where)), project=project)
