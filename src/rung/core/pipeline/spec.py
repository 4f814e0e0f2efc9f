"""A pipeline: stages of agents, from a table; what their output says; what a blocked one leaves for a person."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from rung.core.classify.evidence import clip
from rung.core.crew.dependencies import clashes, cycle, unknown, waves
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
from rung.core.pipeline.stage_signal import StageEnding, StageSignal, parse, without_signal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_LINE: Final = 200  # characters; a longer one is no title
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
    turns: int | None = setting(optional(COUNT), "Turns of its agent; doubled for a fresh one.", default=None)
    idempotent: bool = setting(
        FLAG, "Whether it may run again after its runner died. If not, it ends partial, for a person.", default=True
    )
    check: tuple[str, ...] = setting(COMMAND, "Command that must exit 0 after the agent.", default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """The stages, in the order of the file, and what each waits for once those that share a file are kept apart."""

    name: str
    workers: int
    out: str
    stages: tuple[PipelineStage, ...]
    after: Mapping[str, frozenset[str]]
    restructured: tuple[str, ...] = ()

    def stage(self, name: str) -> PipelineStage:
        """The stage of this id."""
        return next(stage for stage in self.stages if stage.id == name)


def read_pipeline(table: object) -> Pipeline:
    """A pipeline from a table; every error names its key. `[policy]` in it is somebody else's to read."""
    source = read_table(table, "pipeline")
    check_keys(source, ("pipeline", "stage", "policy"))
    settings = read_settings(PipelineSettings, source.get("pipeline", {}), "pipeline")
    rows = read_rows(PipelineStage, source.get("stage") or None, "stage")
    stages = tuple(_stage(row, f"stage[{number}]", settings.command) for number, row in enumerate(rows))
    after, notes = _structured(stages)
    return Pipeline(
        name=settings.name,
        workers=settings.workers,
        out=settings.out,
        stages=stages,
        after=after,
        restructured=notes,
    )


def _stage(stage: PipelineStage, where: str, command: tuple[str, ...]) -> PipelineStage:
    if bool(stage.prompt) == bool(stage.prompt_path):
        raise ConfigError(f"{where}.prompt", stage.prompt, "given, or else prompt_path is; never both")
    if not stage.command and not command:
        raise ConfigError(f"{where}.command", [], f"{COMMAND.allowed}; or pipeline.command is given")
    return stage if stage.command else replace(stage, command=command)


def _structured(stages: tuple[PipelineStage, ...]) -> tuple[dict[str, frozenset[str]], tuple[str, ...]]:
    """Who waits for whom; of two that write one file the later in turn waits for the earlier, and that is said."""
    after = {stage.id: frozenset(stage.depends_on) for stage in stages}
    for name, other in unknown(after):
        raise ConfigError("stage.depends_on", other, f"a stage of the file ({name} waits for it)")
    circle = cycle(after)
    if circle:
        raise ConfigError("stage.depends_on", list(circle), "stages that do not wait for one another in a circle")
    turn = {name: number for number, name in enumerate(name for wave in waves(after) for name in wave)}
    notes: list[str] = []
    for clash in clashes({stage.id: stage.writes for stage in stages}, after):
        first, second = sorted((clash.first, clash.second), key=turn.__getitem__)
        after[second] |= {first}
        notes.append(f"{second} now waits for {first}: both write {clash.path}")
    return after, tuple(notes)


def sections_missing(text: str, sections: Sequence[str]) -> tuple[str, ...]:
    """The declared sections an output does not have, or has with nothing below the title."""
    wanted = {name.strip().lower(): name for name in sections}
    found: set[str] = set()
    current: str | None = None
    for line in text.split("\n") if wanted else ():
        bare = line.strip()
        title = _title(bare)
        if title in wanted:
            current = title
        elif bare and current is not None:
            found.add(current)
    return tuple(name for key, name in wanted.items() if key not in found)


def _title(line: str) -> str | None:
    """The name in a line that could be a title: a heading, bold, or with a colon at its end."""
    marked = line.startswith(("#", "**")) or line.endswith(":")
    return line.strip("#*: \t").lower() if marked and len(line) <= _LINE else None


def joined(kept: str, text: str, sections: Sequence[str]) -> str:
    """What was kept with what a nudge brought; where that brought everything, it stands alone."""
    if not kept or (sections and not sections_missing(text, sections)):
        return text
    signal = parse(text) or parse(kept)
    parts = [part.strip("\n") for part in (without_signal(kept), without_signal(text))]
    return "\n\n".join([*((signal.line(),) if signal is not None else ()), *parts]) + "\n"


def judge_output(stage: PipelineStage, output: str) -> Evidence | None:
    """What is wrong with a stage's output; None where nothing is."""
    signal = parse(output)
    if signal is not None and signal.status is not StageEnding.PASS:
        return _not_passed(stage, signal, output)
    if signal is None and stage.signal:
        said = "the first line is not a signal: PASS|FAIL|PARTIAL|BLOCKED, then |key:value and |ref:path"
        return _found(Kind.MALFORMED_OUTPUT, said, output)
    missing = sections_missing(output, stage.sections)
    if missing:
        return _found(Kind.PARTIAL_OUTPUT, f"sections are missing: {', '.join(missing)}", output, missing)
    score = _score(signal)
    if score is not None and score < stage.quality:
        return _found(Kind.LOW_QUALITY, f"quality {score:g}, and {stage.quality:g} is asked for", output)
    return None


def _not_passed(stage: PipelineStage, signal: StageSignal, output: str) -> Evidence:
    said = signal.facts.get("reason") or signal.line()
    named = next((kind for kind in Kind if kind == signal.facts.get("kind")), None)
    told = tuple(part.strip() for part in signal.facts.get("missing", "").split(",") if part.strip())
    if signal.status is StageEnding.BLOCKED:
        return _found(named or Kind.STRATEGIC_AMBIGUITY, said, output)
    missing = told or sections_missing(output, stage.sections)
    if signal.status is StageEnding.PARTIAL:
        return _found(named or Kind.PARTIAL_OUTPUT, said, output, missing)
    return _found(named or (Kind.PARTIAL_OUTPUT if told else None), said, output, told)


def _found(kind: Kind | None, said: str, output: str, missing: tuple[str, ...] = ()) -> Evidence:
    return Evidence(text=clip(said, 4_096), finding=kind, phase=Phase.RESULT, output=clip(output), missing=missing)


def _score(signal: StageSignal | None) -> float | None:
    try:
        return None if signal is None else float(signal.facts.get("quality", "").rstrip("%"))
    except ValueError:
        return None


def stage_prompt(task: str, before: Mapping[str, tuple[str, str]]) -> str:
    """What an agent is asked, and where to read what the stages before it came to: paths, never their contents."""
    if not before:
        return task
    lines = "\n".join(f"- {name}: {path} ({signal})" for name, (path, signal) in before.items())
    return f"{task.rstrip()}\n\nWhat the stages before this one wrote:\n{lines}\n"


def blocked_report(pipeline: Pipeline, states: Mapping[str, str], reports: Mapping[str, str]) -> str:
    """The report of a pipeline that stopped: first a signal, then every stage, then what each failed one tried."""
    passed = sum(state in {"succeeded", "recovered"} for state in states.values())
    stopped = [name for name in states if name in reports]
    facts = {"stage": ", ".join(stopped), "passed": f"{passed} of {len(states)}"}
    lines = [
        StageSignal(status=StageEnding.BLOCKED, facts=facts).line(),
        "",
        f"# Pipeline {pipeline.name}: BLOCKED",
        "",
    ]
    lines += [f"- {name}: {state}" for name, state in states.items()]
    lines += ["", *(f"## Stage {name}\n\n{_lowered(report)}" for name, report in reports.items())]
    return "\n".join(lines).rstrip() + "\n\n"


def _lowered(report: str) -> str:
    """Its headings two levels down, as it is part of another report."""
    return re.sub(r"^#", "###", report, flags=re.MULTILINE)
