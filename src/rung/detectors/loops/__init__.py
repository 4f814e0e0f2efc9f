"""Loop detection: repeated calls, errors and texts in the steps of an agent."""
