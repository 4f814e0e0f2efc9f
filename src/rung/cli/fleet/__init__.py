"""`rung fleet`: executors, workers and their operation."""
