"""Fixtures of the service's and the store's tests: a real service on a real port, and a real PostgreSQL."""

from tests.service.conftest import journal, past, places, service
from tests.store.conftest import postgres_server, postgres_url

__all__ = ["journal", "past", "places", "postgres_server", "postgres_url", "service"]
