"""Sixteen failover scenarios, after the public description of failoverbench: a provider, the scenarios, and a judge."""
