"""Generate the reference pages of plan files and pipeline files; the examples are validated first."""

from __future__ import annotations

import tomllib
from typing import Any

from docpages.markdown import bullets, code, fence, member_comments, page, table
from rung.core.crew.plan import CrewSettings, PlannedTask, PlanProblem, checked_plan
from rung.core.domain.settings_schema import REQUIRED, declared_settings
from rung.core.pipeline.spec import PipelineSettings, PipelineStage, read_pipeline
from rung.core.pipeline.stage_signal import StageEnding

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
    """Return the path and text of both pages."""
    checked_plan(tomllib.loads(PLAN))  # documented examples must be valid
    read_pipeline(tomllib.loads(PIPELINE))
    return {"plan.md": _plan_page(), "pipeline.md": _pipeline_page()}


def _plan_page() -> str:
    return page(
        "Plan files",
        "A plan file (`plan.toml`) lists the tasks that `rung crew run` executes. The whole file is validated before "
        "anything runs; an error names the key and the allowed values.",
        "## `[crew]`",
        _key_table(CrewSettings),
        "## `[[task]]`",
        _key_table(PlannedTask),
        "## Validation",
        "These errors are found before the run:",
        bullets(f"{code(error)}: {_PLAN_ERRORS[error]}" for error in PlanProblem),
        "A task starts after the tasks in its `depends_on` and after every rollback task of the plan.",
        "## Revisions",
        "A replanner writes a complete new plan. A task with a revision mark is handled by that mark. A task without "
        "one is compared with the current plan: an equal task stays as it is, a different task is revised. A task that "
        "the new plan does not contain is removed and recorded as exited.",
        "## Example",
        fence(PLAN, "toml"),
    )


_PLAN_ERRORS = {
    PlanProblem.UNKNOWN: "a task depends on a task that is not in the plan.",
    PlanProblem.CYCLE: "tasks depend on each other in a cycle.",
    PlanProblem.SCOPE: "two tasks that can run at the same time declare the same file in `writes`.",
}


def _pipeline_page() -> str:
    comments = member_comments(StageEnding)
    return page(
        "Pipeline files",
        "A pipeline file lists the stages that `rung pipeline run` executes; see "
        "[Run a pipeline](../howto/run-a-pipeline.md). The whole file is validated before anything runs; an error "
        "names the key and the allowed values.",
        "## `[pipeline]`",
        _key_table(PipelineSettings),
        "## `[[stage]]`",
        _key_table(PipelineStage),
        "## `[policy]`",
        "The keys of a [policy](policy.md). The default ladder is [`pipeline`](ladders/pipeline.md).",
        "## Signals",
        "The first line of a stage's output can be a signal: `STATUS|key:value|…|ref:path`.",
        table(
            ("status", "effect"),
            (
                (code(status), _EFFECTS[status] + (f" ({comments[status]})" if comments.get(status) else ""))
                for status in StageEnding
            ),
        ),
        "`reason:` is a message, `kind:` is a [failure kind](kinds/README.md), `missing:` is a comma-separated list of "
        "sections, and `quality:` is a number from 0 to 100. Other keys are passed to the dependent stages.",
        "## Example",
        fence(PIPELINE, "toml"),
    )


_EFFECTS = {
    StageEnding.PASS: "Sections, quality and the check are verified; then the dependent stages start.",
    StageEnding.FAIL: "Recovery starts. The kind comes from `kind:`, from `missing:`, or from classifying `reason:`.",
    StageEnding.PARTIAL: "The missing sections are requested; if more than two are missing, a new worker starts.",
    StageEnding.BLOCKED: "A person is asked. If nobody is available, the pipeline stops.",
}


def _key_table(settings: type) -> str:
    rows = ((code(key.name), key.type.allowed, _default(key.default), key.doc) for key in declared_settings(settings))
    return table(("key", "allowed", "default", "meaning"), rows)


def _default(value: Any) -> str:
    if value is REQUIRED:
        return "required"
    if value in (None, "", ()):
        return "none"
    return code(str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else value)
