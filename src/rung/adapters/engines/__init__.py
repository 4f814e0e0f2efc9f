"""Durable engines of others behind the port of `rung.engine.durable.port`."""
