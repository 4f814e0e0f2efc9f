"""JSON Schemas (2020-12) of Rung's JSON contracts and of the policy file."""

from __future__ import annotations

from importlib.resources import files


def names() -> list[str]:
    """Return the names of all schemas, sorted."""
    return sorted(
        entry.name.removesuffix(".json") for entry in files(__name__).iterdir() if entry.name.endswith(".json")
    )


def text(name: str) -> str:
    """Return the text of a schema; `name` is one of `names()`."""
    return (files(__name__) / f"{name}.json").read_text(encoding="utf-8")
