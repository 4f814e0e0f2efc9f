"""The specification of a pipeline: its file, the check of a stage's output, prompts and the report when it is blocked."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from rung.core.classify.evidence import clip
from rung.core.crew.dependencies import find_cycle, parallel_groups, unknown_dependencies, write_conflicts
from rung.core.domain.errors import ConfigError, is_number
from rung.core.domain.failures import Evidence, Kind, Phase
from rung.core.domain.settings_schema import (
    COMMAND,
    COUNT,
    FLAG,
    TEXT,
    TEXTS,
    Type,
    check_keys,
    optional,
    read_rows,
    read_settings,
    read_table,
    setting,
    settings,
)
from rung.core.pipeline.stage_signal import StageEnding, StageSignal, parse_signal, strip_signal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_MAX_TITLE_CHARS: Final = 200  # a longer line is not a heading
_ID: Final = Type(
    "letters, digits, dots, dashes and underscores, up to 100",
    lambda value: isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", value) is not None,
)
_IDS: Final = TEXTS._replace(allowed="a list of the ids of other stages")
_SCORE: Final = Type("a number from 0 to 100", lambda value: is_number(value) and value <= 100)  # noqa: PLR2004


@settings
class PipelineSettings:
    """The `[pipeline]` table of a pipeline file."""

    name: str = setting(_ID, "Name of the pipeline.", default="pipeline")
    command: tuple[str, ...] = setting(COMMAND, "Command of an agent whose stage has none.", default=())
    workers: int = setting(COUNT, "Stages that run at once.", default=5)
    out: str = setting(TEXT, "Folder for the stages' outputs: `NAME/STAGE.md` in it.", default="tasks")
    planner: tuple[str, ...] = setting(
        COMMAND,
        "Command that makes a new plan for a stage, or a new partition of the stages: reads a case as JSON.",
        default=(),
    )
    investigate: tuple[str, ...] = setting(
        COMMAND, "Command that finds the root cause before a new plan: reads a case as JSON, writes text.", default=()
    )


@settings
class PipelineStage:
    """A `[[stage]]` table of a pipeline file."""

    id: str = setting(_ID, "Name of the stage.")
    prompt: str = setting(TEXT, "Prompt of the agent. Either this or `prompt_path`.", default="")
    prompt_path: str = setting(TEXT, "File with the prompt, relative to the pipeline's folder.", default="")
    command: tuple[str, ...] = setting(
        COMMAND,
        "Command of the agent. Its prompt comes on standard input, or in place of `{prompt}`; `{turns}`, `{stage}` "
        "and `{out}` stand for its turns, its name and its output file.",
        default=(),
    )
    depends_on: tuple[str, ...] = setting(_IDS, "Stages that must pass before it starts.", default=())
    writes: tuple[str, ...] = setting(
        TEXTS, "Files and folders it writes. Two stages that share one never run at once.", default=()
    )
    sections: tuple[str, ...] = setting(
        TEXTS,
        "Headings its output must have, each with text below it. Up to two missing ones are asked for separately.",
        default=(),
    )
    signal: bool = setting(FLAG, "Whether its first line must be a signal.", default=False)
    quality: float = setting(
        _SCORE, "Lowest `quality:` that its signal may report. A signal without one is not checked.", default=0
    )
    turns: int | None = setting(
        optional(COUNT), "Turns of its agent; doubled for a fresh one after its turns ran out.", default=None
    )
    idempotent: bool = setting(
        FLAG, "Whether it may run again after its runner died. If not, it ends partial, for a person.", default=True
    )
    check: tuple[str, ...] = setting(COMMAND, "Command that must exit 0 after the agent.", default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """The stages in the order of the file, and the dependencies of each.

    `dependencies` includes those that were added so that no two stages write one file at once; `restructured`
    describes these.
    """

    name: str
    workers: int
    out: str
    stages: tuple[PipelineStage, ...]
    dependencies: Mapping[str, frozenset[str]]
    restructured: tuple[str, ...] = ()
    planner: tuple[str, ...] = ()
    investigate: tuple[str, ...] = ()

    def stage(self, name: str) -> PipelineStage:
        """Return the stage with this id."""
        return next(stage for stage in self.stages if stage.id == name)


def read_pipeline(table: object) -> Pipeline:
    """Read a pipeline from a parsed TOML document. Every error names its key. `[policy]` is read elsewhere."""
    source = read_table(table, "pipeline")
    check_keys(source, ("pipeline", "stage", "policy"))
    settings = read_settings(PipelineSettings, source.get("pipeline", {}), "pipeline")
    rows = read_rows(PipelineStage, source.get("stage") or None, "stage")
    stages = tuple(_checked_stage(row, f"stage[{number}]", settings.command) for number, row in enumerate(rows))
    dependencies, notes = _resolve_dependencies(stages)
    return Pipeline(
        name=settings.name,
        workers=settings.workers,
        out=settings.out,
        stages=stages,
        dependencies=dependencies,
        restructured=notes,
        planner=settings.planner,
        investigate=settings.investigate,
    )


def _checked_stage(stage: PipelineStage, where: str, command: tuple[str, ...]) -> PipelineStage:
    """Return the stage with its command, or raise an error for a missing or contradictory setting."""
    if bool(stage.prompt) == bool(stage.prompt_path):
        raise ConfigError(f"{where}.prompt", stage.prompt, "given, or else prompt_path is; never both")
    if not stage.command and not command:
        raise ConfigError(f"{where}.command", [], f"{COMMAND.allowed}; or pipeline.command is given")
    return stage if stage.command else replace(stage, command=command)


def _resolve_dependencies(stages: tuple[PipelineStage, ...]) -> tuple[dict[str, frozenset[str]], tuple[str, ...]]:
    """Return the dependencies of every stage, and notes on those that were added.

    Of two stages that write one file and could run at once, the later one is made to wait for the earlier one.
    """
    dependencies = {stage.id: frozenset(stage.depends_on) for stage in stages}
    for name, other in unknown_dependencies(dependencies):
        raise ConfigError("stage.depends_on", other, f"a stage of the file ({name} depends on it)")
    cycle = find_cycle(dependencies)
    if cycle:
        raise ConfigError("stage.depends_on", list(cycle), "stages without a dependency cycle")
    ordered = (name for group in parallel_groups(dependencies) for name in group)
    position = {name: number for number, name in enumerate(ordered)}
    notes: list[str] = []
    for conflict in write_conflicts({stage.id: stage.writes for stage in stages}, dependencies):
        first, second = sorted((conflict.first, conflict.second), key=position.__getitem__)
        dependencies[second] |= {first}
        notes.append(f"{second} now waits for {first}: both write {conflict.path}")
    return dependencies, tuple(notes)


def missing_sections(text: str, sections: Sequence[str]) -> tuple[str, ...]:
    """Return the declared sections that an output lacks, or that have no text below their heading."""
    declared = {name.strip().lower(): name for name in sections}
    present: set[str] = set()
    current: str | None = None
    for line in text.split("\n") if declared else ():
        stripped = line.strip()
        title = _heading(stripped)
        if title in declared:
            current = title
        elif stripped and current is not None:
            present.add(current)
    return tuple(name for key, name in declared.items() if key not in present)


def _heading(line: str) -> str | None:
    """Return the title in a line that can be a heading: with `#`, bold, or with a colon at its end."""
    is_marked = line.startswith(("#", "**")) or line.endswith(":")
    return line.strip("#*: \t").lower() if is_marked and len(line) <= _MAX_TITLE_CHARS else None


def merge_outputs(previous: str, answer: str, sections: Sequence[str]) -> str:
    """Append the answer to a nudge to the previous output. An answer that has all sections replaces it."""
    if not previous or (sections and not missing_sections(answer, sections)):
        return answer
    signal = parse_signal(answer) or parse_signal(previous)
    parts = [part.strip("\n") for part in (strip_signal(previous), strip_signal(answer))]
    return "\n\n".join([*((signal.line(),) if signal is not None else ()), *parts]) + "\n"


def check_output(stage: PipelineStage, output: str) -> Evidence | None:
    """Return the evidence of what is wrong with a stage's output; None if it passes."""
    signal = parse_signal(output)
    if signal is not None and signal.status is not StageEnding.PASS:
        return _evidence_of_signal(stage, signal, output)
    if signal is None and stage.signal:
        text = "the first line is not a signal: PASS|FAIL|PARTIAL|BLOCKED, then |key:value and |ref:path"
        return _evidence(Kind.MALFORMED_OUTPUT, text, output)
    missing = missing_sections(output, stage.sections)
    if missing:
        return _evidence(Kind.PARTIAL_OUTPUT, f"sections are missing: {', '.join(missing)}", output, missing)
    quality = _quality(signal)
    if quality is not None and quality < stage.quality:
        return _evidence(Kind.LOW_QUALITY, f"quality {quality:g} is below the required {stage.quality:g}", output)
    return None


def _evidence_of_signal(stage: PipelineStage, signal: StageSignal, output: str) -> Evidence:
    """Return the evidence of a signal other than PASS. Its facts `kind`, `reason` and `missing` take precedence."""
    text = signal.facts.get("reason") or signal.line()
    kind = next((kind for kind in Kind if kind == signal.facts.get("kind")), None)
    reported = tuple(part.strip() for part in signal.facts.get("missing", "").split(",") if part.strip())
    if signal.status is StageEnding.BLOCKED:
        choices = signal.facts.get("options", "")
        text = f"{text}\noptions: {choices}" if choices and "options" not in text else text
        return _evidence(kind or Kind.STRATEGIC_AMBIGUITY, text, output)
    if signal.status is StageEnding.PARTIAL:
        missing = reported or missing_sections(output, stage.sections)
        return _evidence(kind or Kind.PARTIAL_OUTPUT, text, output, missing)
    return _evidence(kind or (Kind.PARTIAL_OUTPUT if reported else None), text, output, reported)


def _evidence(kind: Kind | None, text: str, output: str, missing: tuple[str, ...] = ()) -> Evidence:
    return Evidence(text=clip(text, 4_096), finding=kind, phase=Phase.RESULT, output=clip(output), missing=missing)


def _quality(signal: StageSignal | None) -> float | None:
    try:
        return None if signal is None else float(signal.facts.get("quality", "").rstrip("%"))
    except ValueError:
        return None


def stage_prompt(prompt: str, dependencies: Mapping[str, tuple[str, str]]) -> str:
    """Return the prompt of a stage with the output path and signal of each of its dependencies."""
    if not dependencies:
        return prompt
    lines = "\n".join(f"- {name}: {path} ({signal})" for name, (path, signal) in dependencies.items())
    return f"{prompt.rstrip()}\n\nOutput of the stages that this one depends on:\n{lines}\n"


def blocked_report(pipeline: Pipeline, states: Mapping[str, str], reports: Mapping[str, str]) -> str:
    """Return the report of a blocked pipeline: a signal, the state of every stage, and the failed stages' reports."""
    passed = sum(state in {"succeeded", "recovered"} for state in states.values())
    failed = [name for name in states if name in reports]
    facts = {"stage": ", ".join(failed), "passed": f"{passed} of {len(states)}"}
    lines = [
        StageSignal(status=StageEnding.BLOCKED, facts=facts).line(),
        "",
        f"# Pipeline {pipeline.name}: BLOCKED",
        "",
    ]
    lines += [f"- {name}: {state}" for name, state in states.items()]
    lines += ["", *(f"## Stage {name}\n\n{_demote_headings(report)}" for name, report in reports.items())]
    return "\n".join(lines).rstrip() + "\n\n"


def _demote_headings(report: str) -> str:
    """Move all headings two levels down, because the report becomes a section of another one."""
    return re.sub(r"^#", "###", report, flags=re.MULTILINE)
