"""Patterns that are compiled when they are first asked: who names one error should not wait for all of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, AnyStr, Generic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Pattern(Generic[AnyStr]):
    """As `re.Pattern`; a method that was asked for once is the compiled pattern's own."""

    match: Callable[..., re.Match[AnyStr] | None]
    search: Callable[..., re.Match[AnyStr] | None]
    finditer: Callable[..., Iterator[re.Match[AnyStr]]]
    findall: Callable[[AnyStr], list[Any]]
    sub: Callable[[AnyStr, AnyStr], AnyStr]

    def __init__(self, pattern: AnyStr, flags: int = 0) -> None:
        self._pattern: AnyStr = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        method = getattr(re.compile(self._pattern, self._flags), name)
        setattr(self, name, method)
        return method
