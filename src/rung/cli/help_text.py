"""Epilogues of help texts: paragraphs that wrap, and examples that do not."""

from __future__ import annotations

_VERBATIM = "\b\n"  # click's mark of a paragraph that is not wrapped


def epilogue(*paragraphs: str, examples: tuple[str, ...] = (), table: tuple[str, ...] = ()) -> str:
    """Return the text below the options: paragraphs, then the lines of a table, then examples.

    Lines of tables and examples are printed as they are: at most 56 columns, so that the help fits a terminal of 60.
    """
    parts = list(paragraphs)
    if table:
        parts.append(_VERBATIM + "\n".join(table))
    if examples:
        heading = "Example:" if len(examples) == 1 else "Examples:"
        parts.append(_VERBATIM + "\n".join([heading, *(f"  {line}" for line in examples)]))
    return "\n\n".join(parts)
