"""Arguments and outcomes at first sight: what is kept of them, and numbers that say whether to look closer."""

from __future__ import annotations

from typing import Any, Final
from zlib import crc32

from rung.detectors import forms


def held(args: Any) -> Any:
    """Arguments as they are kept: a mapping of small values as a copy, anything larger cut down."""
    if type(args) is dict:
        for value in args.values():
            if type(value) is str:
                if len(value) > forms.LIMIT:
                    break
            elif value is not None and type(value) not in _SCALARS:
                break
        else:
            return dict(args) if len(args) <= forms.ITEMS else forms.bounded(args)
    elif args is None or type(args) in _SCALARS:
        return args
    return forms.bounded(args)


_SCALARS: Final = frozenset({bool, int, float})


def given_number(args: Any) -> int:
    """A number for arguments, the same for equal ones on every machine."""
    if isinstance(args, Given):
        return args.number
    return crc32(repr(sorted(args.items()) if type(args) is dict else args).encode("utf-8", "replace"))


class Given:
    """Arguments of which only a number outlived a restart."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __eq__(self, other: object) -> bool:
        return self.number == given_number(other)

    __hash__ = None  # type: ignore[assignment]  # compared, never looked up
