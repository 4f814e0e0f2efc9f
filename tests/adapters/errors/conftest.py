"""A provider that fails, and an address nobody listens on."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from tests.adapters.errors.loopback import Provider

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def provider() -> Iterator[Provider]:
    provider = Provider()
    yield provider
    provider.close()


@pytest.fixture
def refused() -> Iterator[str]:
    """The address of a port that nobody listens on: bound, so that nobody else takes it, but not listening."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"
