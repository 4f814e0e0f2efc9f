"""State that the processes of a fleet share: executors, and slices of common limits."""
