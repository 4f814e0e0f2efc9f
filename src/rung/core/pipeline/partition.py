"""The partition of a pipeline's work: which stage writes what, and who waits for whom. Changed when stages conflict. Pure."""

from __future__ import annotations

from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING, Any, Final

from rung.core.crew.dependencies import find_cycle, paths_overlap, unknown_dependencies
from rung.core.domain.errors import ConfigError
from rung.core.domain.settings_schema import read_settings, read_table
from rung.core.pipeline.spec import Pipeline, PipelineStage
from rung.core.pipeline.stage_signal import parse_signal

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

_KEYS: Final = frozenset(each.name for each in fields(PipelineStage))


def repartition(pipeline: Pipeline, stage: str, rows: Sequence[Any], *, fixed: Collection[str]) -> Pipeline:
    """Return the pipeline with a planner's rows: changed stages, and new ones that share the work of `stage`.

    Stages in `fixed` run or have passed and cannot change. What depends on `stage` also waits for its new parts.
    """
    known = {each.id: each for each in pipeline.stages}
    dependencies = dict(pipeline.dependencies)
    added = []
    for number, row in enumerate(rows):
        source = read_table(row, f"stages[{number}]")
        name = source.get("id")
        if name in fixed:
            raise ConfigError(
                f"stages[{number}].id", name, "a stage that is not running and has not passed, or a new one"
            )
        base = asdict(known[name]) if name in known else {"command": list(known[stage].command)}
        merged = read_settings(PipelineStage, {**_nonempty_settings(base), **source}, f"stages[{number}]")
        if merged.id not in known:
            added.append(merged.id)
        known[merged.id] = merged
        dependencies[merged.id] = dependencies.get(merged.id, frozenset()) | set(merged.depends_on)
    for name, needed in pipeline.dependencies.items():
        if stage in needed and name not in fixed:
            dependencies[name] |= set(added)
    return _checked(replace(pipeline, stages=tuple(known.values()), dependencies=dependencies))


def divide_by_rules(
    pipeline: Pipeline, stage: str, report: str, *, started: Collection[str], ended: Collection[str]
) -> tuple[Pipeline, str]:
    """Return the pipeline in which each contested file has one owner, and a sentence about it.

    The report's signal names the files (`files:`) and the other stages (`with:`); else those that it mentions, or that
    run now. The owner is the stage that declares the file, else the one that comes first in the pipeline.
    """
    order = {each.id: number for number, each in enumerate(pipeline.stages)}
    others = _others(pipeline, stage, report, started)
    files = _files(pipeline, stage, others, report)
    owner = _owner(pipeline, stage, others, files, order)
    if owner != stage and owner not in started:
        owner = stage  # a stage that waits for one that has not started would wait in vain
    stages = tuple(_with_scope(each, files, owner) for each in pipeline.stages)
    dependencies = dict(pipeline.dependencies)
    waiting = [stage] if owner != stage else [name for name in others if name not in {*started, *ended}]
    for name in waiting:
        dependencies[name] |= {owner}
    what = ", ".join(files) or "the contested work"
    note = f"{what} belong{'s' * (len(files) < 2)} to {owner} alone" + (  # noqa: PLR2004  # one file
        f"; {', '.join(waiting)} wait{'s' * (len(waiting) == 1)} for it" if waiting else ""
    )
    changed = replace(pipeline, stages=stages, dependencies=dependencies)
    return _checked(replace(changed, restructured=(*pipeline.restructured, note))), note


def scope_of(pipeline: Pipeline, stage: str) -> str:
    """Return what a stage owns, and what belongs to others, as sentences for its agent."""
    own = ", ".join(pipeline.stage(stage).writes)
    others = [f"{each.id}: {', '.join(each.writes)}" for each in pipeline.stages if each.writes and each.id != stage]
    return f"You own: {own or 'only what no other stage owns'}. Do not write what others own: {'; '.join(others) or 'none'}."


def changes_to_json(original: Pipeline, pipeline: Pipeline) -> dict[str, Any]:
    """Return the stages and dependencies that differ from those of the file, as JSON values."""
    before = {each.id: each for each in original.stages}
    changed = [each for each in pipeline.stages if before.get(each.id) != each]
    waits = {
        name: sorted(needed)
        for name, needed in pipeline.dependencies.items()
        if needed != original.dependencies.get(name)
    }
    return {
        "stages": [_nonempty_settings(asdict(each)) for each in changed],
        "dependencies": waits,
        "restructured": list(pipeline.restructured[len(original.restructured) :]),
    }


def apply_changes(pipeline: Pipeline, changes: Mapping[str, Any]) -> Pipeline:
    """Return the pipeline of a file with the changes that an earlier process of the run made."""
    known = {each.id: each for each in pipeline.stages}
    for row in changes["stages"]:
        stage = read_settings(PipelineStage, row, "stages")
        known[stage.id] = stage
    dependencies = {**pipeline.dependencies, **{name: frozenset(x) for name, x in changes["dependencies"].items()}}
    notes = (*pipeline.restructured, *changes["restructured"])
    return _checked(replace(pipeline, stages=tuple(known.values()), dependencies=dependencies, restructured=notes))


def _nonempty_settings(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a stage as a table of a file has them: without empty ones."""
    return {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in row.items()
        if key in _KEYS and value not in ("", (), [], None)
    }


def _checked(pipeline: Pipeline) -> Pipeline:
    for name, other in unknown_dependencies(pipeline.dependencies):
        raise ConfigError("stages.depends_on", other, f"a stage of the pipeline ({name} depends on it)")
    cycle = find_cycle(pipeline.dependencies)
    if cycle:
        raise ConfigError("stages.depends_on", list(cycle), "stages without a dependency cycle")
    return pipeline


def _others(pipeline: Pipeline, stage: str, report: str, started: Collection[str]) -> list[str]:
    signal = parse_signal(report)
    named = signal.facts.get("with", "") if signal is not None else ""
    names = [each.id for each in pipeline.stages if each.id != stage]
    listed = {part.strip() for part in named.split(",")}
    return [name for name in names if name in listed] or [name for name in names if name in started]


def _files(pipeline: Pipeline, stage: str, others: Sequence[str], report: str) -> list[str]:
    signal = parse_signal(report)
    listed = signal.facts.get("files", "") if signal is not None else ""
    files = [part.strip() for part in listed.split(",") if part.strip()]
    declared = [path for name in (*others, stage) for path in pipeline.stage(name).writes]
    return files or list(dict.fromkeys(path for path in declared if path in report))


def _owner(
    pipeline: Pipeline, stage: str, others: Sequence[str], files: Sequence[str], order: Mapping[str, int]
) -> str:
    candidates = sorted((stage, *others), key=order.__getitem__)
    for name in candidates:
        if any(paths_overlap(path, own) for path in files for own in pipeline.stage(name).writes):
            return name
    return candidates[0]


def _with_scope(stage: PipelineStage, files: Sequence[str], owner: str) -> PipelineStage:
    if stage.id == owner:
        return replace(stage, writes=tuple(dict.fromkeys((*stage.writes, *files))))
    return replace(stage, writes=tuple(path for path in stage.writes if path not in files))
