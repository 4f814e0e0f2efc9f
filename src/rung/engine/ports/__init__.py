"""Ports of the engine: narrow protocols for everything it needs from outside."""
