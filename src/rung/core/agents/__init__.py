"""Command-line agents as data: how each is recognised, keeps its session and continues it. Pure functions."""
