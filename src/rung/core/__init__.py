"""Values and pure functions: no clock, no chance, no I/O. Standard library only."""
