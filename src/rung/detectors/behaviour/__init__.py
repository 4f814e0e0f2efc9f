"""Behaviour that loops do not show: a violated constraint, a claim against the evidence, an answer beside the task."""
