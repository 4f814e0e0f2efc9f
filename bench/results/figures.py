"""What the page needs of the JSON that each benchmark writes; texts, row ids and raw samples are left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Json = Any


def overhead(found: Json) -> Json:
    """Ratios to the bare loop, imports as ratios to an empty interpreter (CPU time), and bytes."""
    empty = min(cpu for _, cpu in found["imports"][""])
    imports = {name: min(cpu for _, cpu in times) / empty for name, times in found["imports"].items() if name}
    return {"ratios": found["ratios"], "imports": imports, "bytes": found["memory"], "goals": found["goals"]}


def loops(found: Json) -> Json:
    """Precision, recall, and counts of each detector; the ids of trajectories are left out."""
    return {
        "detectors": {
            name: {
                "precision": one["precision"],
                "recall": one["recall"],
                "false": len(one["false"]),
                "missed": len(one["missed"]),
                "late": sorted(one["late"])[len(one["late"]) // 2] if one["late"] else None,
            }
            for name, one in found.items()
            if name != "behaviour"
        },
        "behaviour": found.get("behaviour", {}),
    }


def corpus(found: Json) -> Json:
    """Scores of each classifier, and of rung by kind; answers and row ids are left out."""
    first = {who: speed["first"] for who, speed in found["speeds"].items()}
    return {"scores": found["scores"], "absent": found["absent"], "kinds": found["kinds"], "first_sight": first}


def worlds(found: Sequence[Json]) -> Json:
    """The default ladder and the policies of others in each world, and whether the goal holds."""
    kept: dict[str, Json] = {}
    for row in found:
        world = kept.setdefault(row["world"], {"policies": {}})
        if "goal" in row:
            world |= {"goal": row["goal"], "better": row["better"], "waste_share": row["waste_share"]}
        elif row["figures"] and (row["is_default"] or row["owner"] != "rung"):
            name = "rung" if row["is_default"] else row["policy"]
            world["policies"][name] = _policy(row)
    return {"worlds": kept}


def _policy(row: Mapping[str, Json]) -> Json:
    means = {name: figure and figure["mean"] for name, figure in row["figures"].items()}
    spread = [row["figures"]["success"]["low"], row["figures"]["success"]["high"]]
    return {**means, "success_interval": spread, "unknown": row["unknown"]}


def incidents(found: Sequence[Json]) -> Json:
    """All rows."""
    return {"rows": list(found)}


def matrix(found: Sequence[Json]) -> Json:
    """How many cells ended with the whole answer, and how many with neither it nor a well-formed error."""
    columns: dict[str, dict[str, int]] = {}
    for row in found:
        for name, cell in row["columns"].items():
            counts = columns.setdefault(name, {"cells": 0, "whole": 0, "silent": 0})
            counts["cells"] += 1
            is_whole = cell["got"] == "whole" and not cell["lost"] and not cell["doubled"]
            counts["whole"] += is_whole
            counts["silent"] += not is_whole and cell["got"] != "error"
    return {"columns": columns}


def whole(found: Json) -> Json:
    """All of it."""
    return found
