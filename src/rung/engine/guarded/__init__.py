"""TODO package."""
