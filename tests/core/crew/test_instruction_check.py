"""Instructions as they are read before a worker gets them: what is mended, what goes back, and what stays."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.crew.instruction_check import TaskSurroundings, check_instructions, surroundings_of
from rung.core.crew.instruction_sql import MESSAGE_COLUMNS, TASK_COLUMNS
from rung.core.crew.plan import checked_plan
from rung.core.text.near_names import edit_distance, near_name
from rung.store.crew.rows import COLUMNS
from rung.store.crew.schema import TABLES

ROOT = Path(__file__).parents[3]
PATHS = (
    "src", "src/parser.py", "src/lexer.py", "src/test_01.py", "tests", "tests/test_parser.py", "docs/grammar.md", "config.yaml",
    "README.md", "src/README.md", "lib/deep/tokens.py", "src/main.py", "data/a.csv", "data/b.csv",
)  # fmt: skip
HERE = TaskSurroundings(
    task_id="task-03",
    tasks=frozenset({"task-01", "task-02", "task-03", "task-04"}),
    waits_for=frozenset({"task-01"}),
    is_parallel=True,
    writes=("out/", "src/paser.py"),
    paths=PATHS,
)


def mended(text: str) -> tuple[str, tuple[str, ...]]:
    found = check_instructions(text, HERE)
    assert found.problems == ()
    return found.text, found.mended


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("Fix the bug in src/parsre.py.", "Fix the bug in src/parser.py."),
        ("Read ./src/lexr.py first", "Read ./src/lexer.py first"),
        ("Run `tests/test_praser.py`", "Run `tests/test_parser.py`"),
        ("See test/test_parser.py", "See tests/test_parser.py"),
        ("Follow docs/gramar.md", "Follow docs/grammar.md"),
        ("Use config.yml", "Use config.yaml"),
        ("Look at src/tokens.py", "Look at lib/deep/tokens.py"),
        ("Edit docs/grammer.md: the second rule.", "Edit docs/grammar.md: the second rule."),
    ],
)
def test_a_path_with_one_near_match(wrong: str, right: str) -> None:
    """A path that does not exist, but has exactly one near match, is replaced by it, and that is said."""
    text, said = mended(wrong)
    assert text == right
    assert len(said) == 1
    assert said[0].startswith("path ")


@pytest.mark.parametrize(
    "text",
    [
        "Fix the bug in src/parser.py and src/lexer.py.",
        "Create src/parsers.py for the second grammar.",
        "Write the result into docs/gramar.md",
        "Add tests/test_lexer.py with tests for the lexer.",
        "The tests of the new module go to tests/test_parsers.py: create it.",
        "Read src/parser2.py",
        "Read src/test_02.py",
        "Read data/c.csv",
        "Read src/unheard_of.py and its callers.",
        "src/paser.py is written by task-02",
        "Print out/report.md",
        "See https://example.org/src/parsre.py",
        "Send GET /api/src/parsr.py",
        "Copy src/*.py, read/write access and/or ask",
        "Use Python 3.11, e.g. v1.2.3, i.e. the U.S. locale",
        "Edit lib/README.md",
        "Call parser.parse() and os.path.join(a, b)",
        "sort letters > srcs",
        "Set $HOME/src/parsre.py and {task}/src/parsr.py",
        "object.attribute and foo.bar are no files",
        "Look at tokens.py, wherever it is",
        "As django/db/tokens.py does it",
    ],
)
def test_a_path_that_stays(text: str) -> None:
    """Existing paths, new files, addresses, patterns and unknown names stay as they are."""
    assert mended(text) == (text, ())


def test_a_path_that_exists_elsewhere() -> None:
    """A path that exists outside the task's own directory stays."""
    found = check_instructions("Read src/parsr.py", HERE, lambda path: path == "src/parsr.py")
    assert (found.text, found.mended) == ("Read src/parsr.py", ())


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("SELECT state FROM orchestration_task WHERE task_id = 'task-03';", "SELECT state FROM orchestration_tasks WHERE task_id = 'task-03';"),
        ("SELECT state FROM coordination_status WHERE task_id = 'task-03';", "SELECT state FROM orchestration_tasks WHERE task_id = 'task-03';"),
        ("UPDATE orchestration_tasks SET last_hearbeat = datetime('now') WHERE task_id = 'task-03';", "UPDATE orchestration_tasks SET last_heartbeat = datetime('now') WHERE task_id = 'task-03';"),
        ("UPDATE orchestration_tasks\nSET state = 'need_review', last_heartbeat = datetime('now')\nWHERE task_id = 'task-03';", "UPDATE orchestration_tasks\nSET state = 'needs_review', last_heartbeat = datetime('now')\nWHERE task_id = 'task-03';"),
        ("UPDATE orchestration_tasks SET state = 'completed' WHERE taskid = 'task-03'", "UPDATE orchestration_tasks SET state = 'complete' WHERE task_id = 'task-03'"),
        ("INSERT INTO orchestration_mesages (task_id, from_sesion, message, message_type) VALUES ('task-03', 's', 'ERROR: it''s bad; really', 'eror');", "INSERT INTO orchestration_messages (task_id, from_session, message, message_type) VALUES ('task-03', 's', 'ERROR: it''s bad; really', 'error');"),
        ("UPDTE orchestration_task SET state = 'error' WHERE task_id = 'task-03';", "UPDATE orchestration_tasks SET state = 'error' WHERE task_id = 'task-03';"),
        ("UPDTE orchestration_tasks SET state = 'error' WHERE task_id = 'task-03';", "UPDATE orchestration_tasks SET state = 'error' WHERE task_id = 'task-03';"),
        ("SELECT task_id FROM orchestration_tasks WHERE state IN ('working', 'fix_propsed');", "SELECT task_id FROM orchestration_tasks WHERE state IN ('working', 'fix_proposed');"),
    ],
)  # fmt: skip
def test_sql_of_the_protocol(wrong: str, right: str) -> None:
    """A misspelled table, column, state, message type or keyword of the protocol's statements is corrected, and that is said."""
    for frame in ("{}", "Do this:\n\n```sql\n{}\n```\n"):
        text, said = mended(frame.format(wrong))
        assert text == frame.format(right)
        assert said


@pytest.mark.parametrize(
    "text",
    [
        "SELECT name FROM users WHERE stat = 'actve';",
        "UPDATE tasks SET state = 'done' WHERE id = 3;",
        "SELECT count(*) AS total FROM orchestration_tasks;",
        "Update the last_hearbeat column of the docs, from orchestration to task.",
        "INSERT INTO orchestration_messages (task_id, from_session, message, message_type) VALUES ('task-03', 's1', 'last_hearbeat eror', 'error');",
        "CREATE TABLE orchestration_task_notes (id INTEGER);",
        "NEVER touch orchestration_messages: read the messages, their states and tasks.",
        "UPDATE the rows of orchestration_tasks, and their states, only by the commands.",
        "SELECT the right states of orchestration_tasks first.",
    ],
)
def test_sql_that_stays(text: str) -> None:
    """SQL of the project, prose and texts in quotes stay as they are."""
    assert mended(text) == (text, ())


def test_the_columns_are_those_of_the_table() -> None:
    """The names that SQL is compared with are the columns of the crew's tables."""
    assert TASK_COLUMNS == COLUMNS
    created = next(table for table in TABLES if "orchestration_messages" in table)
    assert tuple(re.findall(r"^  (\w+) ", created, re.MULTILINE)) == MESSAGE_COLUMNS


SECTIONED = """<sections>
- goal
- steps
</sections>

<section id="goal">
<core>
## Goal

Parse it.
</core>
</section>

<section id="steps">
<mandatory>
Do it:

```sql
SELECT 1;
```
</mandatory>
</section>
"""


@pytest.mark.parametrize(
    "gone", ['</section>\n\n<section id="steps">', "</core>\n", "```\n</mandatory>", "</mandatory>\n", '<section id="steps">\n']
)  # fmt: skip
def test_a_missing_marker(gone: str) -> None:
    """One missing marker of the protocol's form is added; a fence too. A complete text stays."""
    assert mended(SECTIONED) == (SECTIONED, ())
    keeps = {'</section>\n\n<section id="steps">': '\n<section id="steps">', "```\n</mandatory>": "</mandatory>"}
    flawed = SECTIONED.replace(gone, keeps.get(gone, ""), 1)
    assert flawed != SECTIONED
    found = check_instructions(flawed, HERE)
    if gone == '<section id="steps">\n':  # without a heading, nobody knows what the text is
        assert found.problems
        return
    assert found.mended
    assert found.problems == ()
    assert found.text.split() == SECTIONED.split()


def test_the_last_section_is_closed() -> None:
    """A section and a fence that are open at the end are closed there."""
    flawed = SECTIONED.replace("```\n</mandatory>\n</section>\n", "")
    found = check_instructions(flawed, HERE)
    assert found.text.split() == SECTIONED.split()
    assert found.problems == ()


def test_a_heading_without_its_marker() -> None:
    """A heading outside all sections gets a section of its own."""
    flawed = SECTIONED.replace('<section id="steps">\n<mandatory>\n', "## Steps\n\n").replace("</mandatory>\n", "")
    found = check_instructions(flawed, HERE)
    assert '<section id="steps">\n## Steps' in found.text
    assert found.problems == ()


@pytest.mark.parametrize(
    "text",
    [
        "# Parser\n\n## Goal\n\nWrite it.\n\n## Steps\n\n1. Read\n2. Write\n",
        "Take your time.",
        "Use `<section>` tags in the page:\n\n```html\n<section>\n<h1>x</h1>\n```\n",
        "```sh\nmake test\n```\n\nThen:\n\n~~~\nx\n~~~\n",
        "````md\n```sh\nx\n```\n````\n",
    ],
)
def test_a_free_form_is_fine(text: str) -> None:
    """Instructions need no sections and no headings."""
    assert mended(text) == (text, ())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (" \n\t\n", "empty"),
        ("MZ\x00\x01", "control characters"),
        ("# task-04: the lexer\n\nWrite it.", "the instructions for task-04, not for task-03"),
        ("Task: task-04\n\nWrite it.", "the instructions for task-04"),
        ("You are working on `task-01`.", "the instructions for task-01"),
        ("UPDATE orchestration_tasks SET state = 'error' WHERE task_id = 'task-04';", "changes the row of task-04"),
        ("Task type: sequential\n\nWrite it.", "for a sequential task"),
        ("Type: Sequential\n\nWrite it.", "for a sequential task"),
        ("**Type:** sequential\n\nWrite it.", "for a sequential task"),
        ("This is a sequential task. Write it.", "for a sequential task"),
        ("Wait for task-02 to complete.", "wait for task-02"),
        ("Begin when task-04 finishes.", "wait for task-04"),
        ("Wait until task-02 is complete, then read its output.", "wait for task-02"),
        ("Start only after task-04 has finished.", "wait for task-04"),
        ("UPDATE orchestration_tasks SET state = 'finished' WHERE task_id = 'task-03';", "'finished' does not exist"),
        (SECTIONED.replace("- steps", "- steps\n- tests"), "the section tests is missing"),
        (SECTIONED.replace("Parse it.", ""), "the section goal is empty"),
    ],
)
def test_what_goes_back_to_the_writer(text: str, problem: str) -> None:
    """A flaw that nobody can mend without knowing the task is a problem with a reason."""
    assert problem in "; ".join(check_instructions(text, HERE).problems)


@pytest.mark.parametrize(
    "text",
    [
        "# task-03: the parser\n\nIt uses what task-01 wrote. See task-02 for the lexer.",
        "Wait until task-01 is complete.",
        "Task type: parallel",
        "Read the messages: SELECT message FROM orchestration_messages WHERE task_id = 'task-04';",
        "Instructions for the parser. task-04 reads your output.",
        "Wait until the server is up.",
    ],
)
def test_other_tasks_may_be_named(text: str) -> None:
    """A text that refers to other tasks is still this task's."""
    assert check_instructions(text, HERE).problems == ()


@pytest.fixture(scope="module")
def our_paths() -> list[str]:
    """The project's files."""
    return [str(path.relative_to(ROOT)) for folder in ("src", "docs", "tests") for path in (ROOT / folder).rglob("*.*")]


@pytest.mark.parametrize("page", sorted(ROOT.glob("docs/**/*.md")), ids=lambda path: path.name)
def test_our_own_pages_have_no_flaw(page: Path, our_paths: list[str]) -> None:
    """The project's pages, with their SQL and code, have no flaw; a path without its first folders is completed."""
    text = page.read_text(encoding="utf-8")
    found = check_instructions(
        text, TaskSurroundings(task_id="x", paths=our_paths), lambda path: (page.parent / path).exists()
    )
    assert found.problems == ()
    for said in found.mended:
        assert re.fullmatch(r"path (\S+) → \S*\1", said), said


def test_the_surroundings_of_a_task() -> None:
    """A task waits for all that it depends on; it is parallel if another task of its phase is in no order with it."""
    tasks: list[dict[str, Any]] = [
        {"id": "a", "writes": ["x/"]},
        {"id": "b", "depends_on": ["a"]},
        {"id": "c", "depends_on": ["b"]},
        {"id": "d", "phase": 2},
        {"id": "e", "phase": 3},
        {"id": "f", "phase": 3, "depends_on": ["a"]},
    ]
    plan = checked_plan({"crew": {"worker": ["w"]}, "task": [{"instruction": "x", **task} for task in tasks]})
    found = {task["id"]: surroundings_of(plan, str(task["id"]), ()) for task in tasks}
    assert found["c"].waits_for == {"a", "b"}
    assert [found[name].is_parallel for name in "acdef"] == [False, False, None, True, True]
    assert found["d"].writes == ("x/",)
    assert surroundings_of(plan, "added-by-hand", ()).tasks == frozenset()
    assert surroundings_of(None, "a", ("p",)).paths == ("p",)


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    """No text stops the reader, and a mended text needs no more mending."""
    found = check_instructions(text, HERE)
    if not found.problems:
        assert check_instructions(found.text, HERE).text == found.text


@given(st.text(max_size=12), st.text(max_size=12))
def test_distance(one: str, other: str) -> None:
    """The distance is symmetric, and 0 only for equal texts."""
    assert edit_distance(one, other, 12) == edit_distance(other, one, 12)
    assert (edit_distance(one, other, 12) == 0) == (one == other)


def test_near_names() -> None:
    """One swapped, missing or wrong letter is near; two near names are none; another digit is another name."""
    assert near_name("wokring", ["working", "error"]) == "working"
    assert near_name("cat", ["bat", "hat"]) == ""
    assert near_name("parser2", ["parser1"]) == ""
    assert near_name("last_hearbet", ["last_heartbeat", "last_error"]) == "last_heartbeat"
