"""Benchmarks and simulations of a fleet."""
