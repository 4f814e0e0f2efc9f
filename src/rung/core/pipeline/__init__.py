"""Rules of a pipeline as values and pure functions: its file, its stages' output and their signals."""
