"""Text values that every back end can store: without NULs and lone surrogates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


def storable(values: Sequence[Any]) -> Sequence[Any]:
    """Replace NULs and lone surrogates, which a store's texts cannot hold."""
    for value in values:
        if type(value) is str and ("\0" in value or not value.isascii()):
            return [_storable_text(value) if type(value) is str else value for value in values]
    return values


def _storable_text(text: str) -> str:
    if "\0" in text:
        text = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
