"""Runs pipelines: stages of agents as commands, each recovered on its own."""
