"""Names that the shell completes: templates, ladders, kinds, models. Nobody is asked about an untrusted file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.errors import RungError

if TYPE_CHECKING:
    from collections.abc import Iterable

    import click
    from click.shell_completion import CompletionItem

_PLAIN: Final = re.compile(r"[\w./:@+-]+")  # names that no shell reads otherwise; the file may be a stranger's


def complete_template(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Return the templates that begin so."""
    from rung.core.policy.templates import TEMPLATES

    return _beginning(TEMPLATES, incomplete)


def complete_ladder(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the ladders that begin so, and files."""
    from click.shell_completion import CompletionItem

    from rung.core.policy.presets import LADDERS

    return [*map(CompletionItem, _beginning(LADDERS, incomplete)), CompletionItem(incomplete, type="file")]


def complete_kind(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Return the kinds of failure that begin so."""
    from rung.core.domain.failures import Kind

    return _beginning(Kind, incomplete)


def complete_schema(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Return the JSON Schemas that begin so."""
    from rung import schemas

    return _beginning(schemas.names(), incomplete)


def complete_model(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Return the models of the working directory's rung.toml that begin so."""
    from rung.wiring.settings_file import CONFIG_FILE, inspect_file

    try:
        policy: Any = inspect_file(CONFIG_FILE).table.get("policy", {})
    except RungError:  # there is none, or the command that uses it reports what is wrong
        return []
    rows = policy.get("models", ()) if isinstance(policy, dict) else ()
    names = [row.get("name") if isinstance(row, dict) else row for row in rows] if isinstance(rows, list) else []
    return _beginning([name for name in names if isinstance(name, str) and _PLAIN.fullmatch(name)], incomplete)


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [str(name) for name in names if name.startswith(incomplete)]
