"""Tests of several gateways on one PostgreSQL journal."""
