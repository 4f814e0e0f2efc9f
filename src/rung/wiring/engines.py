"""Choice of the durable engine: `[fleet] engine` and `url` in rung.toml, or arguments."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.errors import ConfigError
from rung.core.domain.settings_schema import read_table
from rung.wiring.journals import is_url, locate
from rung.wiring.settings_file import find

if TYPE_CHECKING:
    from rung.engine.durable.port import DurableEngine

ENGINES: Final = ("embedded", "dbos", "temporal")
_PACKAGES: Final = {"dbos": "dbos", "temporal": "temporalio"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSettings:
    """The table `[fleet]`: the durable engine, and where it runs.

    `url`: of `embedded` and `dbos`, the journal or database (default: the journal); of `temporal`, the server as HOST:PORT.
    `lease`: seconds after which the runs of a silent worker are handed to another one.
    """

    engine: str = "embedded"
    url: str = ""
    namespace: str = "default"
    lease: float = 30.0

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise ConfigError("fleet.engine", self.engine, "one of " + ", ".join(ENGINES))
        if self.engine == "temporal" and not self.url:
            raise ConfigError("fleet.url", self.url, "the address of the Temporal server, HOST:PORT")
        if not self.lease > 0:
            raise ConfigError("fleet.lease", self.lease, "seconds, more than 0")


def fleet_settings(**own: Any) -> FleetSettings:
    """Return the settings of the working directory's rung.toml, if it is trusted, overridden by those that are given."""
    file = find()
    if file is None:
        return FleetSettings(**own)
    with file.errors():
        table = read_table(file.table.get("fleet", {}), "fleet")
        unknown = sorted(table.keys() - set(FleetSettings.__dataclass_fields__))
        if unknown:
            raise ConfigError(f"fleet.{unknown[0]}", table[unknown[0]], ", ".join(FleetSettings.__dataclass_fields__))
    return FleetSettings(**{**table, **own})


def engine(name: str = "", *, url: str = "", executor_id: str = "", **options: Any) -> DurableEngine:
    """Return the durable engine that the settings name, or the one that is given.

    Args:
        name: `embedded`, `dbos` or `temporal`. Default: the one in the table `[fleet]` of rung.toml, else `embedded`.
        url: Journal or database of `embedded` and `dbos`; HOST:PORT of `temporal`. Default: that of rung.toml, else the journal.
        executor_id: Name of this process in the fleet. Default: a new one.
        **options: Other keys of the table `[fleet]`: `namespace`, `lease` in seconds.

    Raises:
        ConfigError: The engine is unknown, or its package is not installed.

    Example:
        ```python
        engine = rung.durable.engine("dbos", url="postgresql://…")
        await engine.submit("invoice-17", "bill", {"customer": "Ada"})
        await engine.result("invoice-17")
        ```
    """
    own = {key: value for key, value in (("engine", name), ("url", url)) if value}
    return make_engine(fleet_settings(**own, **options), executor_id=executor_id)


def make_engine(settings: FleetSettings, *, executor_id: str = "") -> DurableEngine:
    """Return the engine of these settings."""
    needed = _PACKAGES.get(settings.engine)
    if needed is not None and find_spec(needed) is None:
        raise ConfigError(
            "fleet.engine", settings.engine, f"an installed engine: pip install 'rung[{settings.engine}]'"
        )
    if settings.engine == "temporal":
        from rung.adapters.engines.temporal import TemporalEngine

        return TemporalEngine(settings.url, namespace=settings.namespace, lease=settings.lease)
    at = locate(settings.url or None).at
    if settings.engine == "dbos":
        from rung.adapters.engines.dbos.engine import DbosEngine

        if not is_url(at):
            raise ConfigError("fleet.url", at, "a postgresql:// URL: engine dbos needs PostgreSQL")
        return DbosEngine(at, executor_id=executor_id)
    from rung.engine.durable.embedded import EmbeddedEngine
    from rung.store import open_journal

    journal = open_journal(at)
    journal.runs.lease = settings.lease
    return EmbeddedEngine(journal, on_close=journal.close)
