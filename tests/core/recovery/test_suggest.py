"""Suggestions from recorded incidents: what would have paid, how sure it is, and nothing from too little data."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rung.core.domain.failures import NEVER_RETRYABLE, Kind
from rung.core.policy.parser import merge_tables, parse_policy, parse_policy_file, policy
from rung.core.policy.presets import LADDERS
from rung.core.policy.serializer import to_toml
from rung.core.recovery.ladder_path import ladder_path
from rung.core.recovery.rung_tries import RungTry, TriedIncident
from rung.core.recovery.suggest import MIN_INCIDENTS, Suggestion, suggest
from rung.core.recovery.try_estimates import Saving

if TYPE_CHECKING:
    from collections.abc import Sequence

TASK = policy("task")
NAMES = tuple(rung.name for rung in TASK.ladder.rungs)


def incident(kind: Kind, *steps: tuple[str, bool], project: str = "", model: str = "m") -> TriedIncident:
    """An incident whose rungs were tried in this order: each try takes 10 seconds and costs 0.5 dollars."""
    numbers: dict[str, int] = {}
    tries = []
    for name, succeeded in steps:
        numbers[name] = numbers.get(name, 0) + 1
        tries.append(RungTry(kind, name, numbers[name], succeeded, 10.0, 0.5))
    return TriedIncident("i", project, model, "task", NAMES, any(ok for _, ok in steps), tuple(tries))


def lost(kind: Kind = Kind.GAVE_UP, **where: str) -> TriedIncident:
    return incident(kind, ("nudge", False), ("replan", False), ("fallback", False), **where)


def fixed_late(kind: Kind = Kind.GAVE_UP, **where: str) -> TriedIncident:
    return incident(kind, ("nudge", False), ("replan", True), **where)


def fixed_early(kind: Kind = Kind.GAVE_UP, project: str = "", model: str = "m") -> TriedIncident:
    return incident(kind, ("nudge", True), project=project, model=model)


def suggested(incidents: Sequence[TriedIncident], **settings: Any) -> Suggestion:
    return suggest(incidents, lambda _: policy("task", **settings))


def settings_of(found: Suggestion) -> list[tuple[str, str, str, object]]:
    return [(change.project, change.setting, change.key, change.value) for change in found.changes]


def test_a_rung_that_seldom_helps_is_left_out() -> None:
    """The entry moves to the next rung, with the rates, the savings and the recoveries at risk of that change."""
    found = suggested([*[fixed_late()] * 60, *[lost()] * 38, *[fixed_early()] * 2])
    (change,) = found.changes
    assert (change.setting, change.key, change.value, change.was) == ("entry", "gave_up", "replan", "nudge")
    assert (change.left_out, change.instead, change.incidents) == ((2, 100), (60, 98), 100)
    assert change.sure == pytest.approx(1.0)
    later = (60 + 38 * 2) / 98  # tries of an incident that reached the later rungs
    assert change.saving.attempts.expected == pytest.approx(100 - 2 * later)
    assert change.saving.seconds.expected == pytest.approx(10 * (100 - 2 * later))
    assert change.saving.dollars.expected == pytest.approx(0.5 * (100 - 2 * later))
    assert change.saving.attempts.low < change.saving.attempts.expected < change.saving.attempts.high
    assert change.saving.recoveries_lost.expected == pytest.approx(2 * 38 / 98)


def test_the_fragment_is_a_policy_file() -> None:
    """The suggested tables are read back as a policy with these changes and nothing else."""
    found = suggested([*[fixed_late()] * 60, *[lost()] * 38])
    book = parse_policy_file(tomllib.loads(to_toml(found.table())))
    assert book.default == policy("task", entry={"gave_up": "replan"})


@pytest.mark.parametrize("count", [0, 1, 12, 29])
def test_too_few_incidents(count: int) -> None:
    """With fewer incidents than needed nothing is suggested, and the number is told."""
    found = suggested([fixed_late()] * count)
    assert (found.incidents, found.needed, found.is_enough, found.changes) == (count, 30, False, ())


def test_too_few_of_a_kind() -> None:
    """A kind with too few incidents gets no suggestion, however many there are of another, and is listed."""
    found = suggested([*[fixed_early(Kind.TOOL_ERROR)] * 100, *[fixed_late()] * 29])
    assert (found.changes, found.too_few) == ((), (("gave_up", 29),))


def test_a_rung_without_data_blocks() -> None:
    """A rung is left out only for one with data: nothing is known of rungs that were not tried."""
    assert suggested([incident(Kind.GAVE_UP, ("nudge", False))] * 100).changes == ()


def test_retries_that_never_helped() -> None:
    """Tries after which nothing ever succeeded are left out, but for one; the kinds that nothing fixed are told."""
    hopeless = incident(Kind.SERVER_ERROR, *[("retry", False)] * 3)
    found = suggested([hopeless] * 40)
    (change,) = found.changes
    assert (change.setting, change.key, change.value, change.was) == ("tries", "retry", 1, 3)
    assert [change.left_out, change.instead, change.sure] == [(0, 80), None, None]
    assert change.saving.attempts == Saving(80, 80, 80)
    assert change.saving.recoveries_lost == Saving(0, 0, 0)
    assert found.never_fixed == (("server_error", 40, 120),)


def second_try(kind: Kind, *, helps: bool) -> TriedIncident:
    return incident(kind, ("nudge", False), ("nudge", False), ("replan", helps))


def test_tries_that_do_worse_than_the_next_rung() -> None:
    """Later tries of a rung are left out if the next rung succeeds surely more often; its first try stays."""
    seconds = [second_try(Kind.GAVE_UP, helps=n < 25) for n in range(60)]
    found = suggested([*[fixed_early()] * 60, *seconds, incident(Kind.GAVE_UP, ("nudge", False), ("nudge", True))])
    assert settings_of(found) == [("", "tries", "nudge", 1)]
    (change,) = found.changes
    assert (change.left_out, change.instead, change.incidents) == ((1, 61), (25, 60), 61)


def test_tries_that_do_worse_than_a_rung_further_up() -> None:
    """The later rung that helps most is compared, also if the next one helps as little."""
    steps = [("nudge", False), ("nudge", False), ("replan", False)]
    climbs_on = [incident(Kind.GAVE_UP, *steps, ("fallback", n < 25)) for n in range(60)]
    found = suggested([*[fixed_early()] * 60, *climbs_on])
    assert settings_of(found) == [("", "tries", "nudge", 1)]
    assert (found.changes[0].instead_rung, found.changes[0].instead) == ("fallback", (25, 60))


def test_a_kind_that_later_tries_help() -> None:
    """Tries are shared by all kinds: one that needs them keeps them for all."""
    seconds = [second_try(Kind.GAVE_UP, helps=n < 150) for n in range(300)]
    needs = [incident(Kind.TOOL_ERROR, ("nudge", False), ("nudge", True))] * 10
    assert settings_of(suggested([*[fixed_early()] * 300, *seconds])) == [("", "tries", "nudge", 1)]
    assert settings_of(suggested([*[fixed_early()] * 300, *seconds, *needs])) == []


def test_a_change_must_pay() -> None:
    """A rung that succeeds less often than the next stays if the next costs so much more that it pays."""
    incidents = [*[fixed_late()] * 90, *[fixed_early()] * 40]
    assert settings_of(suggested(incidents)) == [("", "entry", "gave_up", "replan")]
    dear = [
        one._replace(tries=tuple(each._replace(dollars=5.0 if each.rung == "replan" else 0.5) for each in one.tries))
        for one in incidents
    ]
    assert settings_of(suggested(dear)) == []


@pytest.mark.parametrize(("project", "model"), [("web", "m"), ("app", "large")])
def test_a_project_or_model_that_does_well(project: str, model: str) -> None:
    """A change for all is not suggested against the data of one project or model."""
    others = [*[fixed_late(project="app")] * 200, *[lost(project="app")] * 40]
    assert ("", "entry", "gave_up", "replan") in settings_of(suggested(others))
    contrary = [fixed_early(project=project, model=model)] * 12
    assert ("", "entry", "gave_up", "replan") not in settings_of(suggested([*others, *contrary]))


def test_a_project_of_its_own() -> None:
    """What only one project shows is suggested for it, under its own name."""
    app = [*[fixed_late(project="app")] * 60, *[lost(project="app")] * 30]
    web = [fixed_early(project="web")] * 60
    found = suggested([*app, *web])
    assert settings_of(found) == [("app", "entry", "gave_up", "replan")]
    assert found.table() == {"projects": {"app": {"entry": {"gave_up": "replan"}}}}


def test_only_one_project() -> None:
    """If only the incidents of one project are read, the changes are made for that one."""
    app = [*[fixed_late(project="app")] * 60, *[lost(project="app")] * 30]
    found = suggest(app, lambda _: TASK, "app")
    assert settings_of(found) == [("app", "entry", "gave_up", "replan")]
    assert found.changes[0].models == (("m", (0, 90)),)


def test_another_ladder() -> None:
    """Incidents on another ladder are counted and not used."""
    other = [one._replace(ladder="call") for one in [fixed_late()] * 50]
    found = suggested([*other, *[fixed_early()] * 40])
    assert (found.incidents, found.elsewhere, found.changes) == (40, 50, ())


def test_the_path_of_a_provider_failure() -> None:
    """After its retries a failure of the provider goes on at the fallback; a kind that is never retried has no retry."""
    names = {kind: [NAMES[index] for index in ladder_path(TASK, kind)] for kind in Kind}
    assert names[Kind.SERVER_ERROR] == ["retry", "fallback"]
    assert names[Kind.GAVE_UP] == ["nudge", "replan", "fallback"]
    assert names[Kind.AUTH_ERROR] == []
    assert all("retry" not in names[kind] for kind in NEVER_RETRYABLE)


@st.composite
def climbs(draw: st.DrawFn) -> TriedIncident:
    """An incident that climbs the path of its kind, with any results."""
    kind = draw(st.sampled_from([Kind.GAVE_UP, Kind.SERVER_ERROR, Kind.REFUSAL, Kind.QUOTA_EXHAUSTED, Kind.TOOL_ERROR]))
    steps: list[tuple[str, bool]] = []
    for index in ladder_path(TASK, kind):
        for _ in range(draw(st.integers(1, 3))):
            steps.append((NAMES[index], draw(st.booleans())))
            if steps[-1][1]:
                return incident(kind, *steps, project=draw(st.sampled_from(["", "web"])))
    return incident(kind, *steps, model=draw(st.sampled_from(["a", "b"])))


@given(st.lists(climbs(), min_size=1, max_size=6), st.integers(1, 60))
@settings(max_examples=60, deadline=None)
def test_whatever_was_recorded(incidents: list[TriedIncident], times: int) -> None:
    """A suggestion is always a valid policy that leaves tries out: never a new retry, never the last rung of a kind."""
    found = suggested(incidents * times)
    assert not found.changes or found.incidents >= MIN_INCIDENTS
    table = tomllib.loads(to_toml(found.table()))
    parse_policy_file(table)
    tables = table.get("projects", {})
    for project in ("", "web"):
        changed = parse_policy(merge_tables(table.get("policy", {}), tables.get(project, {})))
        for before, after in zip(TASK.ladder.rungs, changed.ladder.rungs, strict=True):
            assert 1 <= after.tries <= before.tries
        for kind in Kind:
            before_path, path = ladder_path(TASK, kind), ladder_path(changed, kind)
            assert set(path) <= set(before_path)
            assert bool(path) == bool(before_path)


@pytest.mark.parametrize("name", LADDERS)
def test_every_ladder_has_a_path(name: str) -> None:
    """Paths end below the end of the ladder, on every built-in one."""
    ladder = policy(name).ladder
    for kind in Kind:
        assert all(index < len(ladder.rungs) - 1 for index in ladder_path(policy(name), kind))
