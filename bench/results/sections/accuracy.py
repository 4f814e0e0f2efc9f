"""Sections about accuracy: classification of errors, and detection of loops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from bench.results.bars import bars_of, picture
from bench.results.benchmarks import CORPUS, TUNED_ON
from bench.results.section import DASH, Comparison, Measure, Section, table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bench.results.record import Record

_CORPUS = "Real errors of providers, tools and models, labelled by hand before any classifier saw them: how often the kind is right, and whether the same request may be repeated. LiteLLM and hermes-agent handle model calls alone."
_LOOPS = "Recorded trajectories of agents, labelled by hand: does a detector, run after every step, find the loops and stay silent on the others? The rules of other agents follow their sources."
# Group of rows → its title.
_GROUPS: Final = {"http+exception": "provider errors", "tool": "tools", "output": "outputs"}
_PEERS: Final = {"status table": "status code"}


def classification(records: Mapping[str, Record]) -> Section:
    """Accuracy of classifiers, on files that ours was tuned on and on others."""
    title, reproduce = "Classification", "make results NAME=corpus"
    found = [record for name, record in records.items() if name.startswith(f"{CORPUS}-")]
    if not found:
        return Section(title=title, reproduce=reproduce, about=_CORPUS)
    found.sort(key=lambda record: (_is_tuned(record), record.name))
    made = [(record, _classification(record)) for record in found]
    drawn = [
        (f"{_stem(record)}, {one.measures[place].title}", bars_of(one, place))
        for record, one in made
        for place in (0, 1)
    ]
    untuned = "" if not all(map(_is_tuned, found)) else "Data that Rung was not tuned on: not measured in this version."
    return Section(
        title=title,
        reproduce=f"{reproduce}`, another file: `make corpus FILE=…",
        about=_CORPUS,
        records=found,
        comparisons=[one for _, one in made],
        notes=[untuned, _kinds(found), _speed(found)],
        said=f"{_stem(found[0])}, {made[0][1].headline(0)}",
        pictures={"classification.svg": picture("Right answers", drawn)},
    )


def _stem(record: Record) -> str:
    return record.name.removeprefix(f"{CORPUS}-")


def _is_tuned(record: Record) -> bool:
    return _stem(record) in TUNED_ON


def _classification(record: Record) -> Comparison:
    scores = record.figures["scores"]
    sizes = {group: max((one[group]["rows"] for one in scores.values() if one[group]), default=0) for group in _GROUPS}
    groups = [group for group in _GROUPS if sizes[group]]
    measures = [
        Measure(title=f"{_GROUPS[group]} ({sizes[group]}): {what}", form="{:.1%}")
        for group in groups
        for what in ("kind", "may be repeated")
    ]
    speeds = record.figures["first_sight"]
    measures.append(Measure(title="errors per second at first sight, of Rung's", form="{:.2f}x"))
    rows: dict[str, list[float | None]] = {}
    for who, block in scores.items():
        shares = [_share(block[group], key) for group in groups for key in ("strict", "retryable")]
        rows[_PEERS.get(who, who)] = [
            *shares,
            speeds[who] / speeds["rung"] if who in speeds and "rung" in speeds else None,
        ]
    stem = _stem(record)
    held_out = (
        "no text of its sources was read or trained on; its scores were seen while rules were written"
        if "heldout" in stem
        else "whether Rung was tuned on it is not recorded"
    )
    told = "Rung was tuned on this file" if _is_tuned(record) else held_out
    return Comparison(measures=measures, rows=rows, title=f"`{stem}` ({told}):")


def _share(tally: Mapping[str, int] | None, key: str) -> float | None:
    return tally[key] / tally["rows"] if tally and tally["rows"] else None


def _kinds(found: Sequence[Record]) -> str:
    """Return the table by kind: how many of those labelled were named right, in each file."""
    scores = {_stem(record): {one["kind"]: one for one in record.figures["kinds"]} for record in found}
    kinds = dict.fromkeys(kind for one in scores.values() for kind in one)
    totals = {kind: sum(one[kind]["labelled"] for one in scores.values() if kind in one) for kind in kinds}
    body = [
        [f"`{kind}`", *(_recall(one.get(kind)) for one in scores.values())]
        for kind in sorted(totals, key=lambda kind: (-totals[kind], kind))
        if totals[kind]
    ]
    return "Rung by kind, right of those labelled, all forms:\n\n" + table(["kind", *scores], body)


def _recall(one: Mapping[str, Any] | None) -> str:
    return f"{one['right']} of {one['labelled']}" if one and one["labelled"] else DASH


def _speed(found: Sequence[Record]) -> str:
    """Return Rung's own speed on each file, which depends on the machine."""
    speeds = {_stem(record): record.figures["first_sight"].get("rung") for record in found}
    shown = ", ".join(f"{stem} {speed:,.0f}" for stem, speed in speeds.items() if speed)
    told = "Rung's errors per second of processor time at first sight, on this machine"
    return f"{told}: {shown}. LiteLLM and hermes-agent were timed on provider errors alone." if shown else ""


def loops(records: Mapping[str, Record]) -> Section:
    """Precision and recall of loop detectors."""
    title, reproduce = "Loops", "make results NAME=loops"
    record = records.get("loops")
    if record is None:
        return Section(title=title, reproduce=reproduce, about=_LOOPS)
    measures = [
        Measure(title="precision", form="{:.3f}"),
        Measure(title="recall", form="{:.3f}"),
        Measure(title="false alarms", form="{:.0f}", is_lower_better=True),
        Measure(title="missed", form="{:.0f}", is_lower_better=True),
        Measure(title="median steps late", form="{:+.0f}", is_lower_better=True),
    ]
    rows = {
        name: [one[key] for key in ("precision", "recall", "false", "missed", "late")]
        for name, one in record.figures["detectors"].items()
    }
    found = Comparison(measures=measures, rows=rows)
    drawn = [(found.measures[place].title, bars_of(found, place)) for place in (0, 1)]
    return Section(
        title=title,
        reproduce=reproduce,
        about=_LOOPS,
        records=[record],
        comparisons=[found],
        notes=["Rung's rules were tuned on these trajectories."],
        said=found.headline(1),
        pictures={"loops.svg": picture("Loops found", drawn)},
    )
