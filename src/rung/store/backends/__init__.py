"""Storage back ends: the port, SQLite and PostgreSQL, schema migrations and the future of a write."""
