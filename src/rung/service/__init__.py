"""The HTTP service: a REST API and a dashboard over the journal, with role-based write access."""
