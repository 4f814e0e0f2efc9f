"""The crews that the service shows: which tables, by which names."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from rung.core.domain.errors import StoreError, StoreUnavailable
from rung.service.problems import ApiProblem
from rung.store.crew.table import CrewTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class CrewTables:
    """Tables by name. Each is opened when it is asked for: it may be made, or go, while the service runs."""

    def __init__(self, locations: Iterable[str] = ()) -> None:
        self._places: dict[str, str] = {}
        for place in dict.fromkeys(locations):
            name = wanted = _name(place)
            number = 1
            while name in self._places:
                number += 1
                name = f"{wanted}-{number}"
            self._places[name] = place

    @property
    def names(self) -> list[str]:
        """As they are shown."""
        return list(self._places)

    def location(self, name: str) -> str:
        """Where it is, without a password."""
        place = self._places[name]
        parts = urlsplit(place) if "://" in place else None
        return place if parts is None else f"{parts.scheme}://{parts.hostname or ''}{parts.path}"

    @contextmanager
    def open_table(self, name: str) -> Iterator[CrewTable]:
        """The table of this crew, for one answer."""
        if name not in self._places:
            raise ApiProblem(404, f"there is no crew {name[:100]!r}: known are {', '.join(self._places) or 'none'}")
        try:
            with CrewTable.open(self._places[name]) as table:
                yield table
        except (StoreError, StoreUnavailable) as error:
            raise ApiProblem(503, f"the crew's table cannot be used just now: {error}") from None


def _name(place: str) -> str:
    if "://" in place:
        return urlsplit(place).path.strip("/").replace("/", "-") or "crew"
    return Path(place).stem or "crew"
