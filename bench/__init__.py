"""Benchmarks. Run one with `python -m bench.<folder>` in the root of the repository."""
