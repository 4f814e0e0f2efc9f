"""Composition: reads settings and the environment, and chooses the adapters that the entry points use."""
