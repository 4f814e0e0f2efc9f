"""The `guarded` decorator: its success-only fast path, and guarded generators."""
