"""Rules of a crew as values and pure functions: states, messages, plans, reviews, liveness and hand-overs."""
