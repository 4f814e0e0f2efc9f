"""A real PostgreSQL for the gateways of a fleet: one that is shared by tests, and one that a test may stop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.store import postgres
from tests.store.conftest import postgres_server, postgres_url

__all__ = ["own_postgres", "postgres_server", "postgres_url"]

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def own_postgres() -> Iterator[str]:
    """URL of a server of the test's own, which it may stop."""
    with postgres.server() as url:
        yield url
