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


class Partition:
    """The partition of a run that stages have changed, in a file beside its outputs, for a resumed run.

    A division is stored with the incident and the attempt that it followed: a process that dies before the changed request is
    in the journal restructures again, and then gets the same division.
    """

    def __init__(self, pipeline: Pipeline, path: Path, run_id: str) -> None:
        self._original = self._pipeline = pipeline
        self._path = path
        self._run_id = run_id
        self._notes: dict[str, str] = {}
        if run_id:
            self._load()

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline as it is divided now."""
        return self._pipeline

    def note_of(self, incident: Incident) -> str | None:
        """Return the sentence about the division that followed this attempt, if it is made already."""
        return self._notes.get(_occasion(incident))

    def change(self, pipeline: Pipeline, incident: Incident, note: str) -> None:
        """Use another division from now on, and store it."""
        self._pipeline = pipeline
        self._notes[_occasion(incident)] = note
        if self._run_id:
            self._save()

    def _load(self) -> None:
        try:
            kept: dict[str, Any] = json.loads(self._path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return
        if kept.get("run") == self._run_id:
            self._pipeline = apply_changes(self._original, kept)
            self._notes = kept.get("divided", {})

    def _save(self) -> None:
        changes = changes_to_json(self._original, self._pipeline)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        new = self._path.with_suffix(".new")
        new.write_text(json.dumps({"run": self._run_id, **changes, "divided": self._notes}, indent=2), encoding="utf-8")
        new.replace(self._path)


def _occasion(incident: Incident) -> str:
    return f"{incident.id} attempt {incident.attempts}"
