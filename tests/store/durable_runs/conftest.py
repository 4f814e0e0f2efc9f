"""The stores that runs survive in: both kinds, real ones."""

from tests.store.conftest import postgres_server, postgres_url, sqlite_url, url

__all__ = ["postgres_server", "postgres_url", "sqlite_url", "url"]
