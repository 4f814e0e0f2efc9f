"""Failure groups: open, resolved, snoozed, reopened, regression."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.domain.errors import ConfigError
from rung.store import open_journal
from rung.store.queries import reports
from rung.store.queries.groups import GroupState, find_group, groups, reopen, resolve, snooze, state_of
from rung.store.queries.reports_sql import ReportFilter
from rung.testing import HttpError
from tests.store.recorded import DAY, NO_IDEA, Recorded

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def recorded(url: str) -> Iterator[Recorded]:
    with open_journal(url, project="web") as journal:
        made = Recorded(journal)
        made.recover(HttpError(429, "slow down"), "fine")
        made.recover(NO_IDEA, "fine")
        yield made


def states(recorded: Recorded) -> dict[str, GroupState]:
    return {group.kind: group.state for group in groups(recorded.journal, now=recorded.clock.now())}


def test_groups_are_listed_the_last_seen_first(recorded: Recorded) -> None:
    """Each group has its kind, message, count and example; new groups are open."""
    found = groups(recorded.journal, now=recorded.clock.now())
    assert [(group.kind, group.message, group.seen) for group in found] == [
        ("unknown", str(NO_IDEA), 1),
        ("rate_limit", "slow down", 1),
    ]
    assert [group.example for group in found] == [outcome.id for outcome in reversed(recorded.outcomes)]
    assert {group.state for group in found} == {GroupState.OPEN}
    assert len(groups(recorded.journal, now=0.0, kind="unknown")) == 1
    assert groups(recorded.journal, now=0.0, project="api") == []
    assert len(groups(recorded.journal, now=0.0, limit=1)) == 1


def test_a_resolved_group_seen_again_is_a_regression(recorded: Recorded) -> None:
    """A resolved group that occurs again is a regression, in the reports as well."""
    recorded.clock.advance(DAY)
    group = groups(recorded.journal, now=recorded.clock.now())[0]
    assert resolve(recorded.journal, group, now=recorded.clock.now()).state is GroupState.RESOLVED
    assert states(recorded) == {"unknown": GroupState.RESOLVED, "rate_limit": GroupState.OPEN}
    recorded.recover(NO_IDEA, "fine")
    assert states(recorded) == {"unknown": GroupState.REGRESSION, "rate_limit": GroupState.OPEN}
    shown = {
        row.kind: row.state for row in reports.messages(recorded.journal, ReportFilter(), now=recorded.clock.now())
    }
    assert shown == states(recorded)
    only = groups(recorded.journal, now=recorded.clock.now(), states=frozenset({GroupState.REGRESSION}))
    assert [group.kind for group in only] == ["unknown"]


def test_a_snooze_ends(recorded: Recorded) -> None:
    """A snoozed group stays snoozed until its time, whatever occurs meanwhile."""
    now = recorded.clock.now()
    group = groups(recorded.journal, now=now)[0]
    snooze(recorded.journal, group, until=now + DAY, now=now)
    recorded.recover(NO_IDEA, "fine")
    assert states(recorded)["unknown"] is GroupState.SNOOZED
    recorded.clock.advance(DAY)
    assert states(recorded)["unknown"] is GroupState.OPEN
    with pytest.raises(ConfigError, match="until"):
        snooze(recorded.journal, group, until=now, now=now)


def test_the_last_word_counts_and_can_be_taken_back(recorded: Recorded) -> None:
    """Resolving a snoozed group replaces the snooze; reopening deletes the state."""
    now = recorded.clock.now()
    group = groups(recorded.journal, now=now)[0]
    snooze(recorded.journal, group, until=now + DAY, now=now)
    resolve(recorded.journal, group, now=now)
    assert states(recorded)["unknown"] is GroupState.RESOLVED
    assert reopen(recorded.journal, group).state is GroupState.OPEN
    assert states(recorded)["unknown"] is GroupState.OPEN


def test_what_a_person_said_outlives_a_rebuild(recorded: Recorded) -> None:
    """A rebuild derives the groups again and keeps the operator's states."""
    group = groups(recorded.journal, now=recorded.clock.now())[0]
    resolve(recorded.journal, group, now=recorded.clock.now())
    recorded.journal.rebuild()
    assert states(recorded)["unknown"] is GroupState.RESOLVED


def test_a_group_is_found_by_its_beginning(recorded: Recorded) -> None:
    """A unique prefix of a fingerprint finds the group; no match and several matches raise."""
    now = recorded.clock.now()
    group = groups(recorded.journal, now=now)[0]
    assert find_group(recorded.journal, group.fingerprint[:6], now=now) == group
    assert find_group(recorded.journal, group.fingerprint, now=now, project="web") == group
    for nothing in ("", "zz", "%", "_"):
        with pytest.raises(ConfigError, match="fingerprint"):
            find_group(recorded.journal, nothing, now=now)
    recorded.journal.project = "api"
    recorded.recover(NO_IDEA, "fine")
    with pytest.raises(ConfigError, match=r"not of .*'api'.*'web'"):
        find_group(recorded.journal, group.fingerprint, now=now)


@given(st.sampled_from([None, "resolved", "snoozed"]), *[st.integers(0, 5).map(float)] * 4)
def test_a_state_follows_from_what_was_said_and_seen(
    said: str | None, at: float, until: float, last: float, now: float
) -> None:
    """A group is resolved until a later occurrence, snoozed until its end, otherwise open, for any times."""
    expected = GroupState.OPEN
    if said == "resolved":
        expected = GroupState.RESOLVED if last <= at else GroupState.REGRESSION
    elif said == "snoozed" and now < until:
        expected = GroupState.SNOOZED
    assert state_of(said, at if said else None, until if said == "snoozed" else None, last, now) is expected
