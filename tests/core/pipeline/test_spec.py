"""Pipeline files: reading, write conflicts, the check of a stage's output, prompts and reports."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.classify.classifier import classify
from rung.core.domain.errors import ConfigError
from rung.core.domain.failures import Kind
from rung.core.pipeline.spec import (
    PipelineStage,
    blocked_report,
    check_output,
    merge_outputs,
    missing_sections,
    read_pipeline,
    stage_prompt,
)
from rung.core.pipeline.stage_signal import StageEnding, parse_signal
from rung.core.policy.presets import PIPELINE


def stage(name: str, **settings: Any) -> dict[str, Any]:
    return {"id": name, "prompt": f"do {name}", **settings}


def table(*stages: dict[str, Any], **settings: Any) -> dict[str, Any]:
    return {"pipeline": {"command": ["agent"], **settings}, "stage": list(stages)}


def test_a_whole_pipeline() -> None:
    """Every key is read, and a stage without a command gets the pipeline's."""
    pipeline = read_pipeline(
        table(
            stage("design", sections=["Goal", "Parts"], signal=True, quality=70, turns=20, check=["make", "test"]),
            {"id": "build", "prompt_path": "b.md", "command": ["other"], "depends_on": ["design"], "writes": ["src/"]},
            name="demo",
            workers=3,
            out="work",
        )
    )
    assert (pipeline.name, pipeline.workers, pipeline.out) == ("demo", 3, "work")
    design, build = pipeline.stages
    assert design == PipelineStage(
        id="design",
        prompt="do design",
        command=("agent",),
        sections=("Goal", "Parts"),
        signal=True,
        quality=70,
        turns=20,
        check=("make", "test"),
    )
    assert build.command == ("other",)
    assert pipeline.stage("build") is build
    assert pipeline.dependencies == {"design": frozenset(), "build": {"design"}}
    assert pipeline.restructured == ()


@pytest.mark.parametrize(
    ("wrong", "key"),
    [
        ([], "pipeline"),
        ({"stages": []}, "stages"),
        ({"stage": []}, "stage"),
        (table(stage("a", promt="x")), "stage[0].promt"),
        (table({"id": "a"}), "stage[0].prompt"),
        (table(stage("a", prompt_path="x")), "stage[0].prompt"),
        ({"stage": [stage("a")]}, "stage[0].command"),
        (table(stage("a/b")), "stage[0].id"),
        (table(stage("a"), stage("a")), "stage[1].id"),
        (table(stage("a", quality=101)), "stage[0].quality"),
        (table(stage("a", signal="yes")), "stage[0].signal"),
        (table(stage("a", depends_on=["b"])), "stage.depends_on"),
        (table(stage("a", depends_on=["b"]), stage("b", depends_on=["a"])), "stage.depends_on"),
        (table(stage("a"), workers=0), "pipeline.workers"),
    ],
)
def test_an_error_names_its_key(wrong: Any, key: str) -> None:
    """Every error in a file names the key."""
    with pytest.raises(ConfigError) as raised:
        read_pipeline(wrong)
    assert raised.value.key == key


def test_two_writers_of_one_file_take_turns() -> None:
    """Of two stages that write one file, the later one waits; a note says so, and no cycle arises."""
    pipeline = read_pipeline(
        table(
            stage("a", writes=["f"], depends_on=["c"]),
            stage("b", writes=["f", "g"]),
            stage("c", writes=["g"]),
            stage("d"),
        )
    )
    assert pipeline.dependencies == {"a": {"c", "b"}, "b": frozenset(), "c": {"b"}, "d": frozenset()}
    assert sorted(pipeline.restructured) == ["a now waits for b: both write f", "c now waits for b: both write g"]


OUTPUT = """PASS|quality:80|ref:out.md
# Goal
One thing.

**Parts:**
- a

Tests:
all pass
"""


def test_sections() -> None:
    """Headings, bold lines and lines with a colon are titles; a section without text is missing."""
    assert missing_sections(OUTPUT, ["Goal", "parts", "TESTS"]) == ()
    assert missing_sections(OUTPUT, ["Goal", "Risks"]) == ("Risks",)
    assert missing_sections("## Goal\n\n## Parts\nx", ["Goal", "Parts"]) == ("Goal",)
    assert missing_sections("Goal is met", ["Goal"]) == ("Goal",)
    assert missing_sections("", []) == ()
    assert missing_sections("# " + "goal" * 60 + "\nx", ["goal" * 60]) == ("goal" * 60,)


@given(st.text(), st.lists(st.sampled_from(["Goal", "Parts"]), unique=True))
def test_any_output_is_judged(output: str, sections: list[str]) -> None:
    """Any output is checked, and each failure enters the ladder at a rung."""
    found = check_output(PipelineStage(id="a", sections=tuple(sections)), output)
    if found is not None:
        assert 0 <= PIPELINE.entry_index(classify(found)) < len(PIPELINE.rungs)
    assert set(missing_sections(output, sections)) <= set(sections)


@pytest.mark.parametrize(
    ("output", "kind", "missing"),
    [
        (OUTPUT, None, ()),
        ("# Goal\nx\n# Parts\ny", None, ()),
        ("# Goal\nx", Kind.PARTIAL_OUTPUT, ("Parts",)),
        ("PASS|quality:69\n# Goal\nx\n# Parts\ny", Kind.LOW_QUALITY, ()),
        ("PASS|quality:good\n# Goal\nx\n# Parts\ny", None, ()),
        ("PARTIAL\n# Goal\nx", Kind.PARTIAL_OUTPUT, ("Parts",)),
        ("PARTIAL|missing:docs, tests", Kind.PARTIAL_OUTPUT, ("docs", "tests")),
        ("FAIL|kind:turns_exhausted", Kind.TURNS_EXHAUSTED, ()),
        ("FAIL|missing:docs", Kind.PARTIAL_OUTPUT, ("docs",)),
        ("BLOCKED|reason:two ways to read it", Kind.STRATEGIC_AMBIGUITY, ()),
        ("BLOCKED|kind:missing_credentials", Kind.MISSING_CREDENTIALS, ()),
    ],
)
def test_what_an_output_says(output: str, kind: Kind | None, missing: tuple[str, ...]) -> None:
    """The signal is checked first, then the sections, then the quality."""
    found = check_output(PipelineStage(id="a", sections=("Goal", "Parts"), quality=70), output)
    assert (found.finding if found else None, found.missing if found else ()) == (kind, missing)


def test_a_failure_in_its_own_words_is_classified() -> None:
    """A FAIL without a kind is classified by its text."""
    found = check_output(PipelineStage(id="a"), "FAIL|reason:HTTP 429 rate limit exceeded")
    assert found is not None
    assert found.finding is None
    assert classify(found).kind is Kind.RATE_LIMIT


def test_a_signal_may_be_required() -> None:
    """A stage that requires a signal rejects prose."""
    found = check_output(PipelineStage(id="a", signal=True), "All done.")
    assert found is not None
    assert found.finding is Kind.MALFORMED_OUTPUT
    assert check_output(PipelineStage(id="a", signal=True), "PASS") is None


def test_a_nudge_completes_what_was_there() -> None:
    """The missing sections are appended to the output so far, under the newer signal."""
    kept = "PARTIAL|missing:Parts\n# Goal\nx\n"
    assert (
        merge_outputs(kept, "PASS|ref:r\n# Parts\ny\n", ["Goal", "Parts"]) == "PASS|ref:r\n\n# Goal\nx\n\n# Parts\ny\n"
    )
    assert merge_outputs("# Goal\nx", "# Parts\ny", ["Goal", "Parts"]) == "# Goal\nx\n\n# Parts\ny\n"
    assert merge_outputs(kept, "# Goal\nz\n# Parts\ny", ["Goal", "Parts"]) == "# Goal\nz\n# Parts\ny"
    assert merge_outputs("", "new", ["Goal"]) == "new"
    assert merge_outputs("one", "two", []) == "one\n\ntwo\n"


def test_what_the_next_stage_is_told() -> None:
    """A prompt has the paths and signals of the dependencies, not their output."""
    assert stage_prompt("build it", {}) == "build it"
    told = stage_prompt("build it\n", {"design": ("out/design.md", "PASS")})
    assert told == "build it\n\nOutput of the stages that this one depends on:\n- design: out/design.md (PASS)\n"


def test_the_report_of_a_blocked_pipeline() -> None:
    """A blocked report has a signal, the state of every stage, and the failed stage's report."""
    pipeline = read_pipeline(table(stage("a"), stage("b", depends_on=["a"]), stage("c", depends_on=["b"]), name="demo"))
    states = {"a": "succeeded", "b": "blocked", "c": "not started"}
    text = blocked_report(pipeline, states, {"b": "# BLOCKED: unknown\n\n## Options\n\n1. one\n"})
    signal = parse_signal(text)
    assert signal is not None
    assert (signal.status, signal.facts) == (StageEnding.BLOCKED, {"stage": "b", "passed": "1 of 3"})
    assert "- c: not started" in text
    assert "## Stage b\n\n### BLOCKED: unknown\n\n#### Options" in text
