"""How often an answer was right: the arithmetic."""

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
    """One row, and what a classifier said of it."""

    row: Row
    answer: Answer

    @property
    def strict(self) -> bool:
        """It said the label."""
        return self.row.label in self.answer.kinds

    @property
    def lenient(self) -> bool:
        """It said the label, or another that a careful person could defend."""
        return self.strict or not self.row.also.isdisjoint(self.answer.kinds)

    @property
    def retryable(self) -> bool:
        """It is right about whether the same request may succeed later."""
        return self.answer.retryable == self.row.retryable

    @property
    def wait(self) -> bool:
        """It found the wait that the error names."""
        wanted, found = self.row.retry_after, self.answer.retry_after
        return wanted is not None and found is not None and abs(found - wanted) <= WAIT_TOLERANCE * wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How many of a group's rows were answered right; `waits` are those whose error names a wait."""

    rows: int
    strict: int
    lenient: int
    retryable: int
    waits: int
    waits_right: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KindScore:
    """How one kind fared: rows labelled with it, answers that said it, and both."""

    kind: Kind
    labelled: int
    answered: int
    right: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Confusion:
    """Rows of one label that were given the same wrong kind."""

    label: Kind
    answered: Kind
    ids: tuple[str, ...]


def judge(classifier: Classifier, rows: Iterable[Row]) -> list[Judged]:
    """Put every row it can take to a classifier."""
    return [
        Judged(row=row, answer=classifier.answer(classifier.judge(classifier.prepare(row.seen))))
        for row in rows
        if row.form in classifier.forms
    ]


def tally(judged: Iterable[Judged]) -> Tally:
    """Count."""
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
    """Count each group of forms; None for one that has forms the classifier does not take."""
    return {
        name: tally(one for one in judged if one.row.form in forms) if set(forms) <= set(classifier.forms) else None
        for name, forms in GROUPS.items()
    }


def kind_scores(judged: list[Judged]) -> list[KindScore]:
    """How each kind fared that was labelled or answered, the frequent ones first."""
    labelled = Counter(one.row.label for one in judged)
    answered = Counter(one.answer.kinds[0] for one in judged)
    right = Counter(one.row.label for one in judged if one.strict)
    kinds = sorted(labelled.keys() | answered.keys(), key=lambda kind: (-labelled[kind], kind))
    return [KindScore(kind=kind, labelled=labelled[kind], answered=answered[kind], right=right[kind]) for kind in kinds]


def confusions(judged: list[Judged]) -> list[Confusion]:
    """What was taken for what, the frequent ones first."""
    ids: dict[tuple[Kind, Kind], list[str]] = {}
    for one in judged:
        if not one.strict:
            ids.setdefault((one.row.label, one.answer.kinds[0]), []).append(one.row.id)
    found = [Confusion(label=label, answered=said, ids=tuple(rows)) for (label, said), rows in ids.items()]
    return sorted(found, key=lambda one: (-len(one.ids), one.label, one.answered))


# What `--need` may ask for: the group and the figure.
NEEDS: Final[Mapping[str, tuple[str, str]]] = {
    "strict": (CALLS, "strict"),
    "retryable": (CALLS, "retryable"),
    "all": (ALL, "strict"),
}


def missed(needs: Mapping[str, float], scores: Mapping[str, Tally | None]) -> list[str]:
    """Say which of the needed percentages were not reached; without rows none is."""
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
