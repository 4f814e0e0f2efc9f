"""The recovery loop: the state of a run, its steps, and the blocking and async drivers."""
