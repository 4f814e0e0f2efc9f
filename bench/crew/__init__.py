"""Cost of a conductor at scale."""
