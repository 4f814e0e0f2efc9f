"""Regular expressions that are compiled on first use: one error needs only a few of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, AnyStr, Generic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class LazyPattern(Generic[AnyStr]):
    """A lazily compiled `re.Pattern`; after its first use, a method is that of the compiled pattern."""

    match: Callable[..., re.Match[AnyStr] | None]
    search: Callable[..., re.Match[AnyStr] | None]
    finditer: Callable[..., Iterator[re.Match[AnyStr]]]
    findall: Callable[[AnyStr], list[Any]]
    split: Callable[[AnyStr], list[Any]]
    sub: Callable[[AnyStr, AnyStr], AnyStr]

    def __init__(self, pattern: AnyStr, flags: int = 0) -> None:
        self._pattern: AnyStr = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        method = getattr(re.compile(self._pattern, self._flags), name)
        setattr(self, name, method)
        return method
