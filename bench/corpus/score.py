"""Compute scores: strict, lenient, retryable, wait, precision and recall."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bench.corpus.rows import FORMS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bench.corpus.peers import Answer, Classifier
    from bench.corpus.rows import Row
    from rung.core.domain.failures import Kind

CALLS: Final = "http+exception"
ALL: Final = "all"
GROUPS: Final[Mapping[str, tuple[str, ...]]] = (
    {CALLS: ("http", "exception")} | {form: (form,) for form in FORMS} | {ALL: FORMS}
)
WAIT_TOLERANCE: Final = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A row with the answer of a classifier."""

    row: Row
    answer: Answer

    @property
    def strict(self) -> bool:
        """Return whether the answer is the label."""
        return self.row.label in self.answer.kinds

    @property
    def lenient(self) -> bool:
        """Return whether the answer is the label or another acceptable one."""
        return self.strict or not self.row.also.isdisjoint(self.answer.kinds)

    @property
    def retryable(self) -> bool:
        """Return whether the answer is right about retryability."""
        return self.answer.retryable == self.row.retryable

    @property
    def wait(self) -> bool:
        """Return whether the answer has the expected wait."""
        expected, found = self.row.retry_after, self.answer.retry_after
        return expected is not None and found is not None and abs(found - expected) <= WAIT_TOLERANCE * expected


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Correct answers in a group of rows; `waits` counts rows with an expected wait."""

    rows: int
    strict: int
    lenient: int
    retryable: int
    waits: int
    waits_right: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KindScore:
    """Score of one kind: rows with this label, answers with it, and correct ones."""

    kind: Kind
    labelled: int
    answered: int
    right: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Confusion:
    """Rows of one label with the same wrong answer."""

    label: Kind
    answered: Kind
    ids: tuple[str, ...]


def judge(classifier: Classifier, rows: Iterable[Row]) -> list[Judged]:
    """Classify every row whose form the classifier supports."""
    return [
        Judged(row=row, answer=classifier.answer(classifier.judge(classifier.prepare(row.seen))))
        for row in rows
        if row.form in classifier.forms
    ]


def tally(judged: Iterable[Judged]) -> Tally:
    """Count the correct answers."""
    found = list(judged)
    return Tally(
        rows=len(found),
        strict=sum(one.strict for one in found),
        lenient=sum(one.lenient for one in found),
        retryable=sum(one.retryable for one in found),
        waits=sum(one.row.retry_after is not None for one in found),
        waits_right=sum(one.wait for one in found),
    )


def tallies(classifier: Classifier, judged: list[Judged]) -> dict[str, Tally | None]:
    """Return a tally per group of forms; None if the classifier does not support one of the forms."""
    return {
        name: tally(one for one in judged if one.row.form in forms) if set(forms) <= set(classifier.forms) else None
        for name, forms in GROUPS.items()
    }


def kind_scores(judged: list[Judged]) -> list[KindScore]:
    """Return the score of each kind, most frequent first."""
    labelled = Counter(one.row.label for one in judged)
    answered = Counter(one.answer.kinds[0] for one in judged)
    right = Counter(one.row.label for one in judged if one.strict)
    kinds = sorted(labelled.keys() | answered.keys(), key=lambda kind: (-labelled[kind], kind))
    return [KindScore(kind=kind, labelled=labelled[kind], answered=answered[kind], right=right[kind]) for kind in kinds]


def confusions(judged: list[Judged]) -> list[Confusion]:
    """Return the wrong answers by label, most frequent first."""
    ids: dict[tuple[Kind, Kind], list[str]] = {}
    for one in judged:
        if not one.strict:
            ids.setdefault((one.row.label, one.answer.kinds[0]), []).append(one.row.id)
    found = [Confusion(label=label, answered=answered, ids=tuple(rows)) for (label, answered), rows in ids.items()]
    return sorted(found, key=lambda one: (-len(one.ids), one.label, one.answered))


# Names of `--need`: the group and the figure.
NEEDS: Final[Mapping[str, tuple[str, str]]] = {
    "strict": (CALLS, "strict"),
    "retryable": (CALLS, "retryable"),
    "all": (ALL, "strict"),
}


def unmet_needs(needs: Mapping[str, float], scores: Mapping[str, Tally | None]) -> list[str]:
    """Return a message for each required percentage that was missed; without rows all are."""
    found = []
    for name, percent in needs.items():
        group, figure = NEEDS[name]
        score = scores[group]
        if score is None or not score.rows:
            found.append(f"{name}: {percent:g} % needed, no {group} rows")
        elif 100 * getattr(score, figure) < percent * score.rows:
            reached = 100 * getattr(score, figure) / score.rows
            found.append(f"{name}: {percent:g} % needed, {group} {figure} is {reached:.2f} %")
    return found
