"""Fixtures of both back ends for durable runs."""

from tests.store.conftest import postgres_server, postgres_url, sqlite_url, url

__all__ = ["postgres_server", "postgres_url", "sqlite_url", "url"]
