"""Queries over the journal: lists, reports, failure groups, spend, and live views."""
