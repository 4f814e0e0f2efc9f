"""Commands that run the fake provider and test agents against it."""
