"""Generators of the reference pages, one module per type of page: data in, Markdown out."""
