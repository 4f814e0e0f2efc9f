"""Faults are told by their seed: a failing test shows which one it was."""
