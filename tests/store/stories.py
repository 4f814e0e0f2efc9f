"""Generated events for tests of the store, and helpers that read all its tables."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from rung.core.domain import events as ev
from rung.core.domain.failures import Evidence, Failure, Kind
from rung.core.domain.request import Request
from rung.store.read_models.batch import KEYS, READ_MODELS

if TYPE_CHECKING:
    from rung.store.backends.port import BackendConnection, Row
    from rung.store.journal.journal import Journal

TERMS = ev.IncidentContext("task", "task", rungs=("retry", "nudge", "stop"), project="p", session="s")
NOON = 1_700_000_000.0

texts = st.text(max_size=40) | st.sampled_from(["\x00", "é\u2028\U0001f600", '"\\', "a" * 3000, "%s ? 'x' {n}", "NaN"])
failures = st.builds(
    Failure,
    kind=st.sampled_from(Kind),
    retryable=st.booleans(),
    rule=texts,
    message=texts,
    retry_after=st.none() | st.floats(0, 1e6),
    evidence=st.builds(
        Evidence, text=texts, headers=st.dictionaries(st.sampled_from(["x", "date"]), texts, max_size=2)
    ),
)
requests = st.builds(
    Request,
    prompt=texts,
    model=st.sampled_from(["", "small", "large", "ünïcode"]),
    agent=st.sampled_from(["", "a"]),
    messages=st.lists(st.fixed_dictionaries({"role": texts, "content": texts | st.binary(max_size=9)}), max_size=2).map(
        tuple
    ),
    params=st.dictionaries(
        st.sampled_from(["seed", "$x", "tools"]), st.integers() | texts | st.tuples(texts), max_size=2
    ),
)
whys = {
    "rung": st.integers(0, 5),
    "reason": texts,
    "skipped": st.lists(st.tuples(st.integers(0, 9), texts), max_size=2).map(tuple),
}
decisions = st.one_of(
    st.builds(ev.Repeat, wait=st.floats(0, 1e6), **whys),
    st.builds(ev.Repeat, wait=st.floats(0, 1e6), until=st.floats(0, 1e9), parked=st.booleans(), **whys),
    st.builds(ev.Change, wait=st.floats(0, 1e6), **whys),
    st.builds(ev.HandOver, model=texts, agent=texts, estimate=st.none() | st.floats(0, 99), **whys),
    st.builds(
        ev.Ask,
        question=texts,
        options=st.lists(st.builds(ev.Option, texts, texts), max_size=2).map(tuple),
        estimate=st.none(),
        model=texts,
        agent=texts,
        **whys,
    ),
)
amounts = {"at": st.floats(NOON, NOON + 1e6), "seconds": st.floats(0, 1e6), "dollars": st.floats(0, 1e3)}
at = amounts["at"]
going_on = st.one_of(
    st.builds(ev.AttemptFailed, failure=failures, may_retry=st.booleans(), made=st.booleans(), **amounts),
    st.builds(ev.Charged, at, amounts["dollars"]),
    st.builds(ev.Decided, at, decisions),
    st.builds(ev.Changed, at, requests, texts, st.lists(texts, max_size=2).map(tuple), texts),
    st.builds(ev.Abandoned, at, st.integers(0, 5), texts, texts),
    st.builds(ev.Hinted, at, st.integers(0, 5), texts),
    st.builds(
        ev.Learned,
        at,
        texts,
        st.lists(
            st.builds(ev.LearnedSkip, st.integers(0, 5), st.integers(1, 3), st.integers(0, 5), texts), max_size=2
        ).map(tuple),
        st.booleans(),
    ),
    st.builds(ev.Answered, at, texts),
    st.builds(ev.Ordered, at, st.sampled_from(["retry", "cancel"]), texts, texts, texts),
    st.builds(ev.Skipped, at, st.integers(0, 5), texts),
    st.builds(ev.StepCompleted, at, texts),
    st.builds(ev.AgentSessionOpened, at, texts, texts, texts, st.booleans()),
    st.builds(ev.CheckpointTaken, at, st.integers(0, 5), texts),
    st.builds(ev.RolledBack, at, st.integers(0, 5), texts),
    st.builds(ev.ModelRestored, at, texts, texts),
    st.builds(ev.SessionSwitched, at, texts, texts),
    st.builds(ev.Unparked, at),
    st.builds(ev.Crashed, at, texts, texts),
)
endings = st.one_of(
    st.builds(ev.AttemptSucceeded, **amounts),
    st.builds(ev.Cancelled, at, texts),
    st.builds(ev.Closed, at, st.sampled_from(ev.Status), texts),
)


@st.composite
def stories(draw: st.DrawFn, name: str) -> list[ev.Event]:
    """Strategy: events of every class with any content, in a valid order."""
    terms = TERMS._replace(project=draw(texts), session=draw(texts), rungs=tuple(draw(st.lists(texts, max_size=3))))
    opened = ev.Opened(draw(at), name, terms, draw(st.none() | requests), parent=draw(texts))
    return [opened, *draw(st.lists(going_on, max_size=5)), *draw(st.lists(endings, max_size=1))]


def opened(name: str, *, when: float = NOON, model: str = "small", **terms: Any) -> ev.Opened:
    return ev.Opened(when, name, TERMS._replace(**terms), Request(prompt=f"do {name}", model=model))


def failed(when: float = NOON, text: str = "overloaded", dollars: float = 0.25) -> ev.AttemptFailed:
    failure = Failure(Kind.OVERLOADED, True, "rule", text, None, Evidence(text=text))
    return ev.AttemptFailed(when, failure, 1.5, dollars, may_retry=True)


def succeeded(when: float = NOON, dollars: float = 0.5) -> ev.AttemptSucceeded:
    return ev.AttemptSucceeded(when, 2.0, dollars)


def emptied(journal: Journal) -> None:
    """Delete all rows."""

    def work(connection: BackendConnection) -> None:
        for table in (*READ_MODELS, "event", "message"):
            connection.execute(f"DELETE FROM {table}")

    journal.write(work, lambda _: False).result(30)
    journal.read_models.clear_cache()


def tables(journal: Journal) -> dict[str, list[Row]]:
    """Return all read models in a stable order."""
    return {
        table: sorted(journal.read(f"SELECT * FROM {table}"), key=lambda row: json.dumps(row[: len(KEYS[table])]))
        for table in READ_MODELS
    }


def differences(one: dict[str, list[Row]], other: dict[str, list[Row]]) -> list[Any]:
    """Return the differences, ignoring the last digits of float sums, which depend on the order."""
    return [
        (table, *pair)
        for table in READ_MODELS
        for pair in _pairs(one[table], other[table])
        if len(pair[0]) != len(pair[1]) or not all(map(_alike, *pair))
    ]


def _pairs(one: list[Row], other: list[Row]) -> list[tuple[Row, Row]]:
    longest = max(len(one), len(other))
    return list(zip(one + [()] * (longest - len(one)), other + [()] * (longest - len(other)), strict=True))


def _alike(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float | int):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    return bool(one == other)


def everything(journal: Journal) -> str:
    """Return every text of every table."""
    if type(journal.backend).__name__ == "SqliteBackend":
        names = journal.read("SELECT name FROM sqlite_schema WHERE type = 'table'")
    else:
        names = journal.read("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
    assert len(names) > 15
    return "\n".join(repr(row) for (name,) in names for row in journal.read(f"SELECT * FROM {name}"))
