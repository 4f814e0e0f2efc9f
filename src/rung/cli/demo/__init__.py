"""`rung demo`: failing agents that recover in the terminal."""
