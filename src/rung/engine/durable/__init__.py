"""Recoveries and tasks that survive their process."""
