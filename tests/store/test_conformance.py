"""Conformance of both back ends, on a real file and on a real server."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import rung
from rung.core.domain import events as ev
from rung.core.domain.errors import StoreError, StoreUnavailable
from rung.core.domain.request import Request
from rung.store import open_journal
from rung.store.backends.migrations import LATEST_VERSION
from rung.store.journal.journal import Journal
from rung.store.journal.writer import LINGER_SECONDS
from rung.testing import FakeClock, HttpError, Script
from tests.properties.test_recovery import World, policies, steps
from tests.store.stories import NOON, differences, emptied, everything, failed, opened, stories, succeeded, tables
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rung.core.policy.policy import Policy
    from rung.store.backends.port import BackendConnection, StoreBackend

LONG = 120.0
_NUMBERS = count()
few = settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large],
)


def keep(journal: Journal, incident: str, first: int, *events: ev.Event) -> None:
    journal.append(incident, first, events).result(LONG)


def rows(journal: Journal, table: str) -> list[Any]:
    return journal.read(f"SELECT * FROM {table}")


# -- events ------------------------------------------------------------------------------------------


@few
@given(data=st.data())
def test_events_come_back(journal: Journal, data: st.DataObject) -> None:
    """Events of any content are read back equal, of the same class and in order, however they were appended."""
    name = f"i{next(_NUMBERS)}"
    events = data.draw(stories(name))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(events)), max_size=3)))
    for start, end in zip([0, *cuts], [*cuts, len(events)], strict=True):
        journal.append(name, start, events[start:end])
    assert journal.flush(LONG)
    found = journal.events(name)
    assert found == events
    assert [type(event) for event in found] == [type(event) for event in events]


def test_stories_have_every_event() -> None:
    """The generated events cover every event class; a new one must be added."""
    seen: set[type] = set()

    @settings(max_examples=600, phases=[Phase.generate], derandomize=True, database=None, deadline=None)
    @given(stories("a"))
    def look(events: list[ev.Event]) -> None:
        seen.update(map(type, events))

    look()
    assert seen == set(get_args(ev.Event))


def test_again(journal: Journal) -> None:
    """Events appended twice, wholly or in part, are stored and counted once."""
    events: list[ev.Event] = [opened("a"), failed(), ev.Decided(NOON, ev.Repeat(0, 1.0, "again")), succeeded()]
    keep(journal, "a", 0, *events[:2])
    keep(journal, "a", 0, *events[:2])
    keep(journal, "a", 0, *events[:1])
    keep(journal, "a", 1, *events[1:])
    keep(journal, "a", 0, *events)
    keep(journal, "a", 2, *events[2:])
    assert journal.events("a") == events
    assert journal.read("SELECT count(*), sum(dollars) FROM attempt") == [(2, 0.75)]
    assert journal.read("SELECT sum(n), sum(dollars) FROM by_hour") == [(2, 0.75)]
    assert journal.read("SELECT incidents, attempts, failures FROM session") == [(1, 2, 1)]


def test_again_in_another_process(make_journal: Callable[[], Journal]) -> None:
    """An incident begun by another process and continued here has a complete row."""
    keep(make_journal(), "a", 0, opened("a"), failed())
    other = make_journal()
    keep(other, "a", 0, opened("a"), failed(), ev.Decided(NOON, ev.Repeat(0, 1.0, "again")))
    keep(other, "a", 3, succeeded())
    assert other.read("SELECT status, attempts, failures, dollars, rung FROM incident") == [
        ("recovered", 2, 1, 0.75, "retry")
    ]


def test_back_and_forth(make_journal: Callable[[], Journal]) -> None:
    """An incident continued by another process, and then here again, has a complete row."""
    here, there = make_journal(), make_journal()
    keep(here, "a", 0, opened("a"))
    keep(there, "a", 1, failed())
    keep(here, "a", 2, succeeded())
    assert here.read("SELECT status, attempts, failures FROM incident") == [("recovered", 2, 1)]


def test_out_of_order(journal: Journal) -> None:
    """Late events are stored or rejected, never acknowledged and dropped."""
    keep(journal, "a", 0, opened("a"))
    keep(journal, "a", 2, succeeded())
    try:
        keep(journal, "a", 1, failed())
    except (StoreError, ValueError):
        return
    assert len(journal.events("a")) == 3


def test_nothing(journal: Journal) -> None:
    """An unknown incident has no events, and appending no events works."""
    keep(journal, "a", 0)
    assert journal.events("a") == []
    assert journal.flush(LONG)


# -- many at once ------------------------------------------------------------------------------------


def test_many_threads(journal: Journal) -> None:
    """Concurrent appends from many threads are not lost, counted twice or misplaced."""

    def work(number: int) -> None:
        for place in range(25):
            name = f"t{number}-{place}"
            keep(journal, name, 0, opened(name))
            journal.append(name, 1, [failed()])
            keep(journal, name, 2, succeeded())
            assert len(journal.events(name)) == 3

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
    assert journal.read("SELECT count(*), count(DISTINCT seq) FROM event") == [(600, 600)]
    assert journal.read("SELECT sum(n), sum(dollars) FROM by_hour") == [(400, 150.0)]


def test_awaited(journal: Journal) -> None:
    """Many appends can be awaited concurrently, and are stored afterwards."""

    async def one(number: int) -> int:
        await journal.append(f"a{number}", 0, [opened(f"a{number}"), succeeded()])
        return len(journal.events(f"a{number}"))

    async def all_() -> Sequence[int]:
        return await asyncio.gather(*map(one, range(40)))

    assert asyncio.run(all_()) == [2] * 40


PROCESS = """
import sys
from rung.store import open_journal
from tests.store.stories import failed, opened, succeeded
url, name, many = sys.argv[1], sys.argv[2], int(sys.argv[3])
with open_journal(url) as journal:
    for number in range(many):
        incident = f"{name}{number}"
        journal.append(incident, 0, [opened(incident), failed()])
        ticket = journal.append(incident, 2, [succeeded()])
        if number % 7 == 0:
            ticket.result(30)
    assert journal.flush(30)
"""


def start(url: str, name: str, many: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", PROCESS, url, name, str(many)],
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )


def test_two_processes(url: str) -> None:
    """Two processes that start together create one schema, lose nothing, and a reader following `seq` sees all events."""
    processes = [start(url, name, 60) for name in ("x", "y")]
    seen: list[Any] = []
    journal = open_journal(url)
    while True:
        running = any(process.poll() is None for process in processes)
        fresh = journal.read(
            "SELECT seq, incident, n FROM event WHERE seq > ? ORDER BY seq", (seen[-1][0] if seen else 0,)
        )
        seen += fresh
        if not running and not fresh:
            break
    for process in processes:
        _, said = process.communicate(timeout=LONG)
        assert process.returncode == 0, said.decode()
    assert {(incident, n) for _, incident, n in seen} == {
        (f"{name}{number}", n) for name in "xy" for number in range(60) for n in range(3)
    }
    assert journal.read("SELECT sum(n), sum(dollars) FROM by_hour") == [(240, 90.0)]
    before = tables(journal)
    assert journal.rebuild() == 360
    assert not differences(before, tables(journal))
    journal.close()


def test_fork(make_journal: Callable[[], Journal]) -> None:
    """A fork during writes harms neither process: both keep writing, and every event is stored once."""
    journal = make_journal()
    keep(journal, "before", 0, opened("before"))
    children = []
    for number in range(6):
        for place in range(20):  # the writer is at work while we fork
            journal.append(f"p{number}-{place}", 0, [opened(f"p{number}-{place}"), succeeded()])
        journal.events("before")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of threads; they are the point
            child = os.fork()
        if child == 0:
            signal.alarm(60)
            code = 1
            try:
                name = f"c{number}"
                journal.append(name, 0, [opened(name)])
                keep(journal, name, 1, failed())
                if len(journal.events(name)) == 2:
                    journal.close()
                    code = 0
            finally:
                os._exit(code)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 6
    keep(journal, "after", 0, opened("after"))
    journal.close()
    again = make_journal()
    assert again.read("SELECT count(*) FROM event") == [(1 + 6 * 20 * 2 + 6 * 2 + 1,)]
    before = tables(again)
    again.rebuild()
    assert not differences(before, tables(again))


# -- the writer --------------------------------------------------------------------------------------


def together(journal: Journal, *works: Callable[[BackendConnection], Any]) -> list[Any]:
    """Execute these in one transaction and return their results."""
    go = threading.Event()
    held = journal.write(lambda _: go.wait(LONG), lambda _: True)
    tickets = [journal.write(work, lambda _: False) for work in works]
    go.set()
    held.result(LONG)
    return [ticket.exception(LONG) or ticket.result() for ticket in tickets]


def put(topic: str) -> Callable[[BackendConnection], str]:
    def work(connection: BackendConnection) -> str:
        connection.execute("INSERT INTO message (topic, body, at) VALUES (?, ?, ?)", (topic, "{}", NOON))
        return topic

    return work


def test_one_bad_item(journal: Journal) -> None:
    """An item that fails is rolled back alone: the other items of its transaction are written."""

    def half(connection: BackendConnection) -> None:
        put("half")(connection)
        raise ZeroDivisionError

    def wrong(connection: BackendConnection) -> None:
        put("wrong")(connection)
        connection.execute("SELECT * FROM nowhere")

    first, twice, bad, worse, last = together(journal, put("a"), put("a"), half, wrong, put("b"))
    assert (first, last) == ("a", "b")
    assert isinstance(twice, Exception)
    assert not isinstance(twice, StoreUnavailable)
    assert isinstance(bad, ZeroDivisionError)
    assert isinstance(worse, Exception)
    assert sorted(journal.read("SELECT topic FROM message")) == [("a",), ("b",)]
    assert journal.last_error == ""


def test_result_of_a_write(journal: Journal) -> None:
    """A write's future resolves to the result of its work once it is durable."""
    assert journal.write(lambda connection: connection.execute("SELECT 1 + ?", (2,)), lambda _: True).result(LONG) == [
        (3,)
    ]


def test_flush_and_close(make_journal: Callable[[], Journal]) -> None:
    """After a flush or a close, all appended events are visible to other readers."""
    journal, other = make_journal(), make_journal()
    for number in range(100):
        journal.append(f"q{number}", 0, [opened(f"q{number}")])
    assert journal.flush(LONG)
    assert other.read("SELECT count(*) FROM event") == [(100,)]
    for number in range(100):
        journal.append(f"q{number}", 1, [succeeded()])
    journal.close()
    assert other.read("SELECT count(*) FROM event") == [(200,)]
    assert journal.read("SELECT count(*) FROM incident WHERE status = 'succeeded'") == [(100,)]


def test_reader_cannot_write(journal: Journal) -> None:
    """A query that would write is rejected."""
    with pytest.raises(Exception, match=r"(?i)read-?\s?only"):
        journal.read("DELETE FROM rung_schema")
    assert rows(journal, "rung_schema") == [(LATEST_VERSION,)]


def test_size(journal: Journal) -> None:
    """The size is reported and grows with the content."""
    before = journal.backend.size()
    for number in range(60):
        keep(journal, f"i{number}", 0, opened(f"i{number}"), ev.StepCompleted(NOON, os.urandom(3000).hex()))
    assert journal.backend.size() > before + 100_000


def test_queries_are_portable(journal: Journal) -> None:
    """Question marks and percent signs in texts are preserved; sums are plain numbers."""
    keep(journal, "50% of a? 'quoted'", 0, opened("x"), succeeded())
    assert journal.read("SELECT n FROM event WHERE incident LIKE ? AND incident <> '100%?' ORDER BY n", ("50%",)) == [
        (0,),
        (1,),
    ]
    assert journal.read("SELECT '?%', 'it''s ?'") == [("?%", "it's ?")]
    ((whole, real, mean),) = journal.read("SELECT sum(n), sum(seconds), avg(n) FROM by_hour WHERE n > ?", (0,))
    assert [(type(value), value) for value in (whole, real, mean)] == [(int, 1), (float, 2.0), (float, 1.0)]


# -- read models --------------------------------------------------------------------------------------


@few
@given(
    scripts=st.lists(
        st.tuples(
            policies(), st.lists(steps, min_size=1, max_size=4), st.booleans(), st.sampled_from(["", "one", "two"])
        ),
        min_size=1,
        max_size=3,
    ),
    answers=st.lists(st.sampled_from(["approve", "decline", "retry", "stop", "model"]), max_size=3),
)
def test_rebuild(journal: Journal, scripts: list[tuple[Policy, list[Any], bool, str]], answers: list[str]) -> None:
    """A rebuild yields the read models that were derived incrementally, in every table."""
    clock = FakeClock(NOON + next(_NUMBERS) * 1e6)
    for policy, script, mends, session in scripts:
        world = World(script, answers, mends=mends)
        world.clock = clock
        rung.recover_sync(
            world.attempt,
            Request(prompt="task", model="small"),
            policy=policy,
            clock=clock,
            jitter=world.jitter,
            breakers=rung.BreakerRegistry(),
            retry_budget=rung.RetryBudget(),
            ask=world.ask,
            journal=journal,
            session=rung.Session(session) if session else None,
        )
        clock.advance(1)
    assert journal.flush(LONG)
    before = tables(journal)
    assert journal.rebuild() == journal.read("SELECT count(*) FROM event")[0][0]
    assert not differences(before, tables(journal))


@few
@given(data=st.data())
def test_rebuild_anything(journal: Journal, data: st.DataObject) -> None:
    """A rebuild equals incremental derivation for generated events in any order."""
    emptied(journal)
    for _ in range(2):
        name = f"r{next(_NUMBERS)}"
        events = data.draw(stories(name))
        keep(journal, name, 0, *(event._replace(at=NOON + next(_NUMBERS)) for event in events))
    before = tables(journal)
    journal.rebuild()
    assert not differences(before, tables(journal))


def test_rebuild_keeps_what_people_said(journal: Journal) -> None:
    """A rebuild leaves tables that are not derived unchanged."""
    state = "INSERT INTO group_state (project, fingerprint, state, at, until) VALUES (?, ?, ?, ?, ?)"
    journal.write(
        lambda connection: connection.execute(state, ("p", "f", "resolved", NOON, None)), lambda _: False
    ).result(LONG)
    journal.rebuild()
    assert rows(journal, "group_state") == [("p", "f", "resolved", NOON, None)]


def test_rebuild_with_clocks_apart(make_journal: Callable[[], Journal]) -> None:
    """With clock skew between machines, event times decide the order, not the order of writing."""
    journal = make_journal()
    keep(journal, "late", 0, opened("late", when=NOON + 60), failed(NOON + 60))
    keep(journal, "early", 0, opened("early"), failed())
    before = tables(journal)
    journal.rebuild()
    assert not differences(before, tables(journal))


def test_rebuild_with_two_models_in_a_batch(journal: Journal) -> None:
    """A session's former model is its previous one, however the events were batched."""
    keep(journal, "a", 0, opened("a", model="tiny"), succeeded())
    handed = ev.Decided(NOON, ev.HandOver(1, "large", "", None, "too hard"))
    changed = ev.Changed(NOON, Request(prompt="do b", model="large"), "", ("model",), "")
    keep(journal, "b", 0, opened("b", model="small"), failed(), handed, changed, succeeded())
    before = tables(journal)
    journal.rebuild()
    assert not differences(before, tables(journal))


class LosesItsConnection:
    """Back end whose next commit fails once, as if the server had gone away before it."""

    def __init__(self, backend: StoreBackend) -> None:
        self.backend = backend
        self.fails = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.backend, name)

    def connect(self, *, write: bool) -> Any:
        connection = self.backend.connect(write=write)
        commit = connection.commit

        def commit_or_fail() -> None:
            if self.fails:
                self.fails = False
                connection.rollback()
                raise StoreUnavailable("the server went away")
            commit()

        connection.commit = commit_or_fail  # type: ignore[method-assign]
        return connection


def test_rebuild_after_a_lost_connection(journal: Journal) -> None:
    """A transaction that failed and was retried is counted once."""
    backend = LosesItsConnection(journal.backend)
    with Journal(backend, on_warning=lambda _: None) as other:
        keep(other, "a", 0, opened("a"))
        backend.fails = True
        keep(other, "a", 1, failed())
        assert other.flush(LONG)
        assert not backend.fails
        before = tables(other)
        other.rebuild()
        assert not differences(before, tables(other))


# -- secrets and invalid texts ------------------------------------------------------------------------

KEYS = ("sk-ant-api03-" + "Zq9" * 12, "ghp_" + "a1B2" * 9, "AKIA" + "Q7R8" * 4, "hunter2hunter2")


def with_secrets(journal: Journal) -> None:
    error = HttpError(
        529,
        f"overloaded; x-api-key: {KEYS[0]} password={KEYS[3]}",
        {"set-cookie": f"sid={KEYS[1]}", "authorization": f"Bearer {KEYS[0]}", "x-note": KEYS[2]},
    )

    def attempt(request: Request) -> str:
        rung.report_step(f"fetched with {KEYS[1]}")
        raise error

    rung.recover_sync(
        attempt,
        Request(
            prompt=f"use {KEYS[0]} and {KEYS[2]}",
            model="small",
            messages=({"role": "user", "content": f"token {KEYS[1]}"},),
            params={"extra_headers": {"Authorization": f"Bearer {KEYS[0]}"}, "password": KEYS[3]},
        ),
        policy=rung.policy("task", models=["small", "large"], attempts=6),
        clock=FakeClock(NOON),
        breakers=rung.BreakerRegistry(),
        journal=journal,
    )
    assert journal.flush(LONG)


def test_no_secret_in_any_table(journal: Journal) -> None:
    """Secrets in a prompt, message, parameter, error, header or finished step are not stored."""
    with_secrets(journal)
    found = everything(journal)
    assert "overloaded" in found
    assert [key for key in KEYS if key in found] == []


def test_no_secret_in_any_byte(sqlite_url: str) -> None:
    """Secrets are not in the file, its WAL, or deleted pages."""
    with open_journal(sqlite_url) as journal:
        with_secrets(journal)
        # Not by open(): closing the file again would free SQLite's locks on it.
        live = subprocess.run(["cat", sqlite_url, f"{sqlite_url}-wal"], capture_output=True, check=True).stdout
        journal.rebuild()
    whole = live + Path(sqlite_url).read_bytes()
    assert b"overloaded" in whole
    assert [key for key in KEYS if key.encode() in whole] == []


@pytest.mark.parametrize(
    "event",
    [
        ev.Crashed(NOON, "listener", f"RuntimeError: cannot send with {KEYS[0]}"),
        ev.Decided(NOON, ev.Ask(0, f"use {KEYS[0]}?", (ev.Option("stop", "Stop"),), None, "", "", "")),
        ev.Decided(NOON, ev.HandOver(0, "large", "", None, f"{KEYS[0]} was refused")),
        ev.Closed(NOON, ev.Status.FAILED, f"{KEYS[0]} was refused"),
    ],
    ids=["crash", "question", "hand-over", "end"],
)
def test_no_secret_is_read_off(journal: Journal, event: ev.Event) -> None:
    """Secrets are not in the read models: crashes, questions, reasons."""
    keep(journal, "a", 0, opened("a"), event)
    assert KEYS[0] not in everything(journal)


def test_rebuild_with_secrets(journal: Journal) -> None:
    """A rebuild from redacted events yields the same read models."""
    with_secrets(journal)
    before = tables(journal)
    journal.rebuild()
    assert not differences(before, tables(journal))


@pytest.mark.parametrize("strange", ["\ud800 half", "nul \x00 nul", "\udfff\x00"], ids=["surrogate", "nul", "both"])
def test_strange_texts(journal: Journal, strange: str) -> None:
    """Lone surrogates and NULs in any text are replaced and block nothing."""
    request = Request(prompt=strange, model=strange, agent=strange, messages=({"role": strange, "content": strange},))
    begun = opened("a", project=strange, session=strange, rungs=(strange,))._replace(request=request)
    keep(
        journal,
        "a",
        0,
        begun,
        failed(text=strange),
        ev.Crashed(NOON, strange, strange),
        ev.StepCompleted(NOON, strange),
    )
    keep(journal, f"b{strange}", 0, opened(f"b{strange}"))
    keep(journal, "c", 0, opened("c"), succeeded())
    assert journal.last_error == ""
    assert len(journal.events("a")) == 4
    assert len(journal.events(f"b{strange}")) == 1
    found = journal.events("a")[3]
    assert isinstance(found, ev.StepCompleted)
    assert found.step == strange.encode("utf-8", "replace").decode()
    assert journal.read("SELECT count(*) FROM incident") == [(3,)]


BAD: dict[str, Callable[[str], list[ev.Event]]] = {
    "no number": lambda name: [opened(name), succeeded(dollars=float("nan"))],
    "no end": lambda name: [opened(name), succeeded(dollars=float("inf"))],
    "time": lambda name: [opened(name), succeeded(when=1e300)],
    "name": lambda name: [opened(name, model=os.urandom(9000).hex()), succeeded()],
    "project": lambda name: [opened(name, project=os.urandom(9000).hex()), succeeded()],
    "rung": lambda name: [opened(name, rungs=(os.urandom(9000).hex(),)), failed(), repeat(), succeeded()],
    "ladder": lambda name: [opened(name)._replace(terms=ev.IncidentContext([], "p")), succeeded()],  # type: ignore[arg-type]
}
TAKEN = ("no number", "no end", "time", "name", "project")


def repeat() -> ev.Event:
    return ev.Decided(NOON, ev.Repeat(0, 1.0, "again"))


def between_others(journal: Journal, events: list[ev.Event]) -> None:
    """Append it between two others in one transaction."""
    go = threading.Event()
    journal.write(lambda _: go.wait(LONG), lambda _: True)
    journal.append("good", 0, [opened("good"), succeeded()])
    journal.append("bad", 0, events)
    journal.append("next", 0, [opened("next"), succeeded()])
    go.set()
    assert journal.flush(LONG)


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_row_stops_nobody(url: str, bad: str) -> None:
    """An event whose read-model row is rejected is still stored, as are all others, counted once."""
    said: list[str] = []
    events = BAD[bad]("bad")
    with open_journal(url, on_warning=said.append) as journal:
        between_others(journal, events)
        assert journal.last_error == ""
        assert len(journal.events("bad")) == len(events)
        rows_of = {name for (name,) in journal.read("SELECT id FROM incident WHERE status <> 'open'")}
        assert {"good", "next"} <= rows_of
        if bad in TAKEN:  # clamped values are counted
            assert said == []
            assert "bad" in rows_of
            assert rows(journal, "by_hour") != []
            before = tables(journal)
            journal.rebuild()
            assert not differences(before, tables(journal))
        elif "bad" not in rows_of:  # others are reported with the incident and the error
            assert len(said) == 1
            assert "incident bad, event 0 is written, but missing from the reports: " in said[0]
        ((counted,),) = journal.read("SELECT sum(n) FROM by_end WHERE status = 'succeeded'")
        assert counted == 3 - ("bad" not in rows_of) - (bad == "rung" and "bad" in rows_of)
        ((spent,),) = journal.read("SELECT sum(dollars) FROM by_hour")
        assert 0 <= spent < 1e13


def test_a_long_text_is_cut(journal: Journal) -> None:
    """A text that is too long is clipped in the middle; the event stays readable."""
    keep(journal, "a", 0, opened("a"), ev.StepCompleted(NOON, "x" * 2_000_000))
    found = journal.events("a")[1]
    assert isinstance(found, ev.StepCompleted)
    assert 1_000 < len(found.step) < 100_000


def test_script_recovers_into_it(journal: Journal) -> None:
    """An ordinary recovery is in the journal, event by event."""
    outcome = rung.recover_sync(
        Script(HttpError(529), HttpError(529), "good"),
        Request(prompt="hello", model="small"),
        clock=FakeClock(NOON),
        jitter=lambda: 0.5,
        breakers=rung.BreakerRegistry(),
        retry_budget=rung.RetryBudget(),
        journal=journal,
    )
    assert journal.flush(LONG)
    ((incident,),) = journal.read("SELECT id FROM incident")
    assert journal.events(incident) == list(outcome.events)
    assert journal.read("SELECT status, attempts, failures FROM incident") == [("recovered", 3, 2)]


# -- lazy appends -------------------------------------------------------------------------------------


def story(name: str, when: float) -> list[ev.Event]:
    return [opened(name, when=when), succeeded(when + 1)]


def test_notes(make_journal: Callable[[], Journal]) -> None:
    """Successful calls appended lazily by many threads are all stored after a flush or a close."""
    journal, other = make_journal(), make_journal()

    def tell(which: int) -> None:
        for number in range(100):
            journal.append_lazy(story, f"{which}-{number}", NOON)

    threads = [threading.Thread(target=tell, args=(which,)) for which in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert journal.flush(LONG)
    assert other.read("SELECT count(*) FROM incident WHERE status = 'succeeded'") == [(400,)]
    tell(4)
    journal.close()
    assert other.read("SELECT count(*) FROM attempt WHERE ok = 1") == [(500,)]
    before = tables(journal)
    journal.rebuild()
    assert not differences(before, tables(journal))


def test_a_note_arrives_by_itself(journal: Journal) -> None:
    """Lazy appends are written soon without a flush."""
    journal.append_lazy(story, "a", NOON)
    wait_until(lambda: len(journal.events("a")) == 2)


def test_how_it_ended(url: str) -> None:
    """Final events are written even when the lazy queue is full: at once, and after the writer was idle."""
    with open_journal(url, max_lazy_items=0) as journal:
        for name in ("a", "b"):
            keep(journal, name, 0, opened(name), failed())
            journal.append_final(name, 2, [succeeded()])
            wait_until(partial(recovered, journal, name))
            time.sleep(2 * LINGER_SECONDS)  # the writer is idle


def recovered(journal: Journal, name: str) -> bool:
    return journal.read("SELECT status FROM incident WHERE id = ?", (name,)) == [("recovered",)]


def test_a_bad_note(url: str) -> None:
    """A lazy append that raises is reported and blocks nothing."""
    said: list[str] = []
    with open_journal(url, on_warning=said.append) as journal:
        journal.append_lazy(story, "a", NOON)
        journal.append_lazy(lambda: 1 / 0)  # type: ignore[arg-type, return-value]
        journal.append_lazy(story, "b", NOON)
        assert journal.flush(LONG)
        assert journal.read("SELECT count(*) FROM incident") == [(2,)]
    assert said == ["a call could not be recorded: ZeroDivisionError: division by zero"]


def test_more_notes_than_can_be_kept(url: str) -> None:
    """Callers faster than the journal neither wait nor fill the memory: dropped calls are counted and reported."""
    said: list[str] = []
    with open_journal(url, on_warning=said.append, max_lazy_items=50) as journal:
        go = threading.Event()
        journal.write(lambda _: go.wait(LONG), lambda _: True)
        for number in range(60):
            journal.append_lazy(story, f"{number}", NOON)
        go.set()
        assert journal.flush(LONG)
        assert journal.read("SELECT count(*) FROM incident") == [(50,)]
    assert said == ["the journal could not keep up: 10 successful calls were not recorded"]
