"""Classification: read the facts in an error and assign a failure kind by the first matching rule."""
