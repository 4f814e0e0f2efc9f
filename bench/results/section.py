"""A section of the page: comparisons of subjects by measures, with the losses that follow from them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bench.results.record import Record

DASH = "–"  # noqa: RUF001


def table(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; pipes in cells are escaped because they would end the cell."""
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A column: its title, its format, and which direction is better."""

    title: str
    form: str = "{:.2f}"
    is_lower_better: bool = False

    def show(self, value: float | None) -> str:
        """Return a value as text; a dash: not measured or not supported."""
        return DASH if value is None else self.form.format(value)

    def is_better(self, one: float, other: float) -> bool:
        """Whether a value beats another one at the precision shown."""
        beats = one < other if self.is_lower_better else one > other
        return beats and self.show(one) != self.show(other)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Subjects (rows) by measures (columns), of one run. Yardsticks are shown, but are no peers."""

    measures: Sequence[Measure]
    rows: Mapping[str, Sequence[float | None]]
    ours: Sequence[str] = ("rung",)
    yardsticks: Sequence[str] = ()
    title: str = ""
    is_tall: bool = False  # measures as rows, for many measures and few subjects

    def text(self) -> str:
        """Return the table; our rows are bold."""
        body = [
            [f"**{name}**" if name in self.ours else name, *self._cells(values)] for name, values in self.rows.items()
        ]
        lines = [["", *(measure.title for measure in self.measures)], *body]
        if self.is_tall:
            lines = [list(line) for line in zip(*lines, strict=True)]
        made = table(lines[0], lines[1:])
        return f"{self.title}\n\n{made}" if self.title else made

    def _cells(self, values: Sequence[float | None]) -> list[str]:
        return [measure.show(value) for measure, value in zip(self.measures, values, strict=True)]

    @property
    def peers(self) -> list[str]:
        """The subjects that are neither ours nor yardsticks."""
        return [name for name in self.rows if name not in self.ours and name not in self.yardsticks]

    def headline(self, place: int) -> str:
        """Return our first row and the best peer of one measure in a few words."""
        measure, mine = self.measures[place], self.ours[0]
        others = {name: value for name in self.peers if (value := self.rows[name][place]) is not None}
        told = f"{measure.title}: {mine} {measure.show(self.rows[mine][place])}"
        if not others:
            return told
        best = (min if measure.is_lower_better else max)(others, key=lambda name: others[name])
        return f"{told}, best peer {best} {measure.show(others[best])}"

    def losses(self) -> list[str]:
        """Return one line for each of our rows and each measure in which a peer is better."""
        found = []
        for mine in self.ours:
            for place, measure in enumerate(self.measures):
                own = self.rows[mine][place] if mine in self.rows else None
                others = {name: self.rows[name][place] for name in self.peers}
                better = [
                    f"{name} {measure.show(value)}"
                    for name, value in others.items()
                    if own is not None and value is not None and measure.is_better(value, own)
                ]
                if better:
                    where = f"{self.title.rstrip(':')}, {measure.title}" if self.title else measure.title
                    found.append(f"{where}: {mine} {measure.show(own)}, but {', '.join(better)}.")
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A section of the page; without records and source it is not measured."""

    title: str
    reproduce: str
    about: str
    records: Sequence[Record] = ()
    source: str = ""  # instead of records: dates and versions
    comparisons: Sequence[Comparison] = ()
    notes: Sequence[str] = ()  # paragraphs and other tables
    other_losses: Sequence[str] = ()  # that do not follow from the comparisons
    said: str = ""  # the headline, if it is not the first measure of the first comparison
    pictures: Mapping[str, str] = field(default_factory=dict)  # file name → SVG

    @property
    def is_measured(self) -> bool:
        """Whether there are figures."""
        return bool(self.records or self.source)

    @property
    def headline(self) -> str:
        """The most important figure, in a few words."""
        if not self.is_measured:
            return "not measured in this version"
        return self.said or self.comparisons[0].headline(0)

    @property
    def losses(self) -> list[str]:
        """One line for each measure in which a peer is better."""
        return [*self.other_losses, *(line for one in self.comparisons for line in one.losses())]

    def text(self, folder: str) -> str:
        """Return the section; `folder` is where the pictures are, seen from the page."""
        parts = [f"## {self.title}", self.about]
        if not self.is_measured:
            return "\n\n".join([*parts, "Not measured in this version.", f"Reproduce: `{self.reproduce}`."])
        parts += [f"![{self.title}]({folder}/{name})" for name in self.pictures]
        parts += [*(one.text() for one in self.comparisons), *self.notes, self._lost(), self._origin()]
        return "\n\n".join(part for part in parts if part)

    def _lost(self) -> str:
        if not self.losses:
            return "**Where we lose:** nowhere, at the precision shown."
        return "\n".join(["**Where we lose:**", "", *(f"- {line}" for line in self.losses)])

    def _origin(self) -> str:
        lines = [f"Reproduce: `{self.reproduce}`."]
        if self.source:
            lines.append(self.source)
        for record in self.records:
            versions = ", ".join(f"{name} {version}" for name, version in record.versions.items())
            at = record.machine
            where = f"Python {at['python']}, {at['cores']} cores, load {at['load']}"
            lines.append(f"Measured by `{record.command}` on {record.date}: {versions}; {where}.")
        return "\n".join(lines)
