"""The generated reference pages, one module for each sort of page: data in, Markdown out."""
