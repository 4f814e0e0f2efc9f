"""Cost of the journal: appends and reports."""
