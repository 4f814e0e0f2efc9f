"""Cost of a hook."""
