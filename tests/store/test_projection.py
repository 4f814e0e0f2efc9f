"""Read models: each event counts once in the right rows, incrementally and after a rebuild."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import rung
from rung.core.domain import events as ev
from rung.core.domain.errors import AttemptError
from rung.core.domain.failures import Kind
from rung.core.domain.ladder import Action
from rung.core.domain.request import Request
from rung.store import open_journal
from rung.store.journal.retention import check_integrity, prune
from rung.store.queries import reports
from rung.store.queries.remedies import _REMEDIES, what_worked
from rung.store.queries.reports_sql import GroupBy, ReportFilter
from rung.store.read_models.prompt_templates import MAX_PATTERN_CHARS, prompt_pattern
from rung.testing import FakeClock, HttpError, Script
from tests.store.stories import NOON, differences, failed, opened, succeeded, tables

if TYPE_CHECKING:
    from rung.store.journal.journal import Journal

ALL = ReportFilter()
AGAIN = ev.Decided(NOON, ev.Repeat(0, 1.0, "again"))


def keep(journal: Journal, incident: str, first: int, *events: ev.Event) -> None:
    journal.append(incident, first, events).result(30)


def rebuilt(journal: Journal) -> list[Any]:
    """Return what a rebuild changes."""
    before = tables(journal)
    journal.rebuild()
    return differences(before, tables(journal))


def one(journal: Journal, columns: str, table: str) -> Any:
    ((*row,),) = journal.read(f"SELECT {columns} FROM {table}")
    return tuple(row)


def test_a_refused_attempt_is_none(journal: Journal) -> None:
    """A call rejected by an open circuit is a failure, but not counted as an attempt."""
    refused = failed(dollars=0.0)._replace(made=False)
    keep(journal, "a", 0, opened("a"), failed(), AGAIN, refused, AGAIN, succeeded())
    assert one(journal, "count(*), sum(1 - ok)", "attempt") == (2, 1)
    for table in ("by_hour", "by_day", "by_latency", "by_pattern"):
        assert one(journal, "sum(n)", table) == (2,)
    assert one(journal, "attempts, failures", "incident") == (2, 1)
    assert one(journal, "attempts, failures", "session") == (2, 1)
    assert one(journal, "count", "failure_group") == (1,)
    assert one(journal, "tried, saved", "by_rung") == (1, 1)
    assert all(finding.ok for finding in check_integrity(journal))
    assert rebuilt(journal) == []


def test_a_forced_end_saved_nothing(journal: Journal) -> None:
    """A forced last turn succeeds without counting as a success of any rung."""
    forced = ev.Decided(NOON, ev.Change(2, Action.FORCE_DONE, 0.0, "spent"))
    changed = ev.Changed(NOON, Request(prompt="sum up", model="small"), "d", ("prompt",), "done.last")
    keep(journal, "a", 0, opened("a"), failed(), forced, changed, succeeded())
    assert one(journal, "status, rung", "incident") == ("partial", "stop")
    assert one(journal, "rung, tried, saved", "by_rung") == ("stop", 1, 0)
    assert [row.saved for row in reports.rung_effects(journal, ALL)] == [0]
    assert [row.saved for row in reports.rung_effects(journal, ReportFilter(session="s"))] == [0]
    assert one(journal, "rung, tries, result", "level") == ("stop", 1, "forced")


def test_the_highest_rung_and_the_last(journal: Journal) -> None:
    """An incident records its highest rung and its last one, which may be lower."""
    nudged = ev.Decided(NOON, ev.Change(1, Action.NUDGE, 0.0, "think"))
    keep(journal, "a", 0, opened("a"), failed(), nudged, failed(), AGAIN, succeeded())
    assert one(journal, "rung, last_rung", "incident") == ("nudge", "retry")
    assert one(journal, "kind, status, rung, n", "by_end") == ("overloaded", "recovered", "retry", 1)
    assert journal.read("SELECT rung, tries, result, kind FROM level ORDER BY n") == [
        ("nudge", 1, "failed", "overloaded"),
        ("retry", 1, "saved", "overloaded"),
    ]
    assert {row.rung: row.looked_at for row in reports.recovery_by_rung(journal, ALL)} == {"retry": 1, "nudge": 0}


def test_a_rung_that_could_not_do_its_part(journal: Journal) -> None:
    """A skipped rung has a history row without attempts."""
    nudged = ev.Decided(NOON, ev.Change(1, Action.NUDGE, 0.0, "think"))
    gone = ev.Closed(NOON + 1, ev.Status.FAILED, "no way left")
    ended = ev.Decided(NOON, ev.Finish(2, ev.Status.FAILED, "no way left"))
    keep(journal, "a", 0, opened("a"), failed(), nudged, ev.Skipped(NOON, 1, "changed nothing"), ended, gone)
    assert journal.read("SELECT rung, tries, result, left_at FROM level ORDER BY n") == [
        ("nudge", 0, "skipped", NOON),
        ("stop", 0, "ended", NOON + 1),
    ]


def test_an_event_after_the_end(journal: Journal) -> None:
    """A crash reported after the end belongs to its incident, incrementally and in a rebuild."""
    keep(journal, "a", 0, opened("a"), failed(), AGAIN, succeeded())
    keep(journal, "a", 4, ev.Crashed(NOON + 9, "listener", "KeyError: 'x'"))
    assert one(journal, "id, status, touched_at", "incident") == ("a", "recovered", NOON + 9)
    assert one(journal, "incident, project", "crash") == ("a", "p")
    assert one(journal, "sum(n)", "by_end") == (1,)
    assert rebuilt(journal) == []


def test_an_incident_whose_beginning_is_lost(journal: Journal) -> None:
    """An incident whose first events were dropped by the spool still has a row with its id."""
    keep(journal, "a", 1, failed())
    assert one(journal, "id, failures", "incident") == ("a", 1)
    assert rebuilt(journal) == []


def nested(journal: Journal) -> None:
    """Return an incident with a nested recovery: 2 cents nested, 3 of its own."""
    clock = FakeClock(NOON)
    ports: dict[str, Any] = {
        "clock": clock,
        "journal": journal,
        "breakers": rung.BreakerRegistry(),
        "jitter": lambda: 0.5,
    }

    def dear(item: Any) -> Any:
        def attempt(_: Request) -> Any:
            rung.report_cost(0.01)
            return item

        return attempt

    def outer(_: Request) -> str:
        rung.report_cost(0.03)
        inside = Script(dear(HttpError(529, "overloaded")), dear("fine"))
        return str(rung.recover_sync(inside, Request(prompt="inside", model="small"), **ports).value)

    rung.recover_sync(outer, Request(prompt="outside", model="large"), session=rung.Session(id="s"), **ports)
    assert journal.flush(30)


def test_what_is_spent_within_is_counted_once(journal: Journal) -> None:
    """The cost of a nested recovery counts once in every sum; each incident still shows its full cost."""
    nested(journal)
    assert dict(journal.read("SELECT parent <> '', round(dollars * 100) FROM incident")) == {True: 2.0, False: 5.0}
    for table in ("by_hour", "by_day", "by_end", "by_pattern", "project", "attempt"):
        assert one(journal, "sum(dollars)", table)[0] == pytest.approx(0.05), table
    assert one(journal, "sum(dollars)", "session")[0] == pytest.approx(0.05)
    assert {row.key: round(row.dollars, 9) for row in reports.failures(journal, ALL, GroupBy.MODEL)} == {
        "small": 0.02,
        "large": 0.03,
    }
    assert rebuilt(journal) == []


def test_what_is_spent_within_when_the_story_was_forgotten(journal: Journal) -> None:
    """The cost of a nested recovery counts once even when the outer projector is reloaded in between."""
    inner = opened("in")._replace(parent="out")
    keep(journal, "out", 0, opened("out"), failed(NOON + 1, dollars=1.0), AGAIN)
    journal.read_models.clear_cache()
    keep(journal, "in", 0, inner, succeeded(NOON + 2, dollars=0.25))
    journal.read_models.clear_cache()
    keep(journal, "out", 3, succeeded(NOON + 3, dollars=0.75))
    assert one(journal, "sum(dollars)", "by_day") == (1.75,)
    assert journal.read("SELECT id, own_dollars FROM incident ORDER BY id") == [("in", 0.25), ("out", 1.5)]
    assert rebuilt(journal) == []


def test_a_hand_over_that_was_taken_back(journal: Journal) -> None:
    """Cost after the previous model is restored does not belong to the model change."""
    handed = ev.Decided(NOON, ev.HandOver(1, "large", "", 0.5, "too hard"))
    back = ev.ModelRestored(NOON + 5, "small", "")
    keep(journal, "a", 0, opened("a"), failed(), handed, failed(dollars=0.5), back, AGAIN, succeeded(dollars=2.0))
    assert one(journal, "from_model, to_model, estimate, dollars, restored_at", "model_change") == (
        "small", "large", 0.5, 0.5, NOON + 5,
    )  # fmt: skip


def test_tools_by_name(journal: Journal) -> None:
    """A failure is counted under its tool's name when known."""
    script = [AttemptError("no", finding="tool_error", phase="tool", tool="grep"), HttpError(529), "fine"]
    rung.recover_sync(Script(*script), "do it", journal=journal, clock=FakeClock(NOON), breakers=rung.BreakerRegistry())
    assert journal.flush(30)
    assert {row.key: row.failures for row in reports.failures(journal, ALL, GroupBy.TOOL)} == {"grep": 1, "no tool": 1}


# -- patterns -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("Summarise ticket 4711 for Ada", "summarise ticket <n> for ada"),
        ("  Fix /home/ada/shop/cart.py now", "fix <path> now"),
        ("Look at 0b9ee4c2-8d1f-4c55-9b0e-0f4d7f3f2a11", "look at <uuid>"),
        ("", ""),
        ("word " * 100, "word word word word word word word word word word word word …"),
        ("x" * 300, "x" * MAX_PATTERN_CHARS),
    ],
)
def test_a_prompts_pattern(prompt: str, expected: str) -> None:
    """A pattern masks numbers, paths and ids, and is cut after a word."""
    assert prompt_pattern(Request(prompt=prompt)) == expected


def test_the_pattern_of_messages() -> None:
    """Without a prompt, the pattern is the beginning of the first user message."""
    texts: list[Any] = ["Plan 7 days", [{"type": "image"}, {"type": "text", "text": "Plan 9 days"}]]
    for content in texts:
        said = ({"role": "system", "content": "Be kind."}, {"role": "user", "content": content})
        assert prompt_pattern(Request(messages=said)) == "plan <n> days"
    assert prompt_pattern(Request(messages=({"role": "user", "content": None},))) == ""
    assert prompt_pattern(None) == ""


def test_failures_by_pattern(journal: Journal) -> None:
    """Prompts of one template are one row; filters by kind, session or model read the attempts."""
    for number, bad in enumerate([True, False, True]):
        name = f"a{number}"
        begun = opened(name)._replace(request=Request(prompt=f"Summarise ticket {number}", model="small"))
        trouble: list[ev.Event] = [failed(), AGAIN] if bad else []
        keep(journal, name, 0, begun, *trouble, succeeded())
    keep(journal, "b", 0, opened("b"), succeeded())
    expected = [("summarise ticket <n>", 5, 2), ("do b", 1, 0)]
    for where in (
        ALL,
        ReportFilter(session="s"),
        ReportFilter(model="small"),
        ReportFilter(kind="overloaded"),
        ReportFilter(project="p"),
    ):
        assert [row[:3] for row in reports.failures(journal, where, GroupBy.PATTERN)] == expected
    assert [row.failures for row in reports.failures(journal, ReportFilter(kind="timeout"), GroupBy.PATTERN)] == [0, 0]


def test_a_pattern_is_forgotten_with_its_prompts(journal: Journal) -> None:
    """Pruning the last incident of a pattern deletes its text; a pattern seen since is kept."""
    for name, at in (("old", NOON), ("new", NOON + 100)):
        keep(journal, name, 0, opened(name, when=at), succeeded(at))
        both = Request(prompt="the same for both", model="small")
        keep(journal, f"{name}2", 0, opened(name, when=at)._replace(request=both), succeeded(at))
    prune(journal, older_than=NOON + 50)
    assert {text for (text,) in journal.read("SELECT text FROM pattern")} == {"do new", "the same for both"}
    rows = {row.key: row.attempts for row in reports.failures(journal, ALL, GroupBy.PATTERN)}
    assert sum(rows.values()) == 4
    assert rows["the same for both"] == 2
    assert "do old" not in rows


# -- remedies -------------------------------------------------------------------------------------------


def test_memory_outlives_what_is_pruned(journal: Journal) -> None:
    """Remedies survive the pruning of their incidents."""
    keep(journal, "a", 0, opened("a"), failed(), AGAIN, succeeded())
    mark = failed().failure.fingerprint
    before = what_worked(journal, "p", mark)
    assert [(one.rung, one.tried, one.worked) for one in before] == [("retry", 1, 1)]
    prune(journal, older_than=NOON + 50)
    assert what_worked(journal, "p", mark) == before


def test_memory_scans_nothing(sqlite_url: str) -> None:
    """The remedies query is one index lookup."""
    with open_journal(sqlite_url) as journal:
        plan = journal.read(f"EXPLAIN QUERY PLAN {_REMEDIES}", ("p", "f"))
    assert len(plan) == 1
    assert "SEARCH remedy USING INDEX" in plan[0][3]


def test_secrets_across_texts(journal: Journal) -> None:
    """An event with a truncated private key is stored without the key."""
    key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow" + "A" * 50
    keep(journal, "a", 0, opened("a"), ev.Crashed(NOON, f"hook {key}", "KeyError"), failed(text=f"bad {key}"))
    crashed = journal.events("a")[1]
    assert isinstance(crashed, ev.Crashed)
    assert crashed.error == "KeyError"
    assert "MIIEow" not in str(journal.read("SELECT body FROM event")) + str(journal.read("SELECT * FROM crash"))
    assert [row.key for row in reports.failures(journal, ALL)] == [Kind.OVERLOADED]
    assert rebuilt(journal) == []
