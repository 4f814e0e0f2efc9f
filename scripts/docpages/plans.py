"""The pages of a crew's plan and of a pipeline: keys as the readers have them, examples that were loaded first."""

from __future__ import annotations

import tomllib
from typing import Any

from docpages.markdown import bullets, code, fence, page, remarks, table
from rung.core.keys import REQUIRED, declared
from rung.core.plan import CrewSettings, PlannedTask, Wrong, checked_plan
from rung.core.signals import Ended
from rung.core.stages import PipelineSettings, Stage, read_pipeline

PLAN = """\
[crew]
name = "parser"
workers = 4
worker = ["my-agent", "--task", "{task}", "--instructions", "{instruction}"]
stale_after = 300
review = "auto"
judge = ["my-agent", "--review"]
replanner = ["my-agent", "--replan"]

[[task]]
id = "task-01"
title = "The grammar"
instruction_path = "tasks/01-grammar.md"
writes = ["grammar/"]
checkpoints = 1
estimate = 40

[[task]]
id = "task-02"
instruction = "Write the parser for the grammar in grammar/, with tests."
depends_on = ["task-01"]
writes = ["src/parser/", "tests/test_parser.py"]

[[task]]
id = "task-03"
instruction = "Write docs/grammar.md."
depends_on = ["task-01"]
writes = ["docs/grammar.md"]
"""

PIPELINE = """\
[pipeline]
name = "feature"
command = ["my-agent", "--print", "--max-turns", "{turns}"]
workers = 3

[policy]
attempt_seconds = 1800

[[stage]]
id = "design"
prompt_path = "prompts/design.md"
sections = ["Goal", "Parts", "Risks"]
turns = 20

[[stage]]
id = "build"
prompt = "Build what the design says, with tests."
depends_on = ["design"]
writes = ["src/", "tests/"]
check = ["make", "test"]
quality = 70
turns = 50

[[stage]]
id = "docs"
prompt = "Write the page of the design's feature."
depends_on = ["design"]
writes = ["docs/feature.md"]
"""


def pages() -> dict[str, str]:
    """Path and text of both pages."""
    checked_plan(tomllib.loads(PLAN))  # an example that does not load is worse than none
    read_pipeline(tomllib.loads(PIPELINE))
    return {"plan.md": _plan(), "pipeline.md": _pipeline()}


def _plan() -> str:
    return page(
        "Plan files",
        "`plan.toml`: what `rung crew run` carries out. All of it is checked before anything runs; an error names the "
        "key and what is allowed.",
        "## `[crew]`",
        _keys(CrewSettings),
        "## `[[task]]`",
        _keys(PlannedTask),
        "## What is found before the run",
        bullets(f"{code(wrong)}: {_WRONG[wrong]}" for wrong in Wrong),
        "A task waits for what it names in `depends_on`, and for every rollback task of the plan.",
        "## Revisions",
        "A replanner writes a whole new plan. What it marks is taken by its mark, what it does not mark is compared: "
        "the same is left alone, what differs is revised. A task that a new plan does not name is removed: it is "
        "listed as exited, never silently gone.",
        "## An example",
        fence(PLAN, "toml"),
    )


_WRONG = {
    Wrong.UNKNOWN: "a task waits for one that the plan does not have.",
    Wrong.CYCLE: "tasks wait for one another in a circle.",
    Wrong.SCOPE: "two tasks that may run at once write one file, by what `writes` declares.",
}


def _pipeline() -> str:
    said = remarks(Ended)
    return page(
        "Pipeline files",
        "What `rung pipeline run` carries out: see [how to](../howto/run-a-pipeline.md). All of it is checked before "
        "anything runs; an error names the key and what is allowed.",
        "## `[pipeline]`",
        _keys(PipelineSettings),
        "## `[[stage]]`",
        _keys(Stage),
        "## `[policy]`",
        "The keys of [a policy](policy.md). The ladder is [`pipeline`](ladders/pipeline.md) unless it says otherwise.",
        "## Signals",
        "The first line of an output may be `STATUS|key:value|…|ref:path`:",
        table(
            ("status", "what follows"),
            ((code(status), _AFTER[status] + (f" ({said[status]})" if said.get(status) else "")) for status in Ended),
        ),
        "`reason:` is what is told, `kind:` [a kind](kinds/README.md) of failure, `missing:` names of sections with commas "
        "between them, `quality:` a number from 0 to 100. Other keys are passed on to the stages that follow.",
        "## An example",
        fence(PIPELINE, "toml"),
    )


_AFTER = {
    Ended.PASS: "Sections, quality and the check are looked at; then the stages after it start.",
    Ended.FAIL: "The ladder, by its `kind:`, by what is `missing:`, or by naming its `reason:`.",
    Ended.PARTIAL: "Only what is missing is asked for; more than two sections are a fresh worker's.",
    Ended.BLOCKED: "A person is asked; with nobody there the pipeline stops.",
}


def _keys(settings: type) -> str:
    rows = ((code(key.name), key.type.allowed, _default(key.default), key.doc) for key in declared(settings))
    return table(("key", "allowed", "default", "meaning"), rows)


def _default(value: Any) -> str:
    if value is REQUIRED:
        return "required"
    if value in (None, "", ()):
        return "none"
    return code(str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else value)
