"""Adapters to external libraries and to the operating system: errors, frameworks, system."""
