"""Alerts: rules about a journal's figures, and what changes when a figure crosses its threshold."""
