"""Walls of overload: real clients against a provider that refuses everything for a while, with and without a gateway."""
