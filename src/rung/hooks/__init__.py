"""Hooks for coding agents: read their events, detect loops and unproven claims, and answer in the agent's session."""
