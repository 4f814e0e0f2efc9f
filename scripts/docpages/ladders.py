"""Generate a page for each built-in ladder, and their index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docpages.kinds import entries
from docpages.markdown import code, codes, count, fence, member_comments, page, table
from rung.core.domain.error_size import Size
from rung.core.domain.failures import GROUPS, Kind
from rung.core.domain.ladder import ACTION_DESCRIPTIONS, ENDING_ACTIONS, Ladder, Rung, RungScope
from rung.core.policy.presets import LADDERS
from rung.core.policy.templates import TEMPLATES, preset
from rung.core.policy.worst_case import worst_case

if TYPE_CHECKING:
    from collections.abc import Iterator


def pages() -> dict[str, str]:
    """Return the path and text of each page."""
    ladder_pages = {f"ladders/{ladder.name}.md": _page(ladder) for ladder in LADDERS.values()}
    return {"ladders/README.md": _index(), **ladder_pages}


def _index() -> str:
    rows = [
        (f"[{ladder.name}]({ladder.name}.md)", ladder.about, " → ".join(rung.name for rung in ladder.rungs))
        for ladder in LADDERS.values()
    ]
    scopes = [(code(name), comment or "for the whole " + name) for name, comment in member_comments(RungScope).items()]
    return page(
        "Ladders",
        "A ladder is data: an ordered list of rungs, cheapest first, and the entry rung of each failure kind. "
        "These ladders are built in; a [policy file](../policy.md) can define its own.",
        table(("ladder", "use", "rungs"), rows),
        "## How the next rung is chosen",
        "The search starts at the higher of the failure's entry rung and the highest rung used so far, or one rung "
        "above if that rung has no tries left. The first rung from there that applies to the failure is used. A rung "
        "whose tries are used up is not entered again. Every rung except `retry` must change the request; a rung that "
        "would not change it is skipped, and the skip is recorded.",
        "## Actions",
        table(("action", "effect"), [(code(name), text) for name, text in ACTION_DESCRIPTIONS.items()]),
        "## Scopes",
        "The scope of a rung sets how long its used tries are counted.",
        table(("scope", "used tries are counted"), scopes),
    )


def _page(ladder: Ladder) -> str:
    return page(
        f"Ladder {code(ladder.name)}",
        ladder.about,
        "See [all ladders and actions](README.md).",
        f"![Ladder {ladder.name}: its rungs, and the failures that enter at each](../pictures/ladder-{ladder.name}.svg)",
        "## Rungs",
        fence(_diagram(ladder)),
        "The seconds of `retry` are seconds of backoff: they limit neither a repeated attempt at work, which has its own limit and"
        " the incident's, nor a wait that the server asks for (up to `retry_after_cap`). The time limit of every other rung is"
        " final: it covers waits and attempts, whatever the progress. When it is exceeded, recovery moves to the next rung.",
        _restriction_table(ladder),
        "## Entry rungs",
        f"Kinds that the ladder's `entry` table does not list enter at {code(ladder.default_entry)}.",
        table(("kind", "group", "level", "entry rung"), _entry_rows(ladder)),
        *_sizes(ladder),
        "## Upper limits",
        "The most attempts and seconds that one incident can take with the policy's caps, if the policy lists no other "
        "models or agents. Each listed model or agent adds one hand-over if the ladder has a rung for it. The most "
        "dollars depend on the listed prices.",
        table(("template", "attempts", "seconds"), _limit_rows(ladder)),
    )


def _diagram(ladder: Ladder) -> str:
    """Return a drawing of the ladder with its last rung on top."""
    rows = [
        (f"{ladder.level(index)} {rung.name}", _tries_text(rung), _time_limit_text(rung), _scope_text(rung))
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


def _tries_text(rung: Rung) -> str:
    if rung.action in ENDING_ACTIONS:
        return "final"
    return count(rung.tries, "try")


def _time_limit_text(rung: Rung) -> str:
    return "no time limit" if rung.seconds is None else f"at most {rung.seconds:g} s{' of backoff' * rung.is_retry}"


def _scope_text(rung: Rung) -> str:
    return member_comments(RungScope)[rung.scope.value] or f"per {rung.scope.value}"


def _restriction_table(ladder: Ladder) -> str:
    rows = []
    for rung in ladder.rungs:
        if rung.applies_to is not None:
            limit = (
                ""
                if rung.max_missing_sections is None
                else f", if at most {rung.max_missing_sections} parts are missing"
            )
            rows.append((code(rung.name), codes(kind for kind in Kind if kind in rung.applies_to) + limit))
    parts = [table(("rung", "applies only to"), rows)] if rows else []
    parts += [
        f"{code(rung.name)} is exhausted as soon as {code(rung.spent_with)} is."
        for rung in ladder.rungs
        if rung.spent_with
    ]
    return "\n\n".join(parts)


def _entry_rows(ladder: Ladder) -> Iterator[tuple[str, ...]]:
    for group, kinds in GROUPS.items():
        for kind in kinds:
            for when, index in entries(ladder, kind):
                name = f"[{code(kind)}](../kinds/{kind}.md)" + (f", {when}" if when else "")
                yield name, group, str(ladder.level(index)), code(ladder.rungs[index].name)


def _sizes(ladder: Ladder) -> Iterator[str]:
    """Describe the entry rungs by error size, if the ladder has any."""
    if not ladder.sizes:
        return
    top = code(max(ladder.sizes.values(), key=ladder.index))
    yield "## Entry rungs by error size"
    yield (
        f"An error report may state how large the problem is. A kind that enters at {top} or above enters there "
        "regardless of the size. Every other error whose report states a size enters at the rung in this table."
    )
    rows = [
        (code(size), member_comments(Size)[size.value], str(ladder.level(ladder.index(name))), code(name))
        for size, name in ladder.sizes.items()
    ]
    yield table(("size", "meaning", "level", "rung"), rows)


def _limit_rows(ladder: Ladder) -> Iterator[tuple[str, ...]]:
    for template in TEMPLATES:
        worst = worst_case(preset(ladder.name, template))
        yield code(template), *("no cap" if cap is None else f"{cap:g}" for cap in (worst.attempts, worst.seconds))
