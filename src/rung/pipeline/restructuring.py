"""Restructuring of a running pipeline: the planner's partition, or one by rules; kept for a resumed run."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rung.adapters.system.planner import PlannerFailed, ask_planner
from rung.core.pipeline.partition import apply_changes, changes_to_json, divide_by_rules, repartition
from rung.core.recovery.known_bad import planning_case
from rung.core.text.json_in_text import parse_json_object

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from rung.core.domain.incident import Incident
    from rung.core.pipeline.spec import Pipeline


def divide(
    pipeline: Pipeline,
    stage: str,
    incident: Incident,
    *,
    running: Collection[str],
    passed: Collection[str],
    folder: Path,
) -> tuple[Pipeline, str]:
    """Return the new partition after a conflict of a stage, and a sentence about it: by the planner, else by rules."""
    failure = incident.failures[-1]
    report = failure.evidence.output or failure.message
    if not pipeline.planner:
        return divide_by_rules(pipeline, stage, report, started=running, ended=passed)
    states = dict.fromkeys(running, "running") | dict.fromkeys(passed, "passed")
    partition = [
        {
            "id": each.id,
            "writes": list(each.writes),
            "depends_on": sorted(pipeline.dependencies[each.id]),
            "state": states.get(each.id, "waiting"),
        }
        for each in pipeline.stages
    ]
    case = {**planning_case(incident, failure), "stage": stage, "partition": partition}
    rows = (parse_json_object(ask_planner(pipeline.planner, case, cwd=folder)) or {}).get("stages")
    if not isinstance(rows, list) or not rows:
        raise PlannerFailed('the planner wrote no partition: a JSON object with "stages", a list of stages')
    fixed = {*running, *passed} - {stage}
    changed = repartition(pipeline, stage, rows, fixed=fixed)
    note = f"the planner changed {', '.join(str(row.get('id')) for row in rows if isinstance(row, dict))}"
    return replace(changed, restructured=(*changed.restructured, note)), note


def load_partition(pipeline: Pipeline, path: Path, run_id: str) -> Pipeline:
    """Return the pipeline as an earlier process of this run had divided it."""
    try:
        kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return pipeline
    return apply_changes(pipeline, kept) if kept.get("run") == run_id else pipeline


def save_partition(original: Pipeline, pipeline: Pipeline, path: Path, run_id: str) -> None:
    """Keep the changes to the partition beside the outputs of the run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_text(json.dumps({"run": run_id, **changes_to_json(original, pipeline)}, indent=2), encoding="utf-8")
    new.replace(path)
