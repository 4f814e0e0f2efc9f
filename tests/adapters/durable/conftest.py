"""One Temporal server for all tests of a process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.adapters.durable.temporal_server import server

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def temporal() -> Iterator[str]:
    """Return the address of the server."""
    with server() as address:
        yield address
