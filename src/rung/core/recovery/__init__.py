"""Recovery decisions: which rung is next, how it changes the request, and where an interrupted recovery resumes."""
