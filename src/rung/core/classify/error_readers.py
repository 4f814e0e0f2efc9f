"""Registry of error readers: functions that extract evidence from the objects of one package.

`READERS` maps a top-level package to the reader for objects whose class, or a base class, comes from that package; or
to the reader's `module:name`, imported on first use. A reader reads the object itself, not its causes, and returns
None if it has no evidence. The core registers no reader. `import rung` loads this module, so it imports nothing.
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
    """Return the reader for a package's objects; import it on first use."""
    if _TABLES:
        for target in _TABLES:
            for name, reader in _load(target).items():
                READERS.setdefault(name, reader)
        _TABLES.clear()  # last, so that a concurrent lookup never sees an incomplete `READERS`
    reader = READERS.get(package)
    if not isinstance(reader, str):
        return reader
    loaded: Reader = _load(reader)
    READERS[package] = loaded
    return loaded


def _load(target: str) -> Any:
    from importlib import import_module

    module, _, name = target.partition(":")
    return getattr(import_module(module), name)
