"""Registry of error readers: functions that read evidence off the objects of one package.

The core knows none by itself. `READERS` has, by top-level package, the function that looks first at objects whose
class, or a base of it, comes from there; or its `module:name`, imported when the first such object is seen. A reader
reports what is in the object itself, not in its causes; None: nothing. `import rung` loads this module, so it imports
nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    from rung.core.domain.failures import Evidence

    Reader: TypeAlias = Callable[[object], Evidence | None]

READERS: dict[str, Reader | str] = {}
_TABLES: list[str] = []


def register_table(target: str) -> None:
    """Add the readers of a table (`module:name` of a mapping from packages to readers), loaded at the first lookup."""
    _TABLES.append(target)


def reader_for(package: str) -> Reader | None:
    """Reader of a package's objects, imported if need be."""
    if _TABLES:
        for target in _TABLES:
            for name, reader in _load(target).items():
                READERS.setdefault(name, reader)
        _TABLES.clear()  # after it is complete: another thread may be here too
    reader = READERS.get(package)
    if not isinstance(reader, str):
        return reader
    found: Reader = _load(reader)
    READERS[package] = found
    return found


def _load(target: str) -> Any:
    from importlib import import_module

    module, _, name = target.partition(":")
    return getattr(import_module(module), name)
