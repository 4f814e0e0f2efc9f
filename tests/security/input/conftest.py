"""Fixtures of the service's tests: a real service on a real port."""

from tests.service.conftest import journal, past, places, service

__all__ = ["journal", "past", "places", "service"]
