"""Trial of a journal on a disk that fails for a while, with any fault injector."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from rung.store.journal.journal import Journal
from tests.store.faults.disk import broken, full
from tests.store.faults.stories import Teller

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from rung.store.backends.port import StoreBackend
    from tests.store.faults.disk import Disk

LONG = 30.0  # seconds after which a caller counts as blocked


class Switch(Protocol):
    """Fault injector."""

    def on(self, act: str, error: str) -> None:
        """Make every "write" or "sync" of the journal fail with "EIO" or "ENOSPC"."""
        ...

    def off(self) -> None:
        """Stop injecting faults."""
        ...


class DiskSwitch:
    """Fault injector in the simulated disk under SQLite."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk

    def on(self, act: str, error: str) -> None:
        def fault(what: str, path: Path) -> None:
            if what == act:
                raise broken("disk I/O error") if error == "EIO" else full()

        self.disk.fault = fault

    def off(self) -> None:
        self.disk.fault = lambda act, path: None


class Seen(NamedTuple):
    """Observations of a trial by callers and the user."""

    told: list[str]  # warnings to the user
    kept: list[bool]  # for each part appended during the fault: acknowledged as durable?
    trouble: str  # the journal's last error meanwhile
    written: bool  # finally


def trial(backend: StoreBackend, switch: Switch, random: Random, act: str, error: str) -> tuple[Seen, Teller]:
    """Append before, during and after a fault."""
    told: list[str] = []
    teller = Teller(random)
    journal = Journal(backend, on_warning=told.append)
    for _ in range(10):
        journal.append(*teller.part()).result(LONG)
    switch.on(act, error)
    kept = [journal.append(*teller.part()).result(LONG) is not None for _ in range(30)]
    trouble = journal.last_error
    for _ in range(5):
        journal.append(*teller.part())
    switch.off()
    written = journal.flush(LONG)
    for _ in range(5):
        assert journal.append(*teller.part()).result(LONG) is not None
    journal.close()
    return Seen(told, kept, trouble, written), teller


def check(seen: Seen) -> None:
    """Assert that work continued and that the user was warned once of the fault and once of its end."""
    assert not any(seen.kept), "what was not durable was acknowledged"
    assert seen.trouble
    assert seen.written
    first, last = seen.told
    assert first.startswith("the journal cannot be written (")
    assert last == "the journal is writable again; buffered events are written"
