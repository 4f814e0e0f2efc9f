"""The section about recorded worlds: the default ladder beside the policies of others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bench.results.bars import OTHER, OURS, Bar, picture
from bench.results.benchmarks import WORLDS
from bench.results.section import DASH, Section, table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bench.results.record import Record

    Policy = Mapping[str, Any]

_ABOUT = "Recovery policies are played on outcomes that others recorded: success at attempts per task, after failures of the result. [How, and all policies](explanation/worlds.md)."
_NOTE = "A cell: success at attempts for each task; `+ n?`: attempts that the world did not record, counted as failed. Goal: no policy of the others has more success at the same or fewer attempts, and at most half of the waste of retrying for ever."


def worlds(records: Mapping[str, Record]) -> Section:
    """Success and attempts in each world, on the public part and on others."""
    title, reproduce = "Recorded worlds", "make results NAME=worlds"
    found = [record for name, record in records.items() if name == WORLDS or name.startswith(f"{WORLDS}-")]
    if not found:
        return Section(title=title, reproduce=reproduce, about=_ABOUT)
    body, losses = [_NOTE], []
    for record in found:
        part = record.name.removeprefix(WORLDS).lstrip("-") or "public part, which Rung was tuned on"
        body.append(f"{part[0].upper()}{part[1:]}:\n\n{_table(record.figures['worlds'])}")
        losses += [f"{part}: {line}" if len(found) > 1 else line for line in _losses(record.figures["worlds"])]
    return Section(
        title=title,
        reproduce=f"{reproduce}`, another folder: `make results NAME=worlds FILE=…",
        about=_ABOUT,
        records=found,
        notes=body,
        other_losses=losses,
        said=_headline(found),
        pictures={f"{record.name}.svg": _picture(record) for record in found},
    )


def _headline(found: Sequence[Record]) -> str:
    goals = [world["goal"] for record in found for world in record.figures["worlds"].values()]
    return f"the default ladder meets its goal in {sum(goals)} of {len(goals)} worlds"


def _table(found: Mapping[str, Any]) -> str:
    names = dict.fromkeys(_column(name) for world in found.values() for name in world["policies"])
    names = {"rung": None} | {name: None for name in names if name != "rung"}
    body = []
    for name, world in found.items():
        cells = {_column(policy): one for policy, one in world["policies"].items()}
        body.append([name, *(_cell(cells.get(column), column) for column in names), _goal(world)])
    return table(["world", *names, "goal"], body)


def _column(policy: str) -> str:
    """Return the column of a policy: the fallbacks of LangChain share one, in which the last and longest counts."""
    return policy.partition(",")[0].partition(":")[0]


def _cell(policy: Policy | None, column: str) -> str:
    if policy is None:
        return DASH
    unknown = f" + {policy['unknown']:.2f}?" if policy["unknown"] >= 0.005 else ""
    shown = f"{policy['success']:.3f} at {policy['attempts']:.2f}{unknown}"
    return f"**{shown}**" if column == "rung" else shown


def _goal(world: Mapping[str, Any]) -> str:
    waste = world["waste_share"]
    told = "" if waste is None else f", waste {waste:.0%}"
    return ("holds" if world["goal"] else "MISSED") + told


def _losses(found: Mapping[str, Any]) -> Iterator[str]:
    for name, world in found.items():
        others = {policy: one for policy, one in world["policies"].items() if policy != "rung"}
        ours = world["policies"].get("rung")
        if ours is None:
            continue
        attempts = ours["attempts"] + ours["unknown"]
        more = {policy: one for policy, one in others.items() if f"{one['success']:.3f}" > f"{ours['success']:.3f}"}
        same = {
            policy: one
            for policy, one in others.items()
            if f"{one['success']:.3f}" >= f"{ours['success']:.3f}"
            and f"{one['attempts']:.2f}" < f"{attempts:.2f}"
        }  # fmt: skip
        if better := more | same:
            told = ", ".join(f"{policy} {_cell(one, '')}" for policy, one in better.items())
            yield f"{name}: rung {_cell(ours, '')}, but {told}."
        if world["waste_share"] is not None and world["waste_share"] > 0.5:
            yield f"{name}: {world['waste_share']:.0%} of the attempts that retrying for ever wastes on unsolvable tasks; the goal is 50 %."


def _picture(record: Record) -> str:
    groups = []
    for name, world in record.figures["worlds"].items():
        bars = [
            Bar(
                label=policy,
                value=one["success"],
                shown=f"{one['success']:.3f} at {one['attempts']:.2f}",
                colour=OURS if policy == "rung" else OTHER,
            )
            for policy, one in world["policies"].items()
        ]
        groups.append((name, bars))
    return picture("Success (at attempts for each task)", groups)
