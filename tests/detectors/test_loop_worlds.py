"""Random sessions: disguised loops are detected, legitimate repetition is not."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rung.detectors.session_monitor import SessionMonitor
from rung.detectors.step import Step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NAMES = "alpha beta gamma delta omega sigma kappa theta lambda zeta".split()  # noqa: SIM905  # words, not a list of one
NOUNS = "harbour ledger window violin meadow engine ticket lantern copper saddle".split()  # noqa: SIM905
SEEDS = st.integers(0, 2**32)  # of a generator of our own: what is chosen anew must be new


def alarms(steps: Iterator[Step]) -> list[tuple[int, str, int]]:
    """Return where a loop is detected, by which rule, and its count."""
    watch = SessionMonitor()
    found = ((number, watch.check(step)) for number, step in enumerate(steps, start=1))
    return [(number, one.rule, one.repeats) for number, one in found if one is not None]


def text(random: Random, words: int = 30) -> str:
    """Return unique words."""
    return " ".join(f"{random.choice(NOUNS)}{random.choice(NAMES)}{random.randrange(10**6)}x" for _ in range(words))


def stamp(random: Random) -> str:
    return f"2026-11-{random.randrange(1, 29):02d}T{random.randrange(24):02d}:{random.randrange(60):02d}:{random.randrange(60):02d}Z"


def reads(random: Random, most: int) -> Iterator[Step]:
    """Return reads that cannot change anything."""
    for _ in range(random.randrange(most + 1)):
        yield Step("read_file", {"path": f"src/{text(random, 1)}.py"}, text(random))


# -- loops --------------------------------------------------------------------------------------------


def a_failing_command(random: Random) -> Iterator[Step]:
    """The same command fails alike, its output stamped; other files are looked at between."""
    said = f"error: {text(random, 8)}"
    for _ in range(6):
        yield Step("bash", {"command": "cargo build", "description": text(random, 3)}, f"{stamp(random)} {said}", True)
        yield from reads(random, 2)


def keys_in_any_order(random: Random) -> Iterator[Step]:
    """The same call, its fields in another order and one of them only a reason."""
    said = text(random)
    for _ in range(6):
        fields = [("query", "open invoices"), ("limit", 10), ("reason", text(random, 4))]
        random.shuffle(fields)
        yield Step("search_records", dict(fields), said)


def an_edit_that_never_applies(random: Random) -> Iterator[Step]:
    """One place is edited with another text each time, and the tool never finds it."""
    for _ in range(6):
        yield Step(
            "edit_file",
            {"path": "src/main.py", "old": text(random, 5), "new": text(random, 5)},
            "Error: the text to replace was not found in the file",
            True,
        )
        yield from reads(random, 1)


def a_question_in_other_words(random: Random) -> Iterator[Step]:
    """The same question in another order of words, and the same page for an answer."""
    words, said = ["opening", "hours", "of", "the", "harbour", "museum", "in", "winter"], text(random)
    for _ in range(8):
        random.shuffle(words)
        yield Step("query_archive", {"query": " ".join(words)}, said)


def a_cycle(random: Random) -> Iterator[Step]:
    """Two to five calls with the same outcomes, in turn."""
    block = [Step(f"look_{name}", {"at": name}, text(random)) for name in NAMES[: random.randrange(2, 6)]]
    for _ in range(5):
        yield from block


def a_program_that_always_fails(random: Random) -> Iterator[Step]:
    """Another program each time, and the same refusal."""
    for _ in range(7):
        code = f"import os\nprint({random.randrange(10**6)})\n{text(random, 4)}"
        yield Step("python_interpreter", {"code": code}, "Error: Import of os is not allowed here: use the tools", True)


LOOPS: list[Callable[[Random], Iterator[Step]]] = [
    a_failing_command,
    keys_in_any_order,
    an_edit_that_never_applies,
    a_question_in_other_words,
    a_cycle,
    a_program_that_always_fails,
]

# -- work ---------------------------------------------------------------------------------------------


def waiting_with_pauses(random: Random) -> Iterator[Step]:
    """A server that is not up yet, asked again after a pause that is a call of its own."""
    for _ in range(random.randrange(3, 7)):
        yield Step(
            "bash", {"command": "curl -s localhost:8080/health"}, "curl: (7) Failed to connect to localhost", True
        )
        yield Step("bash", {"command": f"sleep {random.randrange(2, 30)}"}, "")
    yield Step("bash", {"command": "curl -s localhost:8080/health"}, '{"status": "up"}')


def keys_that_only_say_done(random: Random) -> Iterator[Step]:
    """The same key several times, and an answer that only says that it was pressed."""
    for _ in range(random.randrange(3, 7)):
        yield Step("computer", {"action": "press_key", "key": "Down"}, "Pressed key Down")
    yield Step("computer", {"action": "screenshot"}, text(random))


def a_button_that_turns_pages(random: Random) -> Iterator[Step]:
    """The same button by its number; the page is only seen when it is asked for."""
    for _ in range(random.randrange(3, 7)):
        yield Step("browser_use", {"action": "click_element", "index": 45}, "Clicked element at index 45")
        if random.random() < 0.5:
            yield Step("browser_use", {"action": "extract_content", "goal": "names"}, text(random))


def checks_after_edits(random: Random) -> Iterator[Step]:
    """The same check says the same after each edit, by whatever means the edit was made."""
    said = f"2 failed, 40 passed: {text(random, 6)}"
    for number in range(random.randrange(3, 12)):
        yield random.choice(
            [
                Step("edit", {"path": "a.py", "old": f"v{number}", "new": text(random, 2)}, "Edited a.py"),
                Step("bash", {"command": f"sed -i 's/{number}/{text(random, 1)}/' a.py"}, ""),
                Step("bash", {"command": f"cat > a.py <<'EOF'\n{text(random, 3)}\nEOF"}, ""),
                Step("bash", {"command": f"python - <<'EOF'\nopen('a.py','w').write({number!r})\nEOF"}, ""),
            ]
        )
        yield from reads(random, 2)
        yield Step("bash", {"command": "npm run check 2>&1 | tail -20"}, said, True)


def one_after_the_other(random: Random) -> Iterator[Step]:
    """Each of many things is asked for once; most of the answers are nothing."""
    for number in range(random.randrange(4, 20)):
        yield Step("search_flights", {"from": "JFK", "to": "SEA", "date": f"2026-11-{number + 1:02d}"}, "[]")
        yield Step("grep", {"pattern": text(random, 1)}, "No matches found")


def sums(random: Random) -> Iterator[Step]:
    """Different sums may come to the same."""
    for _ in range(random.randrange(4, 12)):
        yield Step("calculate", {"expression": f"{random.randrange(900)} + {random.randrange(900)}"}, "833.0")


def polling(random: Random) -> Iterator[Step]:
    """The same call, and each time it says how far it is."""
    for number in range(random.randrange(5, 30)):
        yield Step("get_job", {"id": "a7"}, f'{{"state": "running", "done": {number}, "at": "{stamp(random)}"}}')


def a_form(random: Random) -> Iterator[Step]:
    """Fields of a form are filled in, and the page around them stays what it is."""
    page = f"The page [Form](https://x.example/form) is open.\n\n{text(random)}"
    for name in NAMES:
        yield Step("WebSurfer", f"I typed '{text(random, 1)}' into '{name}'.", page)


WORK: list[Callable[[Random], Iterator[Step]]] = [
    waiting_with_pauses,
    keys_that_only_say_done,
    a_button_that_turns_pages,
    checks_after_edits,
    one_after_the_other,
    sums,
    polling,
    a_form,
]


@pytest.mark.parametrize("world", LOOPS, ids=lambda world: world.__name__)
@given(SEEDS)
@settings(max_examples=40, deadline=None)
def test_a_loop_is_noticed(world: Callable[[Random], Iterator[Step]], seed: int) -> None:
    """A disguised loop is detected at three repeats, or four with weak evidence."""
    found = alarms(world(Random(seed)))
    assert found
    assert found[0][2] == 3


@pytest.mark.parametrize("world", WORK, ids=lambda world: world.__name__)
@given(SEEDS)
@settings(max_examples=40, deadline=None)
def test_work_is_left_alone(world: Callable[[Random], Iterator[Step]], seed: int) -> None:
    """Repetition with progress is not a loop."""
    assert alarms(world(Random(seed))) == []


@given(SEEDS, st.permutations(range(len(WORK))))
@settings(max_examples=40, deadline=None)
def test_a_long_day_of_work_is_left_alone(seed: int, order: list[int]) -> None:
    """Legitimate work in any order in one session is not a loop."""
    random = Random(seed)
    assert alarms(step for number in order for step in WORK[number](random)) == []
