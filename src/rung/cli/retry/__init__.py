"""`rung retry` and `rung escalate`: what the service's page does, from the command line."""
