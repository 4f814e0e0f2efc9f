"""An empty mapping that stays empty: a default which, unlike a mapping proxy, can be copied and pickled."""

from __future__ import annotations

from typing import Any, NoReturn


class FrozenEmptyDict(dict[str, Any]):
    """Has no entries, and takes none."""

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("this mapping is a shared default and stays empty: make a dict of your own")

    __setitem__ = setdefault = update = __ior__ = _refuse
