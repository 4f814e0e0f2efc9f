"""Stages of agents run as commands, each recovered on its own."""
