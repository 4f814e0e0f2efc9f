"""The JSON Schemas (2020-12) of what Rung writes and reads."""

from __future__ import annotations

from importlib.resources import files


def names() -> list[str]:
    """The schemas there are."""
    return sorted(
        entry.name.removesuffix(".json") for entry in files(__name__).iterdir() if entry.name.endswith(".json")
    )


def text(name: str) -> str:
    """A schema as it stands in its file; `name` is one of `names()`."""
    return (files(__name__) / f"{name}.json").read_text(encoding="utf-8")
