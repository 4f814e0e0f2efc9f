"""A page for each ladder that ships, and their index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docpages.kinds import entries
from docpages.markdown import code, codes, count, fence, page, remarks, table
from rung.core.failures import GROUPS, Kind
from rung.core.ladder import DOES, ENDINGS, Ladder, Rung, Scope
from rung.core.policy import TEMPLATES, preset, worst_case
from rung.core.presets import LADDERS

if TYPE_CHECKING:
    from collections.abc import Iterator


def pages() -> dict[str, str]:
    """Path and text of each page."""
    made = {f"ladders/{ladder.name}.md": _page(ladder) for ladder in LADDERS.values()}
    return {"ladders/README.md": _index(), **made}


def _index() -> str:
    rows = [
        (f"[{ladder.name}]({ladder.name}.md)", ladder.about, " → ".join(rung.name for rung in ladder.rungs))
        for ladder in LADDERS.values()
    ]
    scopes = [(code(name), remark or "for the whole " + name) for name, remark in remarks(Scope).items()]
    return page(
        "Ladders",
        "A ladder is data: rungs from the cheapest to the last, and the rung at which each kind enters. "
        "These ship; [a policy file](../policy.md) may hold one of its own.",
        table(("ladder", "for", "rungs"), rows),
        "## How the next rung is found",
        "The higher of the failure's entry rung and the highest rung used, or the one above that if it is spent; "
        "from there the first rung that can help. A rung that was spent is never entered again. Every rung but "
        "retry must change the request; one that does not is skipped, and that is recorded.",
        "## What a rung does",
        table(("action", "what it does"), [(code(name), text) for name, text in DOES.items()]),
        "## How long its tries are remembered",
        table(("scope", "spent tries count"), scopes),
    )


def _page(ladder: Ladder) -> str:
    return page(
        f"The ladder {code(ladder.name)}",
        ladder.about,
        "All ladders, and what each action does: [index](README.md).",
        "## Rungs",
        fence(_picture(ladder)),
        "A rung's seconds cover everything on it, waits and attempts; past them the ladder climbs.",
        _restricted(ladder),
        "## Where each kind enters",
        f"What is not named in the ladder's `entry` enters at {code(ladder.default_entry)}.",
        table(("kind", "group", "level", "rung"), _entry_rows(ladder)),
        "## At the very most",
        "What one incident can take, the policy's caps applied, when the policy lists no other models or agents; "
        "each one listed adds a hand-over, where the ladder has a rung for that. Dollars depend on the prices listed.",
        table(("template", "attempts", "seconds"), _worst_rows(ladder)),
    )


def _picture(ladder: Ladder) -> str:
    """The rungs from the top down, as one stands before a ladder."""
    rows = [
        (f"{ladder.level(index)} {rung.name}", _tries(rung), _seconds(rung), _scope(rung))
        for index, rung in enumerate(ladder.rungs)
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = [
        f"║ {row[0].ljust(widths[0])} ║  "
        + "  ".join(cell.ljust(width) for cell, width in zip(row[1:], widths[1:], strict=True)).rstrip()
        for row in reversed(rows)
    ]
    bar = "╟" + "─" * (widths[0] + 2) + "╢"
    return f"\n{bar}\n".join(lines)


def _tries(rung: Rung) -> str:
    if rung.action in ENDINGS:
        return "the end"
    return count(rung.tries, "try")


def _seconds(rung: Rung) -> str:
    return "no limit of its own" if rung.seconds is None else f"at most {rung.seconds:g} s"


def _scope(rung: Rung) -> str:
    return remarks(Scope)[rung.scope.value] or f"per {rung.scope.value}"


def _restricted(ladder: Ladder) -> str:
    rows = []
    for rung in ladder.rungs:
        if rung.applies_to is not None:
            most = (
                ""
                if rung.max_missing_sections is None
                else f", while at most {rung.max_missing_sections} parts are missing"
            )
            rows.append((code(rung.name), codes(kind for kind in Kind if kind in rung.applies_to) + most))
    return table(("rung", "helps only with"), rows) if rows else ""


def _entry_rows(ladder: Ladder) -> Iterator[tuple[str, ...]]:
    for group, kinds in GROUPS.items():
        for kind in kinds:
            for when, index in entries(ladder, kind):
                name = f"[{code(kind)}](../kinds/{kind}.md)" + (f", {when}" if when else "")
                yield name, group, str(ladder.level(index)), code(ladder.rungs[index].name)


def _worst_rows(ladder: Ladder) -> Iterator[tuple[str, ...]]:
    for template in TEMPLATES:
        worst = worst_case(preset(ladder.name, template))
        yield code(template), *("no cap" if cap is None else f"{cap:g}" for cap in (worst.attempts, worst.seconds))
