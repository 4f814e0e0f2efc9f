"""Stored policies of a gateway: shared reads, and calls that do not wait for a store in trouble."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import TYPE_CHECKING, Any

import rung
from rung.core.policy.parser import parse_policy_file
from rung.gateway.policy_table import CALL_AGE_SECONDS, PolicyTable
from rung.store.settings import put_setting
from rung.testing import FakeClock
from rung.wiring.policies import project_key

if TYPE_CHECKING:
    from pathlib import Path

BOOK = parse_policy_file({"policy": {"ladder": "call"}, "projects": {"web": {"retries": 2}}})


class Store:
    """A store with one stored policy. It answers when it may, and counts its reads."""

    def __init__(self) -> None:
        self.retries, self.reads, self.may_answer = 5, 0, threading.Event()
        self.may_answer.set()
        self.error: Exception | None = None

    def read(self, _: str, __: Any = ()) -> list[tuple[Any, ...]]:
        self.reads += 1
        self.may_answer.wait(60)
        if self.error is not None:
            raise self.error
        body = json.dumps({"retries": self.retries})
        if __:  # one setting
            return [(body, 1, 0.0, "ada")] if __[0] == "policy" else []
        return [("policy", body, self.retries, 0.0, "ada")]


def table(store: Store, clock: FakeClock, log: Any = print) -> PolicyTable:
    return PolicyTable(BOOK, store, clock.now, log)  # type: ignore[arg-type]  # what it uses of a journal


def test_a_new_project_is_read_before_its_first_call() -> None:
    """A project that the table has not seen is read anew, whatever the age; a known one when the last read is old."""

    async def scenario() -> None:
        store, clock = Store(), FakeClock()
        policies = table(store, clock)
        assert policies.get("web").retries == 2
        await policies.prepare("shop")
        assert (policies.get("shop").retries, policies.get("web").retries) == (5, 2)
        store.retries = 6
        await policies.prepare("shop")
        assert policies.get("shop").retries == 5
        clock.sleep(0.001)
        await policies.prepare("other")
        assert policies.get("other").retries == 6
        store.retries = 7
        clock.sleep(CALL_AGE_SECONDS + 0.1)
        await policies.prepare("shop")
        assert policies.get("shop").retries == 7

    asyncio.run(scenario())


def test_calls_share_a_read() -> None:
    """A hundred calls that need the policies at once make two reads at most: the running one may be too old."""

    async def scenario() -> None:
        store, clock = Store(), FakeClock()
        policies = table(store, clock)
        store.retries = 9
        await asyncio.gather(*(policies.refresh() for _ in range(100)))
        assert policies.get("").retries == 9
        assert store.reads <= 2 * 4  # a changed policy is read once more by its layers

    asyncio.run(scenario())


def test_a_store_in_trouble_keeps_nobody_waiting() -> None:
    """A store that hangs holds the first call for a bounded time and no later one; one that fails is logged."""

    async def scenario() -> None:
        store, clock, logged = Store(), FakeClock(), asyncio.Queue[str]()
        policies = table(store, clock, logged.put_nowait)
        store.may_answer.clear()
        waiting = asyncio.create_task(policies.prepare("shop"))
        done, _ = await asyncio.wait({waiting}, timeout=30)
        assert done
        clock.sleep(5)
        later = asyncio.create_task(policies.prepare("shop"))
        done, _ = await asyncio.wait({later}, timeout=0.2)
        assert done
        assert policies.get("shop").retries == 3
        store.error = OSError("no route to the store")
        store.may_answer.set()
        assert "no route to the store" in await logged.get()
        assert policies.get("shop").retries == 3

    asyncio.run(scenario())


def test_an_invalid_stored_policy_affects_its_project_only(tmp_path: Path) -> None:
    """A stored policy that cannot be used is logged once; its project keeps the last one, all others take the new ones."""

    async def scenario() -> None:
        clock, logged = FakeClock(), list[str]()
        with rung.journal(tmp_path / "journal.db") as journal:
            policies = PolicyTable(BOOK, journal, clock.now, logged.append)
            for retries in (4, "many", 6):
                put_setting(journal, project_key("shop"), {"retries": retries}, "ada")
                put_setting(journal, project_key("desk"), {"retries": retries if retries != "many" else 5}, "ada")
                for _ in range(2):
                    clock.sleep(CALL_AGE_SECONDS + 0.1)
                    await policies.prepare("shop")
                kept = 4 if retries == "many" else retries
                assert policies.get("shop").retries == kept
                assert policies.get("desk").retries == (5 if retries == "many" else retries)
            assert len(logged) == 1
            assert "shop" in logged[0]
            assert "many" in logged[0]

    asyncio.run(scenario())


def test_an_invalid_default_policy_keeps_the_last_one(tmp_path: Path) -> None:
    """A stored default that cannot be used changes nothing; before any valid one, that of the file holds."""

    async def scenario() -> None:
        clock, logged = FakeClock(), list[str]()
        with rung.journal(tmp_path / "journal.db") as journal:
            put_setting(journal, "policy", {"retries": "many"}, "ada")
            put_setting(journal, project_key("shop"), {"retries": 5}, "ada")
            policies = PolicyTable(BOOK, journal, clock.now, logged.append)
            await policies.prepare("shop")
            assert (policies.get("").retries, policies.get("web").retries, policies.get("shop").retries) == (3, 2, 5)
            assert logged

    asyncio.run(scenario())
