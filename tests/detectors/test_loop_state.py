"""The state of a detector: bounded, serialisable, with correct counts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rung.core.domain.errors import ConfigError
from rung.detectors.loop_settings import LoopSettings, loop_settings_from
from rung.detectors.session_monitor import SessionMonitor
from rung.detectors.step import Step, step_from

TOOLS = st.sampled_from(("bash", "read_file", "edit", "click", "web_search", "think", "FileSurfer", ""))
TEXTS = st.sampled_from(
    (
        "",
        "ls -la",
        "cat > a.py <<EOF",
        "Please open the file and count the rows.",
        "Open the file, please, and count all rows.",
        "Next page",
        "The page says what it said before, at some length, about the very same thing as ever.",
        "Error: no such file or directory",
        "still running",
        "took 0.21s at 10:00:00",
    )
)
ARGS = st.one_of(
    TEXTS, st.none(), st.dictionaries(st.sampled_from(("command", "path", "description", "url")), TEXTS, max_size=3)
)
STEPS = st.builds(Step, TOOLS, ARGS, TEXTS, st.one_of(st.booleans(), TEXTS), st.just(1.0), st.one_of(st.none(), TEXTS))


def told(watch: SessionMonitor, steps: list[Step]) -> list[Any]:
    return [watch.check(step) for step in steps]


@settings(max_examples=150, deadline=None)
@given(st.lists(STEPS, max_size=25), st.lists(STEPS, max_size=25))
def test_a_restart_changes_nothing(before: list[Step], after: list[Step]) -> None:
    """A state restored at any point gives the same findings."""
    watch = SessionMonitor()
    told(watch, before)
    restored = SessionMonitor.from_json(json.loads(json.dumps(watch.to_json())))
    assert told(restored, after) == told(watch, after)
    assert json.dumps(restored.to_json()) == json.dumps(watch.to_json())


@settings(max_examples=50, deadline=None)
@given(st.lists(STEPS, min_size=1, max_size=12))
def test_state_is_bounded(steps: list[Step]) -> None:
    """The state is bounded for any length of session."""
    watch = SessionMonitor(LoopSettings(window=10, stuck_window=10))
    told(watch, steps * 40)
    table = watch.to_json()["loops"]
    assert len(table["steps"]) <= 10
    assert len(table["reported_stages"]) <= 32
    assert len(json.dumps(table)) < 40_000


@settings(max_examples=100, deadline=None)
@given(STEPS, st.integers(3, 20))
def test_counts_only_grow(step: Step, times: int) -> None:
    """While one step repeats, its count never decreases, and each stage is reported once."""
    found = [one for one in told(SessionMonitor(), [step] * times) if one is not None and one.rule != "no-progress"]
    repeats = [one.repeats for one in found]
    assert repeats == sorted(repeats)
    assert len([one for one in found if one.is_new_stage]) <= 3


@settings(max_examples=100, deadline=None)
@given(st.lists(TOOLS.filter(bool), min_size=1, max_size=60))
def test_what_changes_with_every_step_is_no_loop(tools: list[str]) -> None:
    """Steps that are all different never give a finding."""
    words = [f"{chr(103 + n % 20)}{chr(103 + n // 20 % 20)}" * 6 for n in range(len(tools))]
    steps = [
        Step(tool, {"what": word}, f"{word} came of it, and {word[::-1]}")
        for tool, word in zip(tools, words, strict=True)
    ]
    assert told(SessionMonitor(), steps) == [None] * len(steps)


@settings(max_examples=200, deadline=None)
@given(
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20), st.binary(max_size=5)),
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
        max_leaves=10,
    ),
)
def test_any_value_can_be_told(value: Any) -> None:
    """Any arguments and results are accepted; five equal steps are detected unless they are empty."""
    watch = SessionMonitor()
    found = told(watch, [Step("tool", value, value)] * 5)
    assert found[2] is not None
    assert found[2].count == 3
    json.dumps(watch.to_json())


def test_large_values_are_cut() -> None:
    """Of a large result or argument the head and the tail are compared."""
    big = "x" * 3_000_000
    watch = SessionMonitor()
    assert (
        told(watch, [Step("read", {"text": big, "deep": [[big] * 3] * 200}, f"{big}{n}") for n in range(3)])[2] is None
    )
    held = watch.to_json()
    assert len(json.dumps(held)) < 20_000
    assert told(SessionMonitor(), [Step("read", big, big)] * 3)[2] is not None
    assert told(SessionMonitor(), [Step("read", n, f"{big}{'pqr'[n]}") for n in range(3)]) == [None] * 3


def test_no_text_of_the_agents_is_kept() -> None:
    """The state contains digests, no text of the session."""
    watch = SessionMonitor()
    told(
        watch,
        [Step("bash", {"command": "echo correct-horse"}, "battery-staple on and on, for more than sixty characters")]
        * 4,
    )
    kept = json.dumps(watch.to_json())
    assert "horse" not in kept
    assert "staple" not in kept


@pytest.mark.parametrize(
    ("table", "key"),
    [
        ({"replan": 1}, "loops.replan"),
        ({"replan": 4, "explore": 3}, "loops.explore"),
        ({"similarity": 0}, "loops.similarity"),
        ({"windows": 3}, "loops.windows"),
        ({"ignore_rules": ["nonsense"]}, "loops.ignore_rules"),
        ({"ignore_tools": "bash"}, "loops.ignore_tools"),
        ({"loop_key": ["x"]}, "loops.loop_key"),
        ({"loop_key": {"x": 3}}, "loops.loop_key.x"),
        ({"progress_seconds": -1}, "loops.progress_seconds"),
    ],
)
def test_settings_that_cannot_be(table: dict[str, Any], key: str) -> None:
    """An invalid setting is rejected by its key."""
    with pytest.raises(ConfigError) as raised:
        loop_settings_from(table)
    assert raised.value.key == key


def test_settings_from_a_table() -> None:
    """A policy file sets the arguments that distinguish calls, and tools that never loop."""
    watching = loop_settings_from({"replan": 4, "loop_key": {"look": ["x"], "dice": False}, "ignore_tools": ["poll"]})
    assert watching.replan == 4
    assert watching.loop_keys["look"]({"x": 1, "y": 2}) == watching.loop_keys["look"]({"x": 1, "y": 3})
    assert watching.loop_keys["dice"]({}) is None
    assert watching.ignore_tools == {"poll"}


@pytest.mark.parametrize(
    "table", [{}, {"v": 2}, {"v": 1, "loops": {"v": 9}}, {"v": 1, "loops": {"v": 1, "count": -1, "run": 0}}, []]
)
def test_state_that_cannot_be(table: Any) -> None:
    """State of another version is rejected."""
    with pytest.raises(ConfigError):
        SessionMonitor.from_json(table)


@pytest.mark.parametrize("table", [3, {"tool": 3}, {"tool": "x", "at": "now"}, {"tool": "x", "progress": 3}])
def test_steps_that_cannot_be(table: Any) -> None:
    """An invalid step is rejected by the name of its field."""
    with pytest.raises(ConfigError, match="step"):
        step_from(table)
