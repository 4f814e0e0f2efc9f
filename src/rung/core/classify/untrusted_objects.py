"""Reads third-party objects, whose attributes and classes may raise anything."""

from __future__ import annotations

from typing import Any, Final


def attribute(holder: object, name: str) -> Any:
    """Return an attribute; None if it does not exist or reading it raises."""
    try:
        return getattr(holder, name, None)
    except Exception:  # a third-party property may raise anything
        return None


def class_name(value: object) -> str:
    """Return the name of a value's class, past whatever its metaclass does."""
    return str(_TYPE_NAME(type(value)))


_TYPE_NAME: Final = type.__dict__["__name__"].__get__


def int_or_none(value: object) -> int | None:
    """Return an integer as `int`; None for any other type and for bool."""
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else None
