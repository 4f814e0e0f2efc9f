"""The rule `wasted-calls`: nearly the same call with trouble of the same class, many times without progress."""

from __future__ import annotations

import json

import pytest

from rung.detectors.loop_settings import RULES, LoopSettings
from rung.detectors.loops.wasted_calls import looks_empty, trouble_of
from rung.detectors.session_monitor import SessionMonitor
from rung.detectors.step import Step

PACKAGES = "numpy scipy pandas torch flask jinja redis".split()  # noqa: SIM905  # words, not a list of one


def first(steps: list[Step], settings: LoopSettings | None = None) -> tuple[int, str] | None:
    """Return the number of the step at which a finding appears, and its rule."""
    monitor = SessionMonitor(settings)
    for number, step in enumerate(steps, start=1):
        finding = monitor.check(step)
        if finding is not None:
            return number, finding.rule
    return None


def downloads(count: int) -> list[Step]:
    """The same download with other limits; every try ends at a time limit, with another output."""
    return [
        Step(
            "bash",
            {"command": f"curl --max-time {n * 10} -L https://example.org/data/train.parquet -o train.parquet"},
            f"{'#' * n} {n}% of part {n * 31}\nerror: the command timed out after {n * 10} s at byte {n * 7_919}",
            True,
        )
        for n in range(1, count + 1)
    ]


def test_the_same_intent_with_other_limits() -> None:
    """The fifth time-out of one download is reported, although every output differs."""
    assert first(downloads(8)) == (5, "wasted-calls")
    assert first(downloads(4)) is None


def test_the_finding_counts_as_a_loop() -> None:
    """The finding enters ladders as a loop; its repeats start at the first stage and rise with each call."""
    monitor = SessionMonitor()
    found = [monitor.check(step) for step in downloads(10)]
    assert [one and (one.count, one.repeats, str(one.stage)) for one in found[4:]] == [
        (5, 3, "replan"), (6, 4, "replan"), (7, 5, "explore"), (8, 6, "explore"), (9, 7, "explore"), (10, 8, "force-done"),
    ]  # fmt: skip
    assert found[4] is not None
    assert found[4].failure.kind == "loop_detected"
    assert "nearly the same arguments" in found[4].text


def test_searches_without_a_result() -> None:
    """A search that is reworded slightly and finds nothing is one intent; other words are another."""
    words = "quarterly revenue figures northern branch office annual statement ledger"
    nothing = ("No results found", "no matches", "0 results", "No records", "nothing found", "No hits", "No data")
    reworded = [
        Step("web_search", {"query": f"{words} {word}"}, text) for word, text in zip(PACKAGES, nothing, strict=True)
    ]
    assert first(reworded, LoopSettings(ignore_rules=frozenset({"same-outcome"}))) == (5, "wasted-calls")
    other = [Step("web_search", {"query": f"{word} licence terms"}, "No results found") for word in PACKAGES]
    assert first(other) is None


@pytest.mark.parametrize(
    "between",
    [
        Step("edit", {"path": "settings.toml"}, "The file was edited."),
        Step("reply_to_user", "Shall I try again?", "Yes, please."),
        Step(
            "bash",
            {"command": "curl --max-time 90 -L https://example.org/data/train.parquet -o train.parquet"},
            "saved",
        ),
    ],
)
def test_progress_ends_the_count(between: Step) -> None:
    """A change, a word of the user, or a success of the same intent ends the count."""
    steps = downloads(9)
    assert first([*steps[:4], between, *steps[4:8]]) is None


def test_a_pause_needs_more_repeats() -> None:
    """Trying again after a pause is waiting: five more repeats are allowed."""
    steps = [
        one
        for number, step in enumerate(downloads(12))
        for one in (Step("wait", {"for": "z" * number}, "z" * number), step)
    ]
    assert first(steps[:18]) is None
    assert first(steps) == (20, "wasted-calls")


def test_other_trouble_is_another_count() -> None:
    """Trouble of different classes is not one repetition: the error changes, so something was learned."""
    steps = [
        Step(step.tool, step.args, result, True)
        for step, result in zip(
            downloads(6),
            ("timed out", "404 Not Found", "permission denied", "KeyError: 'a'", "bad", "no space left"),
            strict=True,
        )
    ]
    assert first(steps) is None


def test_walking_records_is_left_alone() -> None:
    """Asking for one record after the other is not one intent, though none exists."""
    others = LoopSettings(ignore_rules=frozenset(RULES) - {"wasted-calls"})
    orders = [
        Step("get_order", {"region": "north sea", "order": f"A-{n}"}, f"order A-{n} not found", True) for n in range(9)
    ]
    assert first(orders, others) is None


def test_the_threshold_is_a_setting() -> None:
    """`wasted_calls` moves the threshold, and `ignore_rules` switches the rule off."""
    assert first(downloads(9), LoopSettings(wasted_calls=8)) == (8, "wasted-calls")
    assert first(downloads(9), LoopSettings(ignore_rules=frozenset({"wasted-calls"}))) is None
    assert first(downloads(9), LoopSettings(replan=7, explore=8, force_done=9)) == (7, "wasted-calls")


def test_the_count_survives_a_restart() -> None:
    """A monitor that is stored and restored between two steps still counts the earlier ones."""
    monitor = SessionMonitor()
    for step in downloads(4):
        assert monitor.check(step) is None
    monitor = SessionMonitor.from_json(json.loads(json.dumps(monitor.to_json())))
    found = monitor.check(downloads(5)[-1])
    assert found is not None
    assert found.rule == "wasted-calls"


def test_classes_of_trouble() -> None:
    """A failure has a class by its words, then by its exception, then by its fault; a result that has something has none."""
    assert trouble_of("the request timed out", failed=True, fault="f") == "timeout"
    assert trouble_of("cat: a.txt: No such file or directory", failed=True, fault="f") == "missing"
    assert trouble_of("Traceback …\nZeroDivisionError: division by zero", failed=True, fault="f") == "ZeroDivisionError"
    assert trouble_of("it went wrong", failed=True, fault="f") == "error f"
    assert trouble_of("no results for this query", failed=False, fault="") == "empty"
    assert trouble_of("three results", failed=False, fault="") == ""
    assert not looks_empty("none of the " + "many " * 40)
