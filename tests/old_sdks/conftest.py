"""Tests that need an environment of their own (`make old-sdks`): the gate's has what they cannot live beside."""

from tests.adapters.errors.conftest import provider, refused

__all__ = ["provider", "refused"]
