"""Print the scores as text, or convert them to JSON."""

from __future__ import annotations

import textwrap
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from bench.corpus.rows import FORMS
from bench.corpus.score import GROUPS, confusions, kind_scores

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bench.corpus.score import Judged, Tally
    from bench.corpus.speed import Speed

WIDTH: Final = 100
_MAX_TEXT_CHARS: Final = 160


def print_scores(scores: Mapping[str, Mapping[str, Tally | None]], absent: Mapping[str, str]) -> None:
    """Print one block per classifier with a line per group of forms, and why others are missing."""
    heads = ("strict", "lenient", "retryable", "retry_after")
    print(f"{'':<14}{'rows':<16}{'n':>5}" + "".join(f"{head:>16}" for head in heads))
    groups = [name for name in GROUPS if any(_rows(block[name]) for block in scores.values())]
    for who, block in scores.items():
        for number, name in enumerate(groups):
            print(f"{who if not number else '':<14}{name:<16}{_cells(block[name])}")
    for who, why in absent.items():
        print(f"{who:<14}{why}")
    print("\nCorrect answers and their share. Strict: the label; lenient: the label or another acceptable one.")
    print("retry_after: within 5 % of the expected wait, for rows that have one. If a category of a classifier")
    print("covers several kinds, the best one counts.")


def _rows(score: Tally | None) -> int:
    return 0 if score is None else score.rows


def _cells(score: Tally | None) -> str:
    if score is None:
        return f"{'-':>5}" + f"{'-':>16}" * 4
    figures = [(right, score.rows) for right in (score.strict, score.lenient, score.retryable)]
    cells = [_share(right, of) for right, of in [*figures, (score.waits_right, score.waits)]]
    return f"{score.rows:>5}" + "".join(f"{cell:>16}" for cell in cells)


def _share(right: int, of: int) -> str:
    return f"{right}/{of} {100 * right / of:>6.1f}%" if of else "-"


def print_kinds(judged: list[Judged]) -> None:
    """Print precision and recall of each kind."""
    print(f"\n{'rung: kind':<24}{'labelled':>10}{'answered':>10}{'right':>8}{'precision':>12}{'recall':>10}")
    for one in kind_scores(judged):
        shares = [f"{100 * one.right / of:.1f}%" if of else "-" for of in (one.answered, one.labelled)]
        print(f"{one.kind:<24}{one.labelled:>10}{one.answered:>10}{one.right:>8}{shares[0]:>12}{shares[1]:>10}")


def print_confusions(judged: list[Judged]) -> None:
    """Print the wrong answers by label, with their rows."""
    found = confusions(judged)
    print("\nrung: label -> answered: count, rows" if found else "\nrung: no wrong answers")
    for one in found:
        line = f"{one.label} -> {one.answered}: {len(one.ids)}  {' '.join(one.ids)}"
        print(textwrap.fill(line, WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False))


def print_wrong(judged: list[Judged]) -> None:
    """Print each row that rung classified differently."""
    wrong = [one for one in judged if not one.strict]
    print(f"\nrung: {len(wrong)} rows classified differently")
    for one in wrong:
        row, seen = one.row, one.row.seen
        also = f" (also {', '.join(sorted(row.also))})" if row.also else ""
        status = "-" if seen.get("status") is None else seen["status"]
        print(f"{row.id}  {row.form}  {seen.get('provider') or '-'}  {status}")
        print(f"    {row.label}{also} -> {one.answer.kinds[0]}, by {one.answer.rule or 'no rule'}")
        print(f"    {row.text[:_MAX_TEXT_CHARS]}")


def print_speed(speeds: Mapping[str, Speed]) -> None:
    """Print classifications per second, and the median time of a row by form."""
    print(
        f"\n{'one core':<14}{'rows':>6}{'first sight/s':>15}{'again/s':>12}" + "".join(f"{form:>13}" for form in FORMS)
    )
    for who, speed in speeds.items():
        cells = [f"{speed.medians[form]:.2f} µs" if form in speed.medians else "-" for form in FORMS]
        print(
            f"{who:<14}{speed.rows:>6}{speed.first:>15,.0f}{speed.again:>12,.0f}" + "".join(f"{c:>13}" for c in cells)
        )


def as_json(
    judged: Mapping[str, list[Judged]],
    scores: Mapping[str, Mapping[str, Tally | None]],
    absent: Mapping[str, str],
    speeds: Mapping[str, Speed],
) -> dict[str, Any]:
    """Return all figures, and each answer by row id; the text of a row is not included."""
    rung = judged.get("rung", [])
    return {
        "scores": {who: {name: one and asdict(one) for name, one in block.items()} for who, block in scores.items()},
        "absent": dict(absent),
        "kinds": [asdict(one) for one in kind_scores(rung)],
        "confusions": [asdict(one) for one in confusions(rung)],
        "speeds": {who: asdict(speed) for who, speed in speeds.items()},
        "answers": {who: {one.row.id: asdict(one.answer) for one in found} for who, found in judged.items()},
    }
