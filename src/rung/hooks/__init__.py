"""Hooks for coding agents: what they do reaches us, and what we notice reaches them, in their own session."""
