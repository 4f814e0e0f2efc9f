"""Parser of ladders and policies: every error names its key, and overrides keep the other settings."""

from __future__ import annotations

import math
import tomllib
from contextlib import suppress
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rung.core.domain.errors import ConfigError
from rung.core.domain.failures import GROUPS, NEVER_RETRYABLE, TRANSIENT, Kind
from rung.core.domain.ladder import Action, RungScope
from rung.core.policy.backoff import Backoff
from rung.core.policy.budget import Budget
from rung.core.policy.learn_settings import LearnSettings
from rung.core.policy.parser import POLICY_KEYS, parse_ladder, parse_policy, parse_policy_file, policy
from rung.core.policy.policy import Confirm, Model, Policy, Sticky
from rung.core.policy.presets import LADDERS
from rung.core.policy.stalls import StallLimits
from rung.core.policy.templates import TEMPLATES, preset

END = {"action": "surface"}


def rungs(*rows: Any, **more: Any) -> dict[str, Any]:
    """A file with a ladder of these rungs, an ending added."""
    return {"ladder": {"rungs": [*rows, END], **more}}


def settings(**keys: Any) -> dict[str, Any]:
    return {"policy": keys}


NAN, INF, HUGE = math.nan, math.inf, 10**400
# The file, the key its error must name, and the value.
BAD: list[tuple[Any, str, Any]] = [
    # the file itself
    (None, "file", None),
    ([], "file", []),
    ("policy", "file", "policy"),
    ({"polcy": {}}, "file.polcy", {}),
    ({1: 2}, "file.1", 2),
    ({"policy": []}, "policy", []),
    ({"policy": None}, "policy", None),
    ({"projects": 3}, "projects", 3),
    ({"projects": {"web": 3}}, "projects.web", 3),
    ({"tools": {"bash": "off"}}, "tools.bash", "off"),
    ({"projects": {"web": {"retris": 1}}}, "projects.web.retris", 1),
    ({"projects": {"web": {"attempts": 0}}}, "projects.web.attempts", 0),
    ({"tools": {"bash": {"backoff": {"base": -1}}}}, "tools.bash.backoff.base", -1),
    ({"tools": {"bash": {"ladder": {"rungs": [{}]}}}}, "tools.bash.ladder.rungs[0].action", None),
    ({"ladder": {"rungs": [END]}, "policy": {"ladder": "task"}}, "policy.ladder", "task"),
    # the ladder
    ({"ladder": []}, "ladder", []),
    ({"ladder": {}}, "ladder.rungs", None),
    ({"ladder": {"rungs": []}}, "ladder.rungs", []),
    ({"ladder": {"rungs": {"a": 1}}}, "ladder.rungs", {"a": 1}),
    ({"ladder": {"rungs": [END], "color": "red"}}, "ladder.color", "red"),
    ({"ladder": {"rungs": [{"action": "retry"}]}}, "ladder.rungs", "retry"),
    (rungs(END | {"name": "early"}), "ladder.rungs", "early"),
    (rungs(END), "ladder.rungs.name", "surface"),
    (rungs(name=5), "ladder.name", 5),
    (rungs(about=["x"]), "ladder.about", ["x"]),
    (rungs(base_level="1"), "ladder.base_level", "1"),
    (rungs(base_level=True), "ladder.base_level", True),
    (rungs(base_level=1.0), "ladder.base_level", 1.0),
    (rungs(default_entry="hope"), "ladder.default_entry", "hope"),
    (rungs(default_entry=0), "ladder.default_entry", 0),
    (rungs(entry=[]), "ladder.entry", []),
    (rungs(entry={"timeout": "wait"}), "ladder.entry.timeout", "wait"),
    (rungs(entry={"timeout": 1}), "ladder.entry.timeout", 1),
    (rungs(sizes=[]), "ladder.sizes", []),
    (rungs(sizes={"huge": "surface"}), "ladder.sizes.huge", "huge"),
    (rungs(sizes={"simple": "wait"}), "ladder.sizes.simple", "wait"),
    (rungs(sizes={"simple": 1}), "ladder.sizes.simple", 1),
    (rungs({"action": "nudge", "spent_with": 5}), "ladder.rungs[0].spent_with", 5),
    (rungs({"action": "nudge", "spent_with": "nudge"}), "ladder.rungs[0].spent_with", "nudge"),
    (rungs(entry={"tiemout": "surface"}), "ladder.entry.tiemout", "tiemout"),
    (rungs(entry={5: "surface"}), "ladder.entry.5", 5),
    (rungs(loops=[3]), "ladder.loops", [3]),
    (rungs(loops={"three": "surface"}), "ladder.loops.three", "three"),
    (rungs(loops={"-3": "surface"}), "ladder.loops.-3", "-3"),
    (rungs(loops={"\N{SUPERSCRIPT TWO}": "surface"}), "ladder.loops.\N{SUPERSCRIPT TWO}", "\N{SUPERSCRIPT TWO}"),
    (rungs(loops={"9" * 5000: "surface"}), "ladder.loops." + "9" * 5000, "9" * 5000),
    (rungs(loops={None: "surface"}), "ladder.loops.None", None),
    (rungs(loops={"0": "surface"}), "ladder.loops", 0),
    (rungs(loops={"3": "wait"}), "ladder.loops.3", "wait"),
    (rungs(loops={"3": 3}), "ladder.loops.3", 3),
    # a rung
    (rungs("retry"), "ladder.rungs[0]", "retry"),
    (rungs({}), "ladder.rungs[0].action", None),
    (rungs({"action": "pray"}), "ladder.rungs[0].action", "pray"),
    (rungs({"action": ["retry"]}), "ladder.rungs[0].action", ["retry"]),
    (rungs({"action": "retry", "trys": 3}), "ladder.rungs[0].trys", 3),
    (rungs({"action": "retry", "repeats": True}), "ladder.rungs[0].repeats", True),
    (rungs({"action": "retry", "name": 5}), "ladder.rungs[0].name", 5),
    (rungs({"action": "retry", "tries": -1}), "ladder.rungs[0].tries", -1),
    (rungs({"action": "retry", "tries": True}), "ladder.rungs[0].tries", True),
    (rungs({"action": "retry", "tries": 2.0}), "ladder.rungs[0].tries", 2.0),
    (rungs({"action": "retry", "seconds": NAN}), "ladder.rungs[0].seconds", NAN),
    (rungs({"action": "retry", "seconds": INF}), "ladder.rungs[0].seconds", INF),
    (rungs({"action": "retry", "seconds": HUGE}), "ladder.rungs[0].seconds", HUGE),
    (rungs({"action": "retry", "seconds": "30"}), "ladder.rungs[0].seconds", "30"),
    (rungs({"action": "retry", "cost": -1}), "ladder.rungs[0].cost", -1),
    (rungs({"action": "retry", "cost": HUGE}), "ladder.rungs[0].cost", HUGE),
    (rungs({"action": "retry", "scope": "forever"}), "ladder.rungs[0].scope", "forever"),
    (rungs({"action": "nudge", "scope": "action"}), "ladder.rungs[0].scope", "action"),
    (rungs({"action": "nudge", "applies_to": "timeout"}), "ladder.rungs[0].applies_to", "timeout"),
    (rungs({"action": "nudge", "applies_to": {"timeout": 1}}), "ladder.rungs[0].applies_to", {"timeout": 1}),
    (rungs({"action": "nudge", "applies_to": ["timeot"]}), "ladder.rungs[0].applies_to.timeot", "timeot"),
    (rungs({"action": "nudge", "applies_to": [["timeout"]]}), "ladder.rungs[0].applies_to.['timeout']", ["timeout"]),
    (rungs({"action": "nudge", "max_missing_sections": "2"}), "ladder.rungs[0].max_missing_sections", "2"),
    (rungs({"action": "nudge", "rollback": "no"}), "ladder.rungs[0].rollback", "no"),
    # the policy
    (settings(retrys=3), "policy.retrys", 3),
    (settings(ladder="stairs"), "policy.ladder", "stairs"),
    (settings(ladder=3), "policy.ladder", 3),
    (settings(ladder=["task"]), "policy.ladder", ["task"]),
    (settings(ladder={"rungs": [{"action": "no"}]}), "policy.ladder.rungs[0].action", "no"),
    (settings(template="brave"), "policy.template", "brave"),
    (settings(template=None), "policy.template", None),
    (settings(template=["off"]), "policy.template", ["off"]),
    (settings(retries=-1), "policy.retries", -1),
    (settings(retries=1.5), "policy.retries", 1.5),
    (settings(retries=True), "policy.retries", True),
    (settings(retries=None), "policy.retries", None),
    (settings(attempts=0), "policy.attempts", 0),
    (settings(attempts=True), "policy.attempts", True),
    (settings(attempts="8"), "policy.attempts", "8"),
    (settings(seconds=-1), "policy.seconds", -1),
    (settings(seconds=NAN), "policy.seconds", NAN),
    (settings(dollars=INF), "policy.dollars", INF),
    (settings(dollars="2 $"), "policy.dollars", "2 $"),
    (settings(budget=20), "policy.budget", 20),
    (settings(budget={"atempts": 3}), "policy.budget.atempts", 3),
    (settings(budget={"attempts": False}), "policy.budget.attempts", False),
    (settings(budget={"dollars": HUGE}), "policy.budget.dollars", HUGE),
    (settings(name=None), "policy.name", None),
    (settings(backoff=1), "policy.backoff", 1),
    (settings(backoff={"bas": 1}), "policy.backoff.bas", 1),
    (settings(backoff={"base": "1"}), "policy.backoff.base", "1"),
    (settings(backoff={"multiplier": 0.5}), "policy.backoff.multiplier", 0.5),
    (settings(backoff={"cap": NAN}), "policy.backoff.cap", NAN),
    (settings(backoff={"jitter": 1}), "policy.backoff.jitter", 1),
    (settings(stalls=1), "policy.stalls", 1),
    (settings(stalls={"min_seconds": 0}), "policy.stalls.min_seconds", 0),
    (settings(models="small"), "policy.models", "small"),
    (settings(models=3), "policy.models", 3),
    (settings(models={"name": "small"}), "policy.models", {"name": "small"}),
    (settings(models=[3]), "policy.models[0]", 3),
    (settings(models=["a", {"cost": 1}]), "policy.models[1].name", None),
    (settings(models=[{"name": "a", "price": 1}]), "policy.models[0].price", 1),
    (settings(models=[{"name": 5}]), "policy.models[0].name", 5),
    (settings(models=[{"name": "a", "cost": "1"}]), "policy.models[0].cost", "1"),
    (settings(models=[{"name": "a", "cost": True}]), "policy.models[0].cost", True),
    (settings(models=[{"name": "a", "cost": NAN}]), "policy.models[0].cost", NAN),
    (settings(models=[{"name": "a", "cost": HUGE}]), "policy.models[0].cost", HUGE),
    (settings(models=[{"name": "a", "max_tokens": 1.5}]), "policy.models[0].max_tokens", 1.5),
    (settings(models=[{"name": "a", "max_tokens": 0}]), "policy.models[0].max_tokens", 0),
    (settings(models=[{"name": "a", "provider": 1}]), "policy.models[0].provider", 1),
    (settings(models=[""]), "policy.models[0].name", ""),
    (settings(models=["a", "a"]), "policy.models", "a"),
    (settings(agents="me"), "policy.agents", "me"),
    (settings(agents=[1]), "policy.agents[0]", 1),
    (settings(agents=b"me"), "policy.agents", b"me"),
    (settings(same_account="me"), "policy.same_account", "me"),
    (settings(retry="timeout"), "policy.retry", "timeout"),
    (settings(retry=["tiemout"]), "policy.retry.tiemout", "tiemout"),
    (settings(retry=["refusal"]), "policy.retry", "refusal"),
    (settings(retry=[None]), "policy.retry.None", None),
    (settings(retry_after_cap="60"), "policy.retry_after_cap", "60"),
    (settings(retry_after_cap=None), "policy.retry_after_cap", None),
    (settings(patience=-1), "policy.patience", -1),
    (settings(park="6h"), "policy.park", "6h"),
    (settings(retry_after_cap=-1), "policy.retry_after_cap", -1),
    (settings(retry_after_cap=NAN), "policy.retry_after_cap", NAN),
    (settings(retry_after_cap=HUGE), "policy.retry_after_cap", HUGE),
    (settings(attempt_seconds=0), "policy.attempt_seconds", 0),
    (settings(attempt_seconds=INF), "policy.attempt_seconds", INF),
    (settings(attempt_seconds=True), "policy.attempt_seconds", True),
    (settings(auto_escalate=1), "policy.auto_escalate", 1),
    (settings(retry_budget=0), "policy.retry_budget", 0),
    (settings(breaker="off"), "policy.breaker", "off"),
    (settings(escalate_after=-1), "policy.escalate_after", -1),
    (settings(escalate_after=2.0), "policy.escalate_after", 2.0),
    (settings(escalate_after=False), "policy.escalate_after", False),
    (settings(confirm="maybe"), "policy.confirm", "maybe"),
    (settings(confirm=True), "policy.confirm", True),
    (settings(sticky="forever"), "policy.sticky", "forever"),
    (settings(unattended="yes"), "policy.unattended", "yes"),
    (settings(checkpoints=0), "policy.checkpoints", 0),
    (settings(learn=0), "policy.learn", 0),
    (settings(learn={"enabled": 1}), "policy.learn.enabled", 1),
    (settings(learn={"min_attempts": 4}), "policy.learn.min_attempts", 4),
    (settings(learn={"explore": 0.6}), "policy.learn.explore", 0.6),
    (settings(learn={"explore": "often"}), "policy.learn.explore", "often"),
    (settings(learn={"window": 0}), "policy.learn.window", 0),
    (settings(learn={"rate": 1}), "policy.learn.rate", 1),
    (settings(entry=[]), "policy.entry", []),
    (settings(entry={"timeout": "jump"}), "policy.entry.timeout", "jump"),
    (settings(entry={"timeout": 1}), "policy.entry.timeout", 1),
    (settings(entry={"soup": "nudge"}), "policy.entry.soup", "soup"),
    (settings(tries=3), "policy.tries", 3),
    (settings(tries={"jump": 3}), "policy.tries.jump", 3),
    (settings(tries={"nudge": -1}), "policy.tries.nudge", -1),
    ({"projects": {"web": {"entry": {"timeout": "respawn"}}}}, "projects.web.entry.timeout", "respawn"),
    ({"projects": {"web": {"tries": 1}}}, "projects.web.tries", 1),
    (
        {"projects": {"web": {"ladder": "pipeline"}}, "tools": {"bash": {"tries": {"replan": 1}}}},
        "tools.bash.tries.replan",
        1,
    ),
    (settings(elide_text="no"), "policy.elide_text", "no"),
    (settings(resume_sessions="no"), "policy.resume_sessions", "no"),
    (settings(report=False), "policy.report", False),
    (settings(prompts=[]), "policy.prompts", []),
    (settings(prompts={"nudge": "x"}), "policy.prompts.nudge", "x"),
    (settings(prompts={"nudge.test": 1}), "policy.prompts.nudge.test", 1),
]


@pytest.mark.parametrize(("table", "key", "value"), BAD, ids=[row[1][:50] + f"-{n}" for n, row in enumerate(BAD)])
def test_every_mistake_is_named(table: Any, key: str, value: Any) -> None:
    """Whatever is wrong in a file, the error names the key as it was written, the value and what is allowed."""
    with pytest.raises(ConfigError) as raised:
        parse_policy_file(table)
    error = raised.value
    assert error.key == key
    assert error.value is value or error.value == value
    assert error.allowed
    assert str(error) == f"{key}: {value!r} is invalid; must be {error.allowed}"


def test_the_table_of_mistakes_is_long() -> None:
    """Every key of a policy, a rung and a model has a mistake in the table above."""
    seen = {key.rpartition(".")[2].partition("[")[0] for _, key, _ in BAD}
    assert set(POLICY_KEYS) <= seen
    assert {"action", "tries", "seconds", "scope", "cost", "applies_to", "max_missing_sections", "rollback"} <= seen


TABLES = [
    "policy",
    "projects",
    "tools",
    "rungs",
    "entry",
    "loops",
    "base_level",
    "default_entry",
    "about",
    "action",
    "tries",
    "seconds",
    "scope",
    "cost",
    "applies_to",
]
PARTS = ["base", "cap", "jitter", "max_tokens", "nudge.test", "timeout"]
WORDS = st.sampled_from([*POLICY_KEYS, *TABLES, *PARTS])
VALUES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.just(HUGE)
    | st.floats()
    | st.text(max_size=5)
    | WORDS
    | st.sampled_from([*LADDERS, *TEMPLATES, *Action, *RungScope, *Kind, *GROUPS, "never", "session", "3"])
    | st.binary(max_size=3)
)
KEYS = WORDS | st.text(max_size=3) | st.integers() | st.none()
JUNK = st.recursive(
    VALUES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4) | st.tuples(inner),
    max_leaves=12,
)
RUNG_KEYS = st.sampled_from(
    ["action", "name", "tries", "seconds", "scope", "cost", "applies_to", "max_missing_sections", "rollback"]
)
RUNGS = st.lists(st.dictionaries(RUNG_KEYS, VALUES, max_size=4).map(lambda row: {"action": "retry", **row}), max_size=3)


@given(JUNK)
@example({"policy": {"backoff": {"base": HUGE}}})
def test_junk_is_refused_in_our_own_words(junk: Any) -> None:
    """No table at all, however strange, raises anything but a ConfigError."""
    for read in (parse_policy_file, parse_policy, parse_ladder):
        with suppress(ConfigError):
            read(junk)


@given(
    st.dictionaries(st.sampled_from(POLICY_KEYS), JUNK, max_size=3), RUNGS, st.dictionaries(KEYS, VALUES, max_size=2)
)
def test_junk_in_the_right_places(keys: dict[str, Any], rows: list[Any], loops: dict[Any, Any]) -> None:
    """Junk under keys that exist raises nothing but a ConfigError, also over and under other tables."""
    ladder = {"rungs": [*rows, END], "loops": loops}
    for table in (
        {"policy": keys},
        {"ladder": ladder, "policy": {key: keys[key] for key in keys if key != "ladder"}},
        {"policy": {"ladder": ladder}, "projects": {"web": keys}, "tools": {"bash": keys}},
    ):
        try:
            book = parse_policy_file(table)
        except ConfigError:
            continue
        for project in ("", "web"):
            for tool in ("", "bash"):
                assert isinstance(book.policy_for(project, tool), Policy)


def test_an_empty_file_is_the_default() -> None:
    """A file that says nothing is the task ladder's preset, for every project and tool."""
    book = parse_policy_file({})
    assert book.default == preset("task")
    assert book.policy_for("web", "bash") is book.default
    assert policy() == preset()


def test_every_key() -> None:
    """Each key of a policy sets what its name says, and nothing else."""
    keys: dict[str, Any] = {
        "ladder": "model",
        "template": "conservative",
        "retries": 5,
        "attempts": 8,
        "seconds": 90.5,
        "dollars": 2,
        "name": "mine",
        "backoff": {"base": 3},
        "models": ["small", {"name": "large", "cost": 1, "max_tokens": 10, "provider": "p"}, Model(name="other")],
        "agents": ["a", "b"],
        "same_account": ["b"],
        "retry": ["transient", "tool_error"],
        "retry_after_cap": 5,
        "patience": 9,
        "park": 3_600,
        "stalls": {"min_seconds": 11},
        "attempt_seconds": 7,
        "retry_budget": False,
        "breaker": False,
        "auto_escalate": False,
        "escalate_after": 4,
        "confirm": "always",
        "sticky": "session",
        "unattended": True,
        "checkpoints": False,
        "report": "",
        "prompts": {"nudge.test": "Mend it."},
        "learn": True,
        "elide_text": True,
        "resume_sessions": False,
    }
    assert set(keys) == set(POLICY_KEYS) - {"budget", "entry", "tries"}
    base = preset("model", "conservative").with_tries(Action.RETRY, 5)
    assert parse_policy(keys) == base.replace(
        budget=Budget(attempts=8, seconds=90.5, dollars=2),
        name="mine",
        backoff=Backoff(base=3, cap=60),
        models=(Model(name="small"), Model(name="large", cost=1, max_tokens=10, provider="p"), Model(name="other")),
        agents=("a", "b"),
        same_account=("b",),
        retry=TRANSIENT | {Kind.TOOL_ERROR},
        retry_after_cap=5,
        patience=9,
        park=3_600,
        stalls=StallLimits(min_seconds=11),
        attempt_seconds=7,
        retry_budget=False,
        breaker=False,
        auto_escalate=False,
        escalate_after=4,
        confirm=Confirm.ALWAYS,
        sticky=Sticky.SESSION,
        unattended=True,
        checkpoints=False,
        report="",
        prompts={"nudge.test": "Mend it."},
        learn=True,
        elide_text=True,
        resume_sessions=False,
    )


def test_budget_in_one_table_or_by_key() -> None:
    """The three caps may stand in a table, as a value or by themselves; by themselves they weigh more."""
    assert parse_policy({"budget": {"attempts": 3}}).budget == Budget(attempts=3, seconds=3600)
    assert parse_policy({"budget": Budget(dollars=1), "attempts": 2}).budget == Budget(attempts=2, dollars=1)
    assert parse_policy({"budget": {"attempts": 3}, "attempts": None}).budget.attempts is None
    assert parse_policy({"backoff": Backoff(cap=5)}).backoff == Backoff(cap=5)
    assert parse_policy({"attempt_seconds": None}).attempt_seconds is None


def test_no_retries() -> None:
    """Retries may be switched off by themselves, which leaves the rest of the ladder."""
    assert [rung.tries for rung in policy("task", retries=0, park=0, patience=0).ladder.rungs] == [0, 3, 1, 9, 1]


def test_a_policy_in_python() -> None:
    """In Python a ladder may be a value, and lists may be tuples or sets."""
    own = parse_ladder({"rungs": [END]})
    assert policy(own).ladder is own
    made = policy("task", "off", agents=("a",), retry={"timeout"})
    assert (made.name, made.agents, made.retry) == ("off", ("a",), frozenset({Kind.TIMEOUT}))
    with pytest.raises(ConfigError, match=r"policy\.colour"):
        policy(colour="red")  # type: ignore[call-arg]  # the mistake that is tested


@pytest.mark.parametrize("name", LADDERS)
def test_a_shipped_ladder_written_as_a_table(name: str) -> None:
    """A ladder that ships can be written as a table, and read back it is the same."""
    ladder = LADDERS[name]
    table = {
        "name": ladder.name,
        "about": ladder.about,
        "base_level": ladder.base_level,
        "default_entry": ladder.default_entry,
        "entry": {kind.value: rung for kind, rung in ladder.entry.items()},
        "loops": {str(count): rung for count, rung in ladder.loops},
        "sizes": {size.value: rung for size, rung in ladder.sizes.items()},
        "rungs": [
            {
                "action": rung.action.value,
                "name": rung.name,
                "tries": rung.tries,
                "seconds": rung.seconds,
                "scope": rung.scope.value,
                "cost": rung.cost,
                "max_missing_sections": rung.max_missing_sections,
                "rollback": rung.rollback,
                "spent_with": rung.spent_with,
                **({} if rung.applies_to is None else {"applies_to": sorted(rung.applies_to)}),
            }
            for rung in ladder.rungs
        ],
    }
    assert parse_ladder(table) == ladder
    assert parse_ladder(MappingProxyType(table)) == ladder


def test_what_a_ladder_may_leave_out() -> None:
    """A ladder needs its rungs alone: kinds then enter at the first, and retry starts afresh after each climb."""
    ladder = parse_ladder(
        {"rungs": [{"action": "retry"}, {"action": "retry", "name": "once", "scope": "session"}, END]}
    )
    assert (ladder.name, ladder.default_entry, ladder.base_level, ladder.about) == ("custom", "retry", 1, "")
    assert [rung.scope for rung in ladder.rungs] == [RungScope.ACTION, RungScope.SESSION, RungScope.INCIDENT]
    assert not ladder.entry


def test_groups_and_kinds_in_entries() -> None:
    """A group stands for all its kinds, and a kind's own word weighs more, whether before or after it."""
    rows = [{"action": "retry"}, {"action": "nudge", "applies_to": ["limits", "timeout"]}, END]
    for entry in ({"transient": "retry", "timeout": "surface"}, {"timeout": "surface", "transient": "retry"}):
        ladder = parse_ladder({"rungs": rows, "entry": entry})
        assert ladder.entry[Kind.TIMEOUT] == "surface"
        assert {ladder.entry[kind] for kind in TRANSIENT - {Kind.TIMEOUT}} == {"retry"}
    assert ladder.rungs[1].applies_to == frozenset({*GROUPS["limits"], Kind.TIMEOUT})


def test_loops_by_number_or_text() -> None:
    """The number of repeats is a text in TOML, and may be a number in Python."""
    by_text, by_number = (parse_ladder({"rungs": [END], "loops": {key: "surface"}}) for key in ("5", 5))
    assert by_text == by_number
    assert by_text.loops == ((5, "surface"),)


def test_every_repeatable_kind_may_be_repeated() -> None:
    """Each kind may be listed under `retry` but those that a repeat never helps."""
    for kind in Kind:
        if kind in NEVER_RETRYABLE:
            with pytest.raises(ConfigError, match="retry"):
                parse_policy({"retry": [kind.value]})
        else:
            assert parse_policy({"retry": [kind.value]}).retry == {kind}


FILE = """
[policy]
template = "conservative"
retries = 2
attempts = 8
dollars = 2.0
models = ["small", "large"]
backoff = { base = 3, cap = 9 }
prompts = { "nudge.test" = "Mend it.", "nudge.path" = "Look." }

[projects.web]
dollars = 5.0
backoff = { cap = 20 }
prompts = { "nudge.path" = "Look here." }

[projects.api]
ladder = "call"

[projects.calm]
template = "off"

[projects.wild]
template = "aggressive"
budget = { seconds = 5 }

[tools.bash]
attempt_seconds = 120
retries = 1
dollars = 1.0

[tools.search]
budget = { attempts = 3 }
"""


def test_a_project_keeps_what_it_does_not_name() -> None:
    """What a project does not name stays, also inside the tables of backoff and prompts."""
    book = parse_policy_file(tomllib.loads(FILE))
    web = book.policy_for("web")
    assert web == book.default.replace(
        budget=Budget(attempts=8, seconds=3600, dollars=5),
        backoff=Backoff(base=3, cap=20),
        prompts={"nudge.test": "Mend it.", "nudge.path": "Look here."},
    )
    assert book.policy_for("unknown", "unknown") is book.default


def test_a_tool_weighs_most() -> None:
    """A tool's word weighs more than a project's, which stays where the tool says nothing."""
    book = parse_policy_file(tomllib.loads(FILE))
    both = book.policy_for("web", "bash")
    assert both.attempt_seconds == 120
    assert both.budget == Budget(attempts=8, seconds=3600, dollars=1)
    assert both.backoff == Backoff(base=3, cap=20)
    assert both.ladder.rungs[0].tries == 1
    assert book.policy_for(tool="search").budget == Budget(attempts=3, seconds=3600, dollars=2)
    assert book.policy_for("web", "search").budget == Budget(attempts=3, seconds=3600, dollars=5)


def test_another_ladder_keeps_the_settings() -> None:
    """A project that names another ladder keeps the file's template, retries and caps."""
    api = parse_policy_file(tomllib.loads(FILE)).policy_for("api")
    assert [rung.name for rung in api.ladder.rungs] == [rung.name for rung in preset("call").ladder.rungs]
    assert api.ladder.rungs[0].tries == 2
    assert (api.budget.attempts, api.confirm, len(api.models)) == (8, Confirm.MORE_EXPENSIVE, 2)


def test_another_template_starts_from_itself() -> None:
    """A project that names another template gets that one, not a mixture of two, under the file's other settings."""
    book = parse_policy_file(tomllib.loads(FILE))
    wild = book.policy_for("wild")
    assert (wild.retry_after_cap, wild.confirm, wild.escalate_after) == (180, Confirm.NEVER, None)
    assert wild.budget == Budget(attempts=8, seconds=5, dollars=2)
    assert wild.ladder.rungs[0].tries == 2
    assert len(book.policy_for("calm").ladder.rungs) == 1
    on_again = parse_policy_file(
        {"policy": {"template": "off"}, "projects": {"x": {"template": "default"}}}
    ).policy_for("x")
    assert on_again == preset()


def test_a_file_with_its_own_ladder() -> None:
    """The ladder of a file is that of its policy, and a project may still take another."""
    book = parse_policy_file(
        {"ladder": {"name": "own", "rungs": [END]}, "projects": {"x": {"ladder": "crew"}, "y": {}}}
    )
    assert book.default.ladder.name == book.policy_for("y").ladder.name == "own"
    assert book.policy_for("x").ladder is LADDERS["crew"]


def test_upon_a_base() -> None:
    """Settings upon a policy that is there change what they name: its ladder, its template, one by one."""
    base = policy("task", attempts=7, models=["small"])
    assert parse_policy({}, base=base) == base
    assert parse_policy({"ladder": "call"}, base=base) == base.replace(ladder=LADDERS["call"])
    unattended = parse_policy({"template": "unattended"}, base=base)
    assert (unattended.name, unattended.unattended, unattended.budget.attempts) == ("unattended", True, 7)
    assert parse_policy({"prompts": {"nudge.test": "x"}}, base=base.replace(prompts={"nudge.path": "y"})).prompts == {
        "nudge.test": "x",
        "nudge.path": "y",
    }


def test_entries_and_tries_change_single_rungs_of_the_ladder() -> None:
    """A policy changes the entry of a kind or a group, and the tries of a rung; the rest of the ladder stays."""
    plain = policy("task")
    changed = policy("task", entry={"result": "replan", "gave_up": "fallback"}, tries={"nudge": 1, "retry": 2})
    assert changed.ladder.entry[Kind.GAVE_UP] == "fallback"
    assert changed.ladder.entry[Kind.LOW_QUALITY] == changed.ladder.entry[Kind.TOOL_ERROR] == "replan"
    assert changed.ladder.entry[Kind.TIMEOUT] == "retry"
    assert [rung.tries for rung in changed.ladder.rungs[:3]] == [2, 1, 1]
    assert changed.budget == plain.budget
    assert [rung.name for rung in changed.ladder.rungs] == [rung.name for rung in plain.ladder.rungs]


def test_a_template_keeps_entries_and_yields_to_tries() -> None:
    """The tries of a policy override the template's; a template without those rungs still is one."""
    assert policy("task", "aggressive", tries={"retry": 1}).retries == 1
    assert policy("task", "off", entry={"gave_up": "replan"}, tries={"nudge": 1}).is_off


def test_a_project_adds_entries_and_another_ladder_drops_them() -> None:
    """Entries of a project are added to those of the file, and a project on another ladder has only its own."""
    book = parse_policy_file(
        {
            "policy": {"entry": {"gave_up": "replan"}, "tries": {"nudge": 1}},
            "projects": {
                "web": {"entry": {"timeout": "nudge"}},
                "app": {"ladder": "pipeline", "entry": {"gave_up": "ask"}},
            },
        }
    )
    web, app = book.policy_for("web").ladder, book.policy_for("app").ladder
    assert (web.entry[Kind.GAVE_UP], web.entry[Kind.TIMEOUT], web.rungs[1].tries) == ("replan", "nudge", 1)
    assert (app.name, app.entry[Kind.GAVE_UP], app.rungs[0].tries) == ("pipeline", "ask", 2)


def test_learn_is_a_table_with_a_short_form() -> None:
    """`learn = true` is short for `enabled`; tables of projects are merged key by key with either form."""
    assert policy("task", learn=True).learn == LearnSettings(enabled=True)
    assert policy("task").replace(learn=True) == policy("task", learn={"enabled": True})
    book = parse_policy_file({"policy": {"learn": True}, "projects": {"web": {"learn": {"explore": 0.0}}}})
    assert book.policy_for("web").learn == LearnSettings(enabled=True, explore=0.0)
    book = parse_policy_file({"policy": {"learn": {"window": 60}}, "projects": {"web": {"learn": True}}})
    assert book.policy_for("web").learn == LearnSettings(enabled=True, window=60)
