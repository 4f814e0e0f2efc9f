"""HTTP gateway that adds recovery to any agent: the agent only changes its base URL."""
