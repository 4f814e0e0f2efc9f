"""Latency of hooks."""
