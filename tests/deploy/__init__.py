"""Tests of operation: deployment files, rolling restarts, backup and restore."""
