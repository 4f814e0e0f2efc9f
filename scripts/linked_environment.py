"""Environment with the wheel and the packages of one extra alone, linked from the environment that runs this script.

Nothing is downloaded: the development environment has the packages of every extra. What an extra does not require is not
there, as after `pip install 'rung[EXTRA]'`.
"""

from __future__ import annotations

import sys
import venv
import zipfile
from collections import deque
from email.parser import HeaderParser
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_OUTSIDE: Final = ".."  # scripts and data files, which no import needs


class WheelMetadata(NamedTuple):
    """Requirements and extras of a wheel."""

    requirements: tuple[str, ...]
    extras: tuple[str, ...]


def read_metadata(wheel: Path) -> WheelMetadata:
    """Return the requirements and extras that the wheel declares."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        headers = HeaderParser().parsestr(archive.read(name).decode())
    return WheelMetadata(tuple(headers.get_all("Requires-Dist", [])), tuple(headers.get_all("Provides-Extra", [])))


def requirement_closure(requirements: Sequence[str], extra: str) -> set[str]:
    """Return the names of all packages that `rung` with this extra requires, directly or not."""
    found: set[str] = set()
    seen: set[tuple[str, str]] = set()
    pending = deque([("rung", extra)])
    while pending:
        name, wanted = pending.popleft()
        if (name, wanted) in seen:
            continue
        seen.add((name, wanted))
        found.add(name)
        for needed in _active(requirements if name == "rung" else _requirements_of(name), wanted):
            dependency = str(canonicalize_name(needed.name))
            pending.extend((dependency, also) for also in ("", *needed.extras))
    return found - {"rung"}


def own_requirements(requirements: Sequence[str], extra: str) -> set[str]:
    """Return the names of the packages that this extra of `rung` requires directly."""
    return {str(canonicalize_name(needed.name)) for needed in _active(requirements, extra)}


def _active(requirements: Iterable[str], extra: str) -> Iterator[Requirement]:
    for line in requirements:
        needed = Requirement(line)
        if needed.marker is None or needed.marker.evaluate({"extra": extra}):
            yield needed


def _requirements_of(name: str) -> list[str]:
    try:
        return distribution(name).requires or []
    except PackageNotFoundError:
        sys.exit(f"{name} is not installed: run `make constraints`, then make the environment again")


def make_environment(folder: Path, unpacked: Path, packages: Iterable[str]) -> Path:
    """Create an environment with links to the unpacked wheel and to the packages; return its interpreter."""
    venv.create(folder, symlinks=True)
    site = next((folder / "lib").glob("python3*/site-packages"))
    for part in unpacked.iterdir():
        (site / part.name).symlink_to(part)
    for name in sorted(packages):
        _link_files(name, site)
    return folder / "bin/python"


def _link_files(name: str, site: Path) -> None:
    """Link each file: packages of one namespace share a directory. Bytecode is shared, else each one compiles anew."""
    for file in distribution(name).files or []:
        if file.parts[0] == _OUTSIDE or "__pycache__" in file.parts:
            continue
        source, target = Path(str(file.locate())).resolve(), site / file
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            target.symlink_to(source)
        cache = source.parent / "__pycache__"
        if len(file.parts) > 1 and cache.is_dir() and not (target.parent / cache.name).exists():
            (target.parent / cache.name).symlink_to(cache)
