"""Adapters to the operating system: processes, git, files, hooks, and a provider client."""
