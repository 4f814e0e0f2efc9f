"""Demo world: scripted agents that fail and recover, for newcomers and for the dashboard's tests. Not in the wheel."""
