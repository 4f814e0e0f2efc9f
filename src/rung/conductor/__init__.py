"""A crew of agents that survives dead, stuck, lost and arguing workers."""
