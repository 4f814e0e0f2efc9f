"""Tests of a fleet on several hosts, whose network and processes fail."""
