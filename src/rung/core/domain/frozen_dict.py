"""An immutable empty dict: a shared default value that, unlike a mapping proxy, can be copied and pickled."""

from __future__ import annotations

from typing import Any, NoReturn


class FrozenEmptyDict(dict[str, Any]):
    """Empty dict that rejects writes."""

    def _reject_write(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("this mapping is a shared default and read-only: create a new dict")

    __setitem__ = setdefault = update = __ior__ = _reject_write
