"""The crew tables that the service shows, by name."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rung.core.domain.errors import StoreError, StoreUnavailable
from rung.service.problems import ApiProblem
from rung.store.crew.operator_commands import crew_name
from rung.store.crew.table import CrewTable
from rung.wiring.journals import shown_location

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class CrewTables:
    """Crew tables by name. Each is opened per request: it may appear or disappear while the service runs."""

    def __init__(self, locations: Iterable[str] = ()) -> None:
        self._locations: dict[str, str] = {}
        for location in dict.fromkeys(locations):
            name = base = crew_name(location)
            number = 1
            while name in self._locations:
                number += 1
                name = f"{base}-{number}"
            self._locations[name] = location

    @property
    def names(self) -> list[str]:
        """Return the display names of the crews."""
        return list(self._locations)

    def location(self, name: str) -> str:
        """Return the path or URL of a crew's table, without the password."""
        return shown_location(self._locations[name])

    @contextmanager
    def open_table(self, name: str) -> Iterator[CrewTable]:
        """Open a crew's table for one request."""
        if name not in self._locations:
            raise ApiProblem(
                404, f"there is no crew {name[:100]!r}; the crews are: {', '.join(self._locations) or 'none'}"
            )
        try:
            with CrewTable.open(self._locations[name]) as table:
                yield table
        except (StoreError, StoreUnavailable) as error:
            raise ApiProblem(503, f"crew table unavailable: {error}") from None
