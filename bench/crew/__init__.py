"""CPU time of a conductor at scale."""
