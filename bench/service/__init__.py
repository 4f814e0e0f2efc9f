"""Load test of the service."""
