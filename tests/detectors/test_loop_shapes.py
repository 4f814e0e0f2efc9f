"""Loops by shape, and legitimate repetition."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from rung.detectors.loop_settings import LoopSettings
from rung.detectors.session_monitor import SessionMonitor
from rung.detectors.step import Step

if TYPE_CHECKING:
    from rung.detectors.finding import Finding

LONG = "The same long content of a page, which does not change however often it is looked at by anyone."


def first(steps: list[Step], watching: LoopSettings | None = None) -> tuple[int, str] | None:
    """Return the step, from 1, at which a loop is detected, and the rule."""
    watch = SessionMonitor(watching)
    for number, step in enumerate(steps, start=1):
        found = watch.check(step)
        if found is not None:
            return number, found.rule
    return None


def cycle(*names: str, times: int) -> list[Step]:
    return [Step(f"do_{name}", {"x": name}, f"{LONG} {name}") for _ in range(times) for name in names]


FAILING = Step(
    "bash", {"command": "make build"}, "error: no rule to make target 'build', needed by nothing at all", True
)
PAGE = "Here is a screenshot of [Shop](https://shop.example/a). The viewport shows 21% of the page, at the top.\n\n"


LOOPS: dict[str, tuple[list[Step], int, str]] = {
    "same call, same result": ([Step("search", {"query": "a b"}, LONG)] * 4, 3, "repeated-block"),
    "same call, same error": ([FAILING] * 4, 3, "repeated-block"),
    "two in turn": (cycle("a", "b", times=4), 6, "repeated-block"),
    "three in turn": (cycle("a", "b", "c", times=4), 9, "repeated-block"),
    "five in turn": (cycle("a", "b", "c", "d", "e", times=4), 15, "repeated-block"),
    "the reason changes": (
        [Step("bash", {"command": "ls src", "description": f"look {n} times"}, LONG) for n in range(4)],
        3,
        "repeated-block",
    ),
    "the reason changes and the outcome is short": (
        [Step("bash", {"command": "ls src", "description": word}, "main.py") for word in ("look", "again", "once more")],
        3,
        "repeated-block",
    ),
    "the order of keys changes": (
        [Step("get", {"a": 1, "b": "x"}, "none"), Step("get", {"b": "x", "a": 1}, "none")] * 2,
        3,
        "repeated-block",
    ),
    "spacing and times change": (
        [Step("bash", f"date  -d '2026-11-16 10:0{n}:00'   && make", f"made in 0.{n}1s at 10:0{n}:12: {LONG}") for n in range(3)],
        3,
        "repeated-block",
    ),
    "the process has another number": (
        [Step("bash", "ls x", f"Chunk ID: {word}\nWall time: 0.{n} seconds\nls: cannot access\nProcess Group PGID: {6000 + n}") for n, word in enumerate(("959eb4", "0550c1", "2b9c7d"))],
        3,
        "repeated-block",
    ),
    "an error whatever is asked for": (
        [Step("fetch", {"url": f"https://x.example/{name}"}, "404 Not Found", True) for name in "abcdef"],
        4,
        "same-error",
    ),
    "an error that gives back what was asked for": (
        [Step("visit", {"name": name}, f"Error: got an unexpected argument '{name}'", True) for name in ("uno", "due", "tre", "four")],
        4,
        "same-error",
    ),
    "an error that names what stays in the call": (
        [Step("book", {"flight": "HAT030", "seats": [n]}, "Error: flight HAT030 not available", True) for n in range(3)],
        3,
        "same-error",
    ),
    "one place that cannot be edited": (
        [
            Step("str_replace_editor", {"command": "str_replace", "path": "a.py", "old_str": f"def run(self, x) -> int: {n}"}, "No match found for the text to be replaced", True)
            for n in ("", "#")
        ]
        * 2,
        3,
        "same-error",
    ),
    "a stuck call, reads between": (
        [step for n in range(4) for step in (Step("read", {"path": "a.py"}, LONG), Step("grep", {"pattern": f"p{n}"}, f"{'x' * n} in some other file"))],
        5,
        "stuck-call",
    ),
    "a stuck call, failed edits between": (
        [step for n in range(4) for step in (Step("run_tests", {}, "2 failed, and the rest of what a test run says", True), Step("edit", {"old": f"{n}"}, "could not apply the edit", True))],
        5,
        "stuck-call",
    ),
    "a search made again between visits": (
        [step for n in range(3) for step in (Step("web_search", {"query": "q"}, LONG), Step("visit_page", {"url": f"https://x.example/{n}"}, f"{LONG} {'y' * n}"))],
        5,
        "stuck-call",
    ),
    "asked in other words": (
        [
            Step("FileSurfer", text, LONG)
            for text in (
                "Please search the PDF for the term 'nuclear energy' and count the pages that mention it.",
                "Search the PDF for 'nuclear energy' and tell which pages mention the term.",
                "Please count how many pages of the PDF mention the term 'nuclear energy'.",
            )
        ],
        3,
        "same-outcome",
    ),
    "asked for other things, told the same": (
        [Step("surfer", text, LONG) for text in ("Open the list of all users.", "Which of the files is the newest?", "Count every row in sheet two.", "Tell me who wrote chapter nine.")],
        4,
        "same-outcome",
    ),
    "a click that does nothing": (
        [Step("browser", {"action": "click", "target": "Send"}, PAGE + f"Shop Send Cart Help About us Contact Terms Imprint {word}") for word in ("one", "two", "three")],
        3,
        "repeated-block",
    ),
    "a thought, again and again": ([Step("think", "I should look at the file now, and then decide.", "OK.")] * 3, 3, "same-words"),
    "only talk": ([Step("", "I will now begin with the work you asked for.")] * 3, 3, "same-words"),
}  # fmt: skip


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_is_noticed(name: str) -> None:
    """Each shape of a loop is detected at the expected step, by the expected rule."""
    steps, number, rule = LOOPS[name]
    assert first(steps) == (number, rule)


def edits(test: Step, count: int = 12) -> list[Step]:
    return [
        step
        for n in range(count)
        for step in (Step("edit", {"path": "a.py", "old": f"v{n}", "new": f"v{n + 1}"}, "edited"), test)
    ]


WORK: dict[str, list[Step]] = {
    "polling, the result changes": [Step("get_job", {"id": 7}, json.dumps({"status": "running", "percent": n})) for n in range(30)],
    "waiting for a job": [Step("get_job", {"id": 7}, "still running")] * 7,
    "waiting for a server": [Step("bash", "sleep 5; curl -s localhost:8000", "curl: (7) Failed to connect", True)] * 7,
    "paging through a file": [Step("read", {"path": "a.log", "offset": 100 * n}, " ".join(f"{chr(97 + n)}{m}" for m in range(60))) for n in range(20)],
    "scrolling": [Step("browser", {"action": "scroll_down"}, "Scrolled down by 1000 pixels")] * 7,
    "scrolling, seen": [Step("surf", "I scrolled down one page in the browser.", f"{PAGE} positioned {n}% down\n\n{LONG}") for n in range(20)],
    "a calendar": [Step("browser", {"action": "click", "target": "Next month"}, f"{PAGE}{month} {LONG}") for month in ("May", "June", "July", "August")],
    "a test after each edit": edits(Step("bash", {"command": "pytest -q"}, "1 failed: test_x, AssertionError in the middle of it", True)),
    "a build after each edit": edits(Step("bash", {"command": "make"}, f"built: {LONG}")),
    "an edit by script, then a test": [
        step for n in range(8) for step in (Step("bash", f"sed -i 's/{n}/x/' a.py", ""), Step("bash", "python test.py", f"failed: {LONG}", True))
    ],
    "one module after the other": [
        step
        for name in ("yaml", "lxml", "flask", "numpy")
        for step in (Step("bash", "python app.py", f"ModuleNotFoundError: No module named '{name}'", True), Step("bash", f"pip install {name}", f"Successfully installed {name}"))
    ],
    "a snapshot of a new state": [Step("browser_snapshot", {}, f"- heading: {word}\n{LONG}") for word in ("start", "login", "cart", "paid")],
    "one item after the other": [
        step for n in range(8) for step in (Step("click", f"item {n}", f"{LONG} of item {chr(97 + n) * 5}"), Step("click", "< Prev", f"{LONG} list"))
    ],
    "one record after the other": [Step("delete_record", {"id": f"8f14e45f-ceea-467f-9b2f-00000000000{n}"}, "deleted") for n in range(9)],
    "edits with one confirmation": [Step("str_replace_editor", {"command": "str_replace", "old_str": f"x{n}"}, "The file was edited successfully.") for n in range(9)],
    "commands without output": [Step("bash", f"echo {n} >> log", "") for n in range(9)],
    "searches without a hit": [Step("grep", {"pattern": pattern}, "No matches found") for pattern in "abcdefgh"],
    "a status after each commit": [
        step for n in range(6) for step in (Step("bash", f"git commit -am {n}", f"[main] {n}"), Step("bash", "git status", f"clean: {LONG}"))
    ],
    "other payments, asked for by the customer": [
        step
        for n in range(5)
        for step in (Step("reply_to_user", f"Try card {n}?", f"Yes, card {n}"), Step("pay", {"card": f"card_{n}"}, "Error: the balance of this card is not enough", True))
    ],
    "an amount that is worked out anew": [Step("book", {"paid": 100 * n}, f"Error: the total price is 900, but {100 * n + 1} was paid", True) for n in range(6)],
    "back to the start page": [
        step
        for n in range(6)
        for step in (Step("browser", {"action": "go_to_url", "url": "https://x.example"}, "Navigated to https://x.example"), Step("browser", {"action": "click_element", "index": n}, f"Clicked element at index {n}"))
    ],
    "thoughts between calls": [step for n in range(6) for step in (Step("think", "Now the next one of them.", "OK."), Step("read", {"path": f"{n}"}, f"{LONG} {'z' * n}"))],
}  # fmt: skip


@pytest.mark.parametrize("name", WORK)
def test_work_is_left_alone(name: str) -> None:
    """Repetition with progress is not a loop."""
    assert first(WORK[name]) is None


def test_a_wait_is_noticed_in_the_end() -> None:
    """Waiting gets extra repeats, but not unlimited ones."""
    assert first([Step("get_job", {"id": 7}, "still running")] * 12) == (8, "repeated-block")


def findings(steps: list[Step], watching: LoopSettings | None = None) -> list[Finding]:
    watch = SessionMonitor(watching)
    return [found for found in map(watch.check, steps) if found is not None]


def test_three_stages_each_told_once() -> None:
    """A new stage is reported at 3, 5 and 8 repeats only."""
    found = findings([FAILING] * 12)
    assert [one.repeats for one in found] == list(range(3, 13))
    assert [(one.repeats, one.stage) for one in found if one.is_new_stage] == [
        (3, "replan"),
        (5, "explore"),
        (8, "force-done"),
    ]


def test_a_new_streak_is_told_again() -> None:
    """After a change the same loop is reported again."""
    found = findings([*[FAILING] * 4, Step("edit", {"new": "x"}, "edited"), *[FAILING] * 4])
    assert [one.at for one in found if one.is_new_stage] == [2, 7]


def test_a_finding_enters_the_ladder_by_its_repeats() -> None:
    """A finding becomes a failure that enters the ladder at the right rung."""
    from rung.core.policy.presets import LADDERS

    ladder = LADDERS["task"]
    by_repeats = {one.repeats: ladder.rungs[ladder.entry_index(one.failure)].name for one in findings([FAILING] * 8)}
    assert by_repeats == {3: "replan", 4: "replan", 5: "fallback", 6: "fallback", 7: "fallback", 8: "force-done"}


def test_what_is_told() -> None:
    """The text contains the fact, the count and the outcome; the evidence carries rule and repeats."""
    found = findings([FAILING] * 3)[0]
    assert (
        found.text
        == "bash:make was called 3 times with the same outcome: error: no rule to make target 'build', needed by nothing at all"
    )
    assert (found.evidence.code, found.evidence.repeats, found.evidence.finding) == (
        "repeated-block",
        3,
        "loop_detected",
    )
    assert (found.at, found.tool, found.count) == (2, "bash", 3)


SAME = [Step("look", {"x": 1, "noise": n}, LONG) for n in range(9)]


@pytest.mark.parametrize(
    ("settings", "noticed"),
    [
        ({}, 4),
        ({"ignored_arguments": frozenset({"noise"})}, 3),
        ({"loop_keys": {"look": lambda args: str(args["x"])}}, 3),
        ({"loop_keys": {"look": lambda _: None}}, None),
        ({"off": True}, None),
        ({"ignore_tools": frozenset({"look"})}, None),
        ({"ignore_rules": frozenset({"same-outcome"})}, None),
        ({"mutating_tools": frozenset({"look"})}, None),
        ({"replan": 5, "ignored_arguments": frozenset({"noise"})}, 5),
    ],
)
def test_settings(settings: dict[str, Any], noticed: int | None) -> None:
    """The policy sets which calls are equal, the thresholds, and what is ignored."""
    found = first(SAME, LoopSettings(**settings))
    assert (found and found[0]) == noticed


def test_a_person_ends_every_streak() -> None:
    """A call repeated at the user's request is not a loop."""
    watch = SessionMonitor()
    for _ in range(5):
        assert watch.check(FAILING) is None
        assert watch.check(FAILING) is None
        watch.reset_on_user()


def test_no_outside_progress() -> None:
    """Calls and time without an external change are a loop; either alone, or a change, is not."""
    watching = LoopSettings(progress_calls=3, progress_seconds=60)

    def seen(marks: list[str | None], pace: float) -> list[tuple[int, int]]:
        watch = SessionMonitor(watching)
        steps = [
            Step("edit", {"n": f"{n * 7919}"}, f"{n} {'q' * n}", False, n * pace, mark) for n, mark in enumerate(marks)
        ]
        return [
            (found.at or n, found.repeats)
            for n, found in enumerate(map(watch.check, steps))
            if found and found.is_new_stage
        ]

    assert seen(["a"] * 12, pace=30) == [(3, 3), (6, 5), (9, 8)]
    assert seen(["a", None, None, None, None], pace=30) == [(3, 3)]
    assert seen(["a"] * 12, pace=1) == []
    assert seen([str(n // 2) for n in range(12)], pace=100) == []
