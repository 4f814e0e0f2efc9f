"""Fault scenarios in separate processes. Run as `python -m tests.store.faults.processes WHAT ARGUMENTS`."""

from __future__ import annotations

import errno
import json
import mmap
import os
import struct
import sys
import tempfile
import threading
import time
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import apsw

from rung.core.domain.errors import RungError
from rung.store.backends.sqlite import SqliteBackend
from rung.store.journal.journal import Journal
from tests.store.faults.disk import Disk
from tests.store.faults.stories import BEGAN, Teller
from tests.store.faults.trials import LONG, DiskSwitch, trial

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.store.faults.stories import Part
    from tests.store.faults.trials import Switch

NOBODY = 65534


def lock(path: str) -> None:
    """Lock the file until a line is read from standard input."""
    connection = apsw.Connection(path)
    connection.execute("BEGIN EXCLUSIVE")
    sys.stdout.write("locked\n")
    sys.stdout.flush()
    sys.stdin.readline()
    connection.execute("ROLLBACK")
    connection.close()


class Orders:
    """Faults injected below the whole process: see faultfs.c."""

    def __init__(self, path: str) -> None:
        with Path(path).open("r+b") as file:
            self.page = mmap.mmap(file.fileno(), 4096)

    def on(self, act: str, error: str) -> None:
        number = getattr(errno, error)
        self.page[:8] = struct.pack("ii", *((number, 0) if act == "write" else (0, number)))

    def off(self) -> None:
        self.page[:8] = bytes(8)


def trouble(path: str, act: str, error: str) -> None:
    """Run a trial on a failing disk; without faultfs.so, the simulated disk under SQLite injects the faults."""
    orders = os.environ.get("FAULT_ORDERS")
    disk = Disk()
    switch: Switch = Orders(orders) if orders else DiskSwitch(disk)
    seen, teller = trial(SqliteBackend(path, vfs=None if orders else disk.name), switch, Random(7), act, error)
    sys.stdout.write(json.dumps({"seen": seen, "places": list(teller.told)}))


def append(path: Path, number: int, said: Path) -> None:
    """Append forever from three threads; print what was acknowledged, and only that."""
    os.dup2(os.open(said, os.O_WRONLY | os.O_APPEND), 1)
    journal = Journal(SqliteBackend(path), on_warning=lambda _: None)
    turn = threading.Lock()
    teller = Teller(Random(number), f"life{number}", BEGAN + 10_000 * number)

    def work() -> None:
        while True:
            with turn:  # append in the order of the events
                part = teller.part()
                ticket = journal.append(*part)
            if ticket.result(LONG) is not None:
                _say(part)

    for _ in range(3):
        threading.Thread(target=work).start()


def _say(part: Part) -> None:
    os.write(
        1, "".join(f"{incident} {n}\n" for incident, n in part.places).encode()
    )  # one call: written completely or not at all


def fork(path: str, seed: str) -> None:
    """Fork at any moment while appending; parent and children print what was acknowledged."""
    random = Random(int(seed))
    journal = Journal(SqliteBackend(path), on_warning=lambda _: None)
    stop = threading.Event()
    teller = Teller(Random(int(seed)), "parent")

    def work() -> None:
        while not stop.is_set():
            part = teller.part()
            if journal.append(*part).result(LONG) is not None:
                _say(part)

    thread = threading.Thread(target=work)
    thread.start()
    children = []
    for number in range(6):
        time.sleep(random.random() / 50)
        journal.append(*Teller(Random(number), f"quiet{number}", BEGAN + 1_000_000 + number * 1_000).part())
        child = os.fork()
        if child == 0:
            _in_child(journal, Teller(Random(number), f"child{number}", BEGAN + 2_000_000 + number * 10_000), number)
        children.append(child)
    time.sleep(random.random() / 20)
    stop.set()
    thread.join()
    journal.close()
    for child in children:
        os.waitpid(child, 0)


def _in_child(journal: Journal, teller: Teller, number: int) -> None:
    try:
        for _ in range(60):
            part = teller.part()
            if journal.append(*part).result(LONG) is not None:
                _say(part)
        if number % 2:
            journal.close()
    finally:
        os._exit(0)  # exit at once, as if killed


def rights(where: str) -> None:
    """Run as user nobody while the directory loses and regains its permissions."""
    with tempfile.TemporaryDirectory() as warm:  # load late imports now: user nobody may not read them
        _lose_rights(Path(warm) / "of ours", lambda: None)
    Path(where).mkdir()
    os.chown(where, NOBODY, NOBODY)
    sys.stdout.write(json.dumps(_lose_rights(Path(where), lambda: os.setuid(NOBODY))))


def _lose_rights(directory: Path, become: Callable[[], None]) -> list[object]:
    directory.mkdir(exist_ok=True)
    if os.getuid() == 0:
        become()
    told: list[str] = []
    teller = Teller(Random(3))
    journal = Journal(SqliteBackend(directory / "journal.db"), on_warning=told.append)
    steps: list[object] = [journal.append(*teller.part()).result(LONG) is not None]
    directory.chmod(0)
    steps.append(journal.append(*teller.part()).result(LONG) is not None)  # the file is still open
    journal.close()
    steps.extend(journal.append(*teller.part()).result(LONG) is not None for _ in range(3))
    try:
        Journal(SqliteBackend(directory / "another.db"))
    except RungError as error:
        steps.append(str(error))
    directory.chmod(0o700)
    steps.append(journal.flush(LONG))
    journal.close()
    return [steps, told, list(teller.told)]


COMMANDS: dict[str, Callable[..., None]] = {"lock": lock, "trouble": trouble, "fork": fork, "rights": rights}

if __name__ == "__main__":
    COMMANDS[sys.argv[1]](*sys.argv[2:])
