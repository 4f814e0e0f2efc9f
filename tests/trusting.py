"""Settings files that the user has trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rung.wiring import trust

if TYPE_CHECKING:
    from pathlib import Path


def write_trusted(path: Path, text: str) -> None:
    """Write a settings file, and trust it as `rung trust` does."""
    path.write_text(text, encoding="utf-8")
    trust.decide(path, path.read_bytes(), trust.Decision.TRUSTED)
