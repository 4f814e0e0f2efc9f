"""An immutable dict: unlike a mapping proxy, it can be copied and pickled, and so can the values that contain it."""

from __future__ import annotations

from typing import Any, NoReturn, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class FrozenDict(dict[K, V]):
    """Dict that rejects writes."""

    def _reject_write(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("this mapping is read-only: create a new dict")

    __setitem__ = __delitem__ = setdefault = update = __ior__ = pop = popitem = clear = _reject_write

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what makes an equal dict: the default way would write into an empty one."""
        return type(self), (dict(self),)
