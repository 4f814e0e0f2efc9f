"""Simulated disk that can lose power, fill up and break: a VFS under SQLite, over real files.

Writes go to the real file at once, which stands for the system's cache. The simulated disk tracks what of each file
has been synced. At a power loss, each sector written since may have been stored, lost or torn.
"""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import apsw

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

SECTOR = 512
_NUMBERS = count()


class Write(NamedTuple):
    """Write that is not synced yet."""

    offset: int
    data: bytes


class Image:
    """Synced content of one file, and the writes since."""

    def __init__(self) -> None:
        self.safe = b""
        self.waiting: list[Write | int] = []  # a number truncates to this size
        self.listed = False  # its directory entry is synced

    def sync(self) -> None:
        for change in self.waiting:
            self.safe = _changed(self.safe, change)
        self.waiting.clear()
        self.listed = True

    def after_a_cut(self, random: Random, luck: float) -> bytes | None:
        """Return a possible content after a power loss; None when the file does not exist."""
        if not self.listed and random.random() > luck:
            return None
        data = self.safe
        for change in self.waiting:
            for piece in _sectors(change):
                chance = random.random()
                if chance < luck:
                    data = _changed(data, piece)
                elif isinstance(piece, Write) and chance < luck + (1 - luck) / 4:  # torn
                    data = _changed(data, Write(piece.offset, piece.data[: random.randrange(len(piece.data))]))
        return data


def _sectors(change: Write | int) -> list[Write | int]:
    if isinstance(change, int):
        return [change]
    at, data = change
    parts: list[Write | int] = []
    while data:
        size = SECTOR - at % SECTOR
        parts.append(Write(at, data[:size]))
        at, data = at + size, data[size:]
    return parts


def _changed(data: bytes, change: Write | int) -> bytes:
    if isinstance(change, int):
        return data[:change]
    data = data.ljust(change.offset, b"\0")
    return data[: change.offset] + change.data + data[change.offset + len(change.data) :]


class Disk(apsw.VFS):
    """Simulated disk: use its `name` as the `vfs` of a back end. `fault` is called before each operation and may raise."""

    def __init__(self) -> None:
        self.name = f"disk-{next(_NUMBERS)}"
        self.images: dict[Path, Image] = {}
        self.ghosts: dict[Path, bytes] = {}  # deleted, but the deletion is not synced
        self.acts = 0
        self.cut_at: int | None = None  # number of the operation at which the power fails
        self.off = False
        self.forgetful = False  # after a failed sync, the unsynced data is never written (as on Linux)
        self.fault: Callable[[str, Path], object] = lambda act, path: None
        super().__init__(self.name, "")

    def after_a_cut(self, random: Random, into: Path) -> None:
        """Write the surviving content to a new directory."""
        luck = random.choice((0.0, 0.1, 0.5, 0.9, 1.0))
        into.mkdir()
        left = {path: image.after_a_cut(random, luck) for path, image in self.images.items()}
        for path, data in self.ghosts.items():
            if left.get(path) is None and random.random() < 0.5:
                left[path] = data
        for path, found in left.items():
            if found is not None:
                (into / path.name).write_bytes(found)

    def act(self, what: str, path: Path) -> None:
        """Count an operation on a file and inject faults."""
        self.acts += 1
        if self.acts == self.cut_at:
            self.off = True
        if self.off:
            raise broken("no power")
        self.fault(what, path)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        if self.off:
            raise broken("no power")
        return (
            DiskFile(self, name, flags) if name is not None else apsw.VFSFile("", None, flags)
        )  # a temporary file has no name

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        path = Path(filename)
        self.act("delete", path)
        super().xDelete(filename, syncdir)
        image = self.images.pop(path, None)
        if image is not None and image.listed:
            self.ghosts[path] = image.safe
        if syncdir:
            self.ghosts.pop(path, None)


class DiskFile(apsw.VFSFile):
    """File on the simulated disk."""

    def __init__(self, disk: Disk, name: Any, flags: list[int]) -> None:
        self.disk = disk
        self.path = Path(name.filename() if isinstance(name, apsw.URIFilename) else name)
        existed = self.path.exists()
        super().__init__("", name, flags)
        if self.path not in disk.images:
            image = disk.images[self.path] = Image()
            if existed:
                image.safe, image.listed = self.path.read_bytes(), True

    def excepthook(self, *_: object) -> bool:
        """Swallow errors that a closing file cannot report."""
        return True

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        if self.disk.off:
            raise broken("no power")
        self.disk.fault("read", self.path)
        return super().xRead(amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self.disk.images[self.path].waiting.append(Write(offset, bytes(data)))  # a power loss may tear this write, too
        self.disk.act("write", self.path)
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        self.disk.images[self.path].waiting.append(newsize)
        self.disk.act("truncate", self.path)
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:  # noqa: N802
        image = self.disk.images[self.path]
        try:
            self.disk.act("sync", self.path)
        except apsw.Error:
            if self.disk.forgetful and not self.disk.off:
                image.waiting.clear()
            raise
        image.sync()
        if self.path.name.endswith(("-wal", "-journal")):  # SQLite syncs the directory with these
            for other in self.disk.images.values():
                other.listed = True
            self.disk.ghosts.clear()


def broken(why: str) -> apsw.IOError:
    """EIO."""
    return apsw.IOError(why)


def full() -> apsw.FullError:
    """ENOSPC."""
    return apsw.FullError("database or disk is full")
