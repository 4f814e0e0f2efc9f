"""Durable engine on DBOS: runs are its workflows, in PostgreSQL."""
