"""Examples that are run from a clone of the repository."""
